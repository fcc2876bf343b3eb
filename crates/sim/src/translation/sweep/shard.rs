//! A part of a sweep: one of so many, for engines that start the same command many times.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shard `index` of `of`, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Shard {
    /// Does it simulate the unit of that number?
    pub(super) fn has(self, unit: usize) -> bool {
        unit as u64 % u64::from(self.of) == u64::from(self.index) - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("`{text}` is no shard (write 1/4 for the first of four, up to 4/4 for the last)");
        let (index, of) = text.split_once('/').ok_or_else(fail)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| fail());
        let (index, of) = (number(index)?, number(of)?);
        if index < 1 || index > of {
            return Err(fail());
        }
        Ok(Self { index, of })
    }
}
