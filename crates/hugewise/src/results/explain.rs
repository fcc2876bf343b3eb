//! What `explain` reports.

use doctor::explain::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The programs that a word on the command line means, and what each has of huge pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explain {
    /// The word, as typed.
    pub target: String,
    /// Each program, the largest first.
    pub programs: Vec<Usage>,
}
