//! From evidence to a verdict on what the host puts behind a guest's huge pages, and whether the verdict is right. Pure.

use std::fmt;

use host::snapshot::Mmu;
use measure::tlb::backing::{self, Split};
use model::tlb::{HostBacking, Verdict};
use model::{Backing, Estimate};

use super::walks::Walks;

/// Page-table leaves by size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaves {
    /// Huge guest pages that were visited.
    pub(crate) visited: u64,
    /// Leaves of 4 KiB (KVM's `pages_4k`).
    pub(crate) small: u64,
    /// Leaves of 2 MiB (`pages_2m`).
    pub(crate) large: u64,
}

impl fmt::Display for Leaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of 2M and {} of 4K", self.large, self.small)
    }
}

/// How the detector did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Timing names what KVM's leaves are made of.
    Right,
    /// Timing names nothing, or a layer below this machine may have splintered what KVM maps large.
    Unknown,
    /// Timing contradicts KVM's leaves.
    Wrong,
}

impl Outcome {
    /// Holds what timing `named` against the `truth`, where timing says `native` of this machine's own huge pages.
    pub(crate) fn of(truth: Verdict, named: Verdict, native: Verdict) -> Self {
        let is_right = match (truth, named) {
            (Verdict::Unknown, _) | (_, Verdict::Unknown) => return Self::Unknown,
            (Verdict::Small, named) => named == Verdict::Small,
            (_, Verdict::Small) if native != Verdict::None => return Self::Unknown,
            (_, named) => named != Verdict::Small,
        };
        if is_right { Self::Right } else { Self::Wrong }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "right",
            Self::Unknown => "unknown",
            Self::Wrong => "WRONG",
        })
    }
}

/// Up to this place between the references, huge pages are whole; from the other one on they are splintered. In between, a
/// busy machine or a mixture of pages allows no verdict.
const WHOLE_TO: f64 = 0.35;
const SPLIT_FROM: f64 = 0.5;
/// From this share on, memory counts as all of one kind.
pub(crate) const ALL: f64 = 0.95;

/// What TLB entries alone show.
pub(crate) fn by_entries(split: Split) -> HostBacking {
    backing::verdict(Some(split), None, true)
}

/// The verdict. Under shadow paging only the hypervisor's table is walked, and the cost of walks shows how it is made.
/// Under nested paging, walks through small guest pages also read the guest's own entries, whatever the host's page size.
/// There the TLB entries decide, unless they are small `native`ly too.
pub(crate) fn decide(
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
            unknown("TLB entries are not known to be large natively, so small ones in a guest prove nothing".to_owned())
        }
        None => unknown(
            "how this KVM translates is not known, and any layer may have made the TLB entries small".to_owned(),
        ),
    }
}

fn by_walks(walks: Option<&Walks>, entries: &HostBacking) -> HostBacking {
    let Some(walks) = walks else {
        return unknown("too few undisturbed passes; measure again on a quieter machine".to_owned());
    };
    let seen = costs(walks);
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
            "TLB entries are small all the same: this machine is itself virtual, and the host below splinters its huge pages"
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
pub(crate) fn settled(share: Estimate) -> Option<Verdict> {
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

fn costs(walks: &Walks) -> String {
    let share = walks.share.map_or(String::new(), |share| {
        format!(
            ", {:.2} ({:.2} to {:.2}) of the way",
            share.median, share.low, share.high
        )
    });
    format!(
        "{} lines in turn cost {:.0} cycles each through huge pages, {:.0} as if splintered, {:.0} as if not{share}",
        walks.lines, walks.large.median, walks.apart.median, walks.row.median
    )
}

pub(crate) fn unknown(why: String) -> HostBacking {
    HostBacking {
        verdict: Verdict::Unknown,
        confidence: 0.0,
        splintered: None,
        evidence: vec![why],
    }
}

/// What KVM's leaves are made of: by its own count, else by what the kernel reports behind the guest.
pub(crate) fn leaf(leaves: Option<Leaves>, backing: &Backing) -> Verdict {
    let large = match leaves {
        Some(leaves) if leaves.visited > 0 => Some(leaves.large as f64 / leaves.visited as f64),
        _ => backing.coverage(),
    };
    match large {
        Some(share) if share >= ALL => Verdict::None,
        Some(share) if share <= 1.0 - ALL => Verdict::Small,
        _ => Verdict::Unknown,
    }
}
