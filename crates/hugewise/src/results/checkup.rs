//! What `hugewise checkup` answers: everything in one result.

use host::Snapshot;
use model::guest::Guest;
use model::headline::Headline;
use model::latency::Latency;
use model::tlb::Tlb;
use model::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::doctor::Doctor;
use super::ps::ProcessList;
use super::vms::VmList;

/// A whole checkup. A part that is `null` is named in `skipped`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkup {
    /// What huge pages save here, which kind to choose, and what limits their use.
    pub verdict: Verdict,
    /// The settings and hardware that decide page sizes.
    pub inventory: Snapshot,
    /// What is wrong with it.
    pub doctor: Option<Doctor>,
    /// The processes with most memory on huge pages, and the sums of all.
    pub processes: Option<ProcessList>,
    /// Virtual machines that run here; `null` with the processes.
    pub vms: Option<VmList>,
    /// What huge pages save at a few working sets, measured by turns: what the verdict says it by.
    pub headline: Option<Headline>,
    /// Latency by working set and page kind.
    pub latency: Option<Latency>,
    /// TLB levels, walk costs, and the page size with which the host backs huge pages.
    #[serde(default)]
    pub tlb: Option<Tlb>,
    /// Latency inside a KVM guest, at one working set.
    pub guest: Option<Guest>,
    /// The skipped parts.
    pub skipped: Vec<Skipped>,
}

/// A skipped part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// `doctor`, `ps`, `latency`, `tlb` or `guest`.
    pub part: String,
    /// Why, in one sentence that says what to do.
    pub why: String,
}
