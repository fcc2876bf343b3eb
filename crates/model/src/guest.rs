//! The shape of what was measured inside a KVM guest: guest page size x host backing, faults, exits, counters.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Bytes;

/// The page size a guest maps its own memory with (the leaf level of its page tables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuestPage {
    /// 4 KiB.
    Size4K,
    /// 2 MiB.
    Size2M,
    /// 1 GiB.
    Size1G,
}

/// Why a guest page size could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a page size that a guest can map (write 4K, 2M or 1G)")]
pub struct ParseGuestPageError(String);

impl GuestPage {
    /// All of them, smallest first.
    pub const ALL: [Self; 3] = [Self::Size4K, Self::Size2M, Self::Size1G];

    /// Its size.
    pub const fn size(self) -> Bytes {
        match self {
            Self::Size4K => Bytes::kib(4),
            Self::Size2M => Bytes::mib(2),
            Self::Size1G => Bytes::gib(1),
        }
    }
}

impl fmt::Display for GuestPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.size().exact())
    }
}

impl FromStr for GuestPage {
    type Err = ParseGuestPageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size = text.parse::<Bytes>().ok();
        Self::ALL
            .into_iter()
            .find(|page| Some(page.size()) == size)
            .ok_or_else(|| ParseGuestPageError(text.to_owned()))
    }
}

impl Serialize for GuestPage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GuestPage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for GuestPage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GuestPage".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": ["4K", "2M", "1G"]})
    }
}
