//! Policies by name: what becomes of huge pages when memory is short.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// They are broken only if their pages are swapped out.
    NeverBreak,
    /// Each one with a page to share is broken, when the state of free memory says so.
    BreakAll,
    /// Cold ones with much to share are broken early, the others not before swapping.
    Shareability,
    /// Linux: no page is merged, khugepaged collapses.
    Linux,
    /// Linux with same-page merging, as it is: each one with a match is split, and khugepaged collapses again.
    Ksm,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::NeverBreak,
        Self::BreakAll,
        Self::Shareability,
        Self::Linux,
        Self::Ksm,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NeverBreak => "never-break",
            Self::BreakAll => "break-all",
            Self::Shareability => "shareability",
            Self::Linux => "linux",
            Self::Ksm => "ksm",
        }
    }

    /// Does the kernel decide, and not ESX?
    pub fn is_linux(self) -> bool {
        matches!(self, Self::Linux | Self::Ksm)
    }

    /// Does it break huge pages to share what is in them?
    pub(super) fn breaks(self) -> bool {
        matches!(self, Self::BreakAll | Self::Shareability)
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|policy| policy.name() == text);
        let names = || Self::ALL.map(Self::name).join(", ");
        known.ok_or_else(|| format!("`{text}` is no policy (write one of {})", names()))
    }
}
