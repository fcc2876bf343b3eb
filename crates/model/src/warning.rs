//! Warnings: what a reader must know before believing a result, each with advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that weakens a result. `code` is stable for scripts, `text` says what happened and what to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A stable name such as `noisy-neighbour`.
    pub code: String,
    /// One or two sentences: what was seen, and what to do about it.
    pub text: String,
}

impl Warning {
    /// A warning by its stable name and its sentence.
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            text: text.into(),
        }
    }
}
