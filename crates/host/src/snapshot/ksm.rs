//! Same-page merging (KSM), which splits huge pages to share base pages.

use model::{Cause, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::numbers::Numbers;
use crate::Source;

/// Is KSM at work, and what did it merge?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ksm(Numbers);

impl Ksm {
    pub(super) fn read(source: &Source) -> Reading<Self> {
        Numbers::of_directory(source, "/sys/kernel/mm/ksm").map(Self)
    }

    /// `Known(true)` while it scans and merges.
    pub fn runs(&self) -> Reading<bool> {
        self.0.get("run").map(|run| run == 1)
    }

    /// A setting or counter by file name, such as `pages_sharing`.
    pub fn get(&self, name: &str) -> Reading<u64> {
        let negative = |_| Unread::new(Cause::Garbled, format!("/sys/kernel/mm/ksm/{name}"), "it is negative");
        self.0
            .get(name)
            .and_then(|number| u64::try_from(number).map_err(negative))
    }

    /// All of them; some, such as `general_profit`, can be negative.
    pub fn numbers(&self) -> &Numbers {
        &self.0
    }
}
