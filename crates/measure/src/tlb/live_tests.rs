//! The live oracle on this machine: arenas made to imitate a host's backing, and what is not available.

use chase::clock::CoreClock;
use model::tlb::{HostBacking, Verdict};
use model::{Bytes, PageKind};

use super::Live;
use crate::tlb::backing::{Area, Regions, sample, verdict};
use crate::tlb::probe::{Layout, Oracle, Probe, Sweep};
use crate::tlb::sampled::Sampled;

const LARGE: Bytes = Bytes::mib(2);
/// Beyond any known first level, as when nothing is known about this machine.
const LINES: u32 = 200;

/// Regions of which some behave as one page: their lines stand on as few small pages as hold them.
struct Whole<'a> {
    arena: Sampled<'a>,
    whole: fn(usize) -> bool,
}

impl Regions for Whole<'_> {
    fn count(&self) -> usize {
        self.arena.count()
    }

    fn cost(&mut self, area: Area, lines: u32, pass: u32) -> Option<f64> {
        match area {
            Area::Region(region) if (self.whole)(region) => self.arena.cost(Area::Dense, lines, pass),
            other => self.arena.cost(other, lines, pass),
        }
    }
}

fn judge(whole: fn(usize) -> bool) -> HostBacking {
    let clock = CoreClock::new();
    let arena = Sampled::imitated(LARGE, PageKind::Base, 16, LINES.into(), &clock).expect("32 MiB of address space");
    let mut regions = Whole { arena, whole };
    verdict(Some(sample(&mut regions, LINES, 24, &|| false)), None, true)
}

#[test]
fn an_arena_of_small_pages_that_pretends_to_be_large_is_never_taken_for_whole() {
    let backing = judge(|_| false);
    assert!(
        [Verdict::Small, Verdict::Unknown].contains(&backing.verdict),
        "{backing:?}"
    );
}

#[test]
fn an_arena_that_behaves_as_large_is_never_taken_for_splintered() {
    let backing = judge(|_| true);
    assert!(
        [Verdict::None, Verdict::Unknown].contains(&backing.verdict),
        "{backing:?}"
    );
}

#[test]
fn a_mixed_arena_is_told_with_its_share() {
    let backing = judge(|region| region % 2 == 0);
    assert!(
        backing.verdict == Verdict::Unknown || backing.splintered.is_some_and(|share| (0.3..0.7).contains(&share)),
        "{backing:?}"
    );
}

#[test]
fn few_pages_cost_less_than_very_many() {
    let clock = CoreClock::new();
    let mut live = Live::new(PageKind::Base, PageKind::Thp, &clock, Bytes::gib(2)).expect("address space");
    let mut floor = |sweep, pages| {
        let probe = Probe {
            sweep,
            layout: Layout::DENSE,
            pages,
        };
        (0..50)
            .filter_map(|pass| live.cost(probe, pass))
            .fold(f64::INFINITY, f64::min)
    };
    let few = floor(Sweep::Far, 8);
    let many = floor(Sweep::Far, 8192);
    assert!(few < many, "8 pages {few}, 8192 pages {many}");
    assert!(floor(Sweep::Near, 4).is_finite());
}

#[test]
fn a_pool_that_is_empty_or_absent_is_an_error_and_not_a_zero() {
    let clock = CoreClock::new();
    let absent = PageKind::Hugetlb(Bytes::gib(1 << 10));
    assert!(Live::new(absent, PageKind::Base, &clock, Bytes::gib(2)).is_err());
}
