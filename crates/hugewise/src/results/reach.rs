//! The shape of `hugewise size reach`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use translation::reach::Reach;

/// Reach of TLBs by page size and entries, against working sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReachTable {
    /// One row for each page size and number of entries.
    pub rows: Vec<Reach>,
}
