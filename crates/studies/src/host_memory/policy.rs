//! Policies by name: what becomes of huge pages when memory is short.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::names;

names! {
    /// What becomes of huge pages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Policy, "a policy" {
        /// They are broken only if their pages are swapped out.
        NeverBreak = "never-break",
        /// Each one with a page to share is broken, when the state of free memory says so.
        BreakAll = "break-all",
        /// Cold ones with much to share are broken early, the others not before swapping.
        Shareability = "shareability",
        /// Linux: no page is merged, khugepaged collapses.
        Linux = "linux",
        /// Linux with same-page merging, as it is: each one with a match is split, and khugepaged collapses again.
        Ksm = "ksm",
    }
}

impl Policy {
    /// Does the kernel decide, and not ESX?
    pub fn is_linux(self) -> bool {
        matches!(self, Self::Linux | Self::Ksm)
    }

    /// Does it break huge pages to share what is in them?
    pub(super) fn breaks(self) -> bool {
        matches!(self, Self::BreakAll | Self::Shareability)
    }
}
