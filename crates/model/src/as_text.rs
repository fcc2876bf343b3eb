//! Values that are one text: the one that they show, and are parsed from.

/// Writes and reads a type as its text, and publishes this schema for it.
#[macro_export]
macro_rules! as_text {
    ($type:ident, $schema:tt) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }

        impl ::schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!($schema)
            }
        }
    };
}

/// An enum and the names of its values, in one table: they are shown by them, and read from them. Without `$what` they have names, and no more.
#[macro_export]
macro_rules! names {
    ($(#[$about:meta])* $vis:vis enum $type:ident $(, $what:literal)? { $($(#[$of:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        $vis enum $type {
            $($(#[$of])* $variant),+
        }

        $crate::names!($type, $($what,)? { $($variant => $name),+ });
    };

    ($type:ident, { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// All of them, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name, as it is typed and shown.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one of just that name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.name() == name)
            }
        }
    };

    ($type:ident, $what:literal, { $($variant:ident => $name:literal),+ $(,)? }) => {
        $crate::names!($type, { $($variant => $name),+ });

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let names = || Self::ALL.map(Self::name).join(", ");
                Self::named(&text.trim().to_ascii_lowercase())
                    .ok_or_else(|| format!("`{text}` is not {} (write {})", $what, names()))
            }
        }
    };
}

/// An enum and what belongs to each of its values, in one table: `row` gives it.
#[macro_export]
macro_rules! table {
    ($(#[$about:meta])* $vis:vis enum $type:ident: $row:ty { $($(#[$of:meta])* $variant:ident = $value:expr,)+ }) => {
        $(#[$about])*
        $vis enum $type {
            $($(#[$of])* $variant),+
        }

        impl $type {
            /// All of them, in order.
            #[allow(dead_code)]
            $vis const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];

            const fn row(self) -> $row {
                match self {
                    $(Self::$variant => $value),+
                }
            }
        }
    };
}

/// Shows values by the names that JSON has for them.
#[macro_export]
macro_rules! shown_by_name {
    ($($type:ty),+) => {
        $(impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::serde::Serialize::serialize(self, f)
            }
        })+
    };
}
