//! Which page size of the host lies under this machine's huge pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Which page size of the host seems to lie under this machine's huge pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostBacking {
    /// The answer.
    pub verdict: Verdict,
    /// From 0 to 1.
    pub confidence: f64,
    /// Share of the sampled regions on smaller host pages, 0 to 1; `null` when unknown.
    pub splintered: Option<f64>,
    /// What was seen, one sentence each.
    pub evidence: Vec<String>,
}

/// Verdicts on the host's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// Huge guest pages are backed by 4 KiB host pages.
    #[serde(rename = "4K")]
    Small,
    /// 1 GiB guest pages are backed by 2 MiB host pages.
    #[serde(rename = "2M")]
    Large,
    /// 1 GiB guest pages are whole, inside a virtual machine.
    #[serde(rename = "1G")]
    Huge,
    /// No splintering is visible: bare metal, or a host that gives at least the page sizes tried.
    #[serde(rename = "none")]
    None,
    /// Unknown.
    #[default]
    #[serde(rename = "unknown")]
    Unknown,
}

impl Verdict {
    /// The pages that larger ones are splintered into, if they are.
    pub fn parts(self) -> Option<Bytes> {
        match self {
            Self::Small => Some(Bytes::kib(4)),
            Self::Large => Some(Bytes::mib(2)),
            Self::Huge | Self::None | Self::Unknown => None,
        }
    }
}

crate::shown_by_name!(Verdict);
