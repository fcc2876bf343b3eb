//! The shapes of scenario files: tables whose keys may be left out, each value with its place in the file.

use toml::Spanned;

/// What a file may leave out, each with its place.
pub(crate) type Part = Option<Spanned<f64>>;
pub(crate) type Whole = Option<Spanned<i64>>;
pub(crate) type Word = Option<Spanned<String>>;
pub(crate) type Flag = Option<bool>;

/// Tables of a file: the keys of each by the type of their values.
macro_rules! tables {
    ($($table:ident { $($($key:ident),+: $type:ty;)+ })+) => {
        $(#[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $table {
            $($(pub(super) $key: $type,)+)+
        })+
    };
}

pub(crate) use tables;
