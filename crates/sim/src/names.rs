//! Enums whose values are typed by their names.

/// The names of an enum's values. `$what` says what any other text is: a sentence that goes on with the names to write.
macro_rules! names {
    ($type:ident, $what:literal, $table:tt) => {
        model::names!($type, $table);

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let names = || Self::ALL.map(Self::name).join(", ");
                Self::named(text).ok_or_else(|| format!("`{text}` {} (write one of {})", $what, names()))
            }
        }
    };
}

pub(crate) use names;
