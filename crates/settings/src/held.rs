//! What a lease holds of one setting.

use std::fmt;

use crate::pool_setting::PoolSetting;

/// A share of one setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) setting: PoolSetting,
    /// How much of the value is ours.
    pub(crate) pages: u64,
    /// The value without any share of hugewise's.
    pub(crate) base: u64,
    /// The value that our share was added to.
    pub(crate) from: u64,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.setting, self.from, self.from + self.pages)
    }
}
