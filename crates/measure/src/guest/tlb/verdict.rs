//! From evidence to a verdict on what the host puts behind a guest's large pages. Pure.

use host::snapshot::Mmu;
use model::Estimate;
use model::guest::tlb::{Leaves, Walks};
use model::latency::Backed;
use model::tlb::{HostBacking, Verdict};

use crate::tlb::backing::{self, Split};

/// Up to this place between the references, large pages are held whole; from the other one on they are splintered. Between
/// them lies what a busy machine or a mixture makes of either.
const WHOLE_TO: f64 = 0.35;
const SPLIT_FROM: f64 = 0.5;
/// Memory that is so much of one sort is that sort.
pub(super) const ALL: f64 = 0.95;

/// What TLB entries alone say.
pub(super) fn by_entries(split: Split) -> HostBacking {
    backing::verdict(Some(split), None, true)
}

/// The verdict. Under shadow paging the hypervisor's table is the only one that is walked, and walks tell how it is made.
/// Under nested paging walks through small guest pages read the guest's own entries as well, which no host page size
/// spares; there the TLB's entries must tell, unless they are small `native`ly too.
pub(super) fn decide(
    mmu: Option<Mmu>,
    native: &HostBacking,
    walks: Option<&Walks>,
    entries: &HostBacking,
) -> HostBacking {
    match mmu {
        _ if entries.verdict == Verdict::None => entries.clone(),
        Some(mmu) if !mmu.is_nested_paging() => by_walks(walks, entries),
        Some(_) if native.verdict == Verdict::None => entries.clone(),
        Some(_) => {
            unknown("TLB entries are not known to be large natively, so small ones in a guest tell nothing".to_owned())
        }
        None => unknown(
            "how this KVM translates is not known, and small TLB entries may be the doing of any layer".to_owned(),
        ),
    }
}

fn by_walks(walks: Option<&Walks>, entries: &HostBacking) -> HostBacking {
    let Some(walks) = walks else {
        return unknown("too few undisturbed passes; measure again on a quieter machine".to_owned());
    };
    let seen = told(walks);
    let Some(share) = walks.share else {
        return unknown(format!("{seen}: the references do not differ clearly"));
    };
    let Some(verdict) = settled(share) else {
        return unknown(format!(
            "{seen}: in between, as a busy machine or a mixture of pages makes it"
        ));
    };
    let mut evidence = vec![seen];
    if verdict == Verdict::None && entries.verdict == Verdict::Small {
        evidence.push(
            "TLB entries are small all the same: this machine is itself virtual, and the host below splinters what it holds large"
                .to_owned(),
        );
    }
    HostBacking {
        verdict,
        confidence: confidence(verdict, share.low, share.high),
        splintered: Some(share.median.clamp(0.0, 1.0)),
        evidence,
    }
}

/// What a place between the references means, if all of its interval means the same.
pub(super) fn settled(share: Estimate) -> Option<Verdict> {
    if share.low >= SPLIT_FROM {
        return Some(Verdict::Small);
    }
    (share.high <= WHOLE_TO).then_some(Verdict::None)
}

/// How far the interval keeps from the other verdict's side, from 0 to 1.
fn confidence(verdict: Verdict, low: f64, high: f64) -> f64 {
    let distance = match verdict {
        Verdict::Small => (low - WHOLE_TO) / (1.0 - WHOLE_TO),
        _ => (SPLIT_FROM - high) / SPLIT_FROM,
    };
    distance.clamp(0.0, 1.0)
}

fn told(walks: &Walks) -> String {
    let share = walks.share.map_or(String::new(), |share| {
        format!(
            ", {:.2} ({:.2} to {:.2}) of the way",
            share.median, share.low, share.high
        )
    });
    format!(
        "{} lines in turn cost {:.0} cycles each through large pages, {:.0} as if splintered, {:.0} as if not{share}",
        walks.lines, walks.large.median, walks.apart.median, walks.row.median
    )
}

pub(super) fn unknown(why: String) -> HostBacking {
    HostBacking {
        verdict: Verdict::Unknown,
        confidence: 0.0,
        splintered: None,
        evidence: vec![why],
    }
}

/// What KVM's leaves are: by its count, else by what the kernel says lies behind.
pub(super) fn leaf(leaves: Option<Leaves>, backing: &Backed) -> Verdict {
    let large = match leaves {
        Some(leaves) if leaves.visited > 0 => Some(leaves.large as f64 / leaves.visited as f64),
        _ => backing.got.coverage(),
    };
    match large {
        Some(share) if share >= ALL => Verdict::None,
        Some(share) if share <= 1.0 - ALL => Verdict::Small,
        _ => Verdict::Unknown,
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
