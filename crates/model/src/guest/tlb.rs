//! The shape of TLB discovery inside a KVM guest whose host backing is chosen: what timing says, beside what is true.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GuestPage;
use crate::latency::Backed;
use crate::tlb::{Entries, HostBacking, Level, Verdict, Ways};
use crate::{Estimate, PageKind, Reading};

/// The whole measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuestTlb {
    /// How guest addresses are translated: `ept`, `npt`, `shadow-vmx`, `shadow-svm` or `shadow-pvm`.
    pub mmu: Reading<String>,
    /// What timing says of this machine's own huge pages, outside of any guest: what layers below this machine make of them.
    pub native: HostBacking,
    /// One entry for each page kind that was put behind the guest.
    pub behind: Vec<Behind>,
    /// What reading out the TLB by changed page-table entries gave, or why it cannot be done here.
    pub readout: Readout,
    /// The CPU the timed thread was pinned to.
    pub cpu: u32,
    /// Seconds from start to end, set-up included.
    pub seconds: f64,
}

/// One page kind behind a guest that maps its memory with 2 MiB pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Behind {
    /// The kind that was chosen.
    pub kind: PageKind,
    /// What the host's kernel says lies behind the guest's memory.
    pub backing: Backed,
    /// Page-table leaves that KVM made for the guest's large pages; `null` if it does not count them.
    pub kvm: Option<Leaves>,
    /// What KVM's own leaves are made of, by its count, or by the kernel's account without one. No program in the guest can
    /// feel larger pages than these.
    pub leaf: Verdict,
    /// What timing inside the guest says of the host's pages; `entries` has what the TLBs hold, the smallest page of all layers.
    pub verdict: HostBacking,
    /// Does that go together with the leaves and with what timing says natively? `null` if too little is known to tell, as
    /// where a layer below this machine may splinter what KVM maps large.
    pub consistent: Option<bool>,
    /// What the TLBs' own entries say: the smallest page of all layers, hosts of this machine included.
    pub entries: Option<HostBacking>,
    /// What walks cost.
    pub walks: Option<Walks>,
    /// TLB levels as the guest sees them.
    pub levels: Vec<GuestLevel>,
    /// Why nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

impl Behind {
    /// Does what timing says go together with KVM's leaves, where timing says `native` of this machine's own huge pages?
    pub fn is_consistent(&self, native: Verdict) -> Option<bool> {
        match (self.leaf, self.verdict.verdict) {
            (Verdict::Unknown, _) | (_, Verdict::Unknown) => None,
            (Verdict::Small, effective) => Some(effective == Verdict::Small),
            (_, Verdict::Small) if native != Verdict::None => None,
            (_, effective) => Some(effective != Verdict::Small),
        }
    }
}

/// Page-table leaves by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leaves {
    /// Large guest pages that were visited.
    pub visited: u64,
    /// Leaves of 4 KiB (KVM's `pages_4k`).
    pub small: u64,
    /// Leaves of 2 MiB (`pages_2m`).
    pub large: u64,
}

impl fmt::Display for Leaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} leaves of 2M and {} of 4K for {} large guest pages",
            self.large, self.small, self.visited
        )
    }
}

/// Core cycles of one access when more lines are visited in turn than any TLB holds pages, the same lines in three ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Walks {
    /// Lines visited.
    pub lines: u64,
    /// Through large guest pages.
    pub large: Estimate,
    /// Through small guest pages with page-table entries far apart: as if the large ones were splintered.
    pub apart: Estimate,
    /// Through small guest pages with page-table entries side by side.
    pub row: Estimate,
    /// How far the first way is from the third towards the second, by the lower quartile of each: 0 as if held whole, 1 as if
    /// splintered; `null` where the references do not differ clearly.
    pub share: Option<Estimate>,
    /// Passes that were thrown away because the core clock changed.
    pub dropped: u64,
}

/// A TLB level as one guest page size sees it. The level's `kind` is what lies behind the guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GuestLevel {
    /// The page size of the guest's own tables.
    pub guest_page: GuestPage,
    /// What was found.
    #[serde(flatten)]
    pub level: Level,
}

/// TLB content read out: a page-table entry is changed without a flush, and whoever still reads the old page has the old
/// entry in the TLB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Readout {
    /// It can be done here.
    Seen {
        /// Entries for 4 KiB pages in all levels together, less the few that the probe itself takes.
        entries: Entries,
        /// Entries of one set of the last level; `null` if sets are found by a hash or there is one only.
        ways: Option<Ways>,
        /// Are the latest pages held and no others, as with LRU?
        latest_first: bool,
    },
    /// A changed entry does not tell here whether the TLB holds the old one.
    Blind {
        /// Why.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::{Behind, Readout};
    use crate::latency::Backed;
    use crate::tlb::{Entries, HostBacking, Verdict, Ways};
    use crate::{Backing, PageKind};

    fn behind(leaf: Verdict, verdict: Verdict) -> Behind {
        Behind {
            kind: PageKind::Base,
            backing: Backed {
                asked: PageKind::Base,
                got: Backing::new(),
                proof: String::new(),
            },
            kvm: None,
            leaf,
            verdict: HostBacking {
                verdict,
                confidence: 0.0,
                splintered: None,
                evidence: Vec::new(),
            },
            consistent: None,
            entries: None,
            walks: None,
            levels: Vec::new(),
            not_measured: None,
        }
    }

    #[test]
    fn the_effective_size_is_never_larger_than_a_leaf_and_smaller_only_where_a_layer_below_may_make_it_so() {
        use Verdict::{None as Whole, Small, Unknown};
        let consistent = |leaf, effective, native| behind(leaf, effective).is_consistent(native);
        for native in [Whole, Small, Unknown] {
            assert_eq!(consistent(Small, Small, native), Some(true));
            assert_eq!(consistent(Small, Whole, native), Some(false));
            assert_eq!(consistent(Whole, Whole, native), Some(true));
            assert_eq!(consistent(Small, Unknown, native), None);
            assert_eq!(consistent(Unknown, Small, native), None);
        }
        // A host on 4 KiB pages below this machine, seen on a Zen 5 cloud guest: KVM's leaves are large and no program feels it.
        assert_eq!(consistent(Whole, Small, Small), None);
        assert_eq!(consistent(Whole, Small, Unknown), None);
        assert_eq!(consistent(Whole, Small, Whole), Some(false));
    }

    #[test]
    fn a_readout_is_told_by_its_state() {
        let seen = Readout::Seen {
            entries: Entries { low: 70, high: 74 },
            ways: Some(Ways::Count(4)),
            latest_first: true,
        };
        let json = serde_json::to_string(&seen).expect("writes");
        assert_eq!(
            json,
            r#"{"state":"seen","entries":{"value":null,"low":70,"high":74},"ways":4,"latest_first":true}"#
        );
        assert_eq!(serde_json::from_str::<Readout>(&json).expect("reads"), seen);
    }
}
