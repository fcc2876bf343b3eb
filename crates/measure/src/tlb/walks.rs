//! What a page-table walk costs, by where the page-table entries are, and whether two kinds share TLB entries.

use std::io;
use std::time::{Duration, Instant};

use chase::clock::CoreClock;
use chase::tlbwalk::{Behind, Span};
use model::tlb::Walk;
use model::{Bytes, PageKind};
use stats::rounds;

use super::live::{proved, tables};

/// Page-table entries in one cache line: pages that far apart have entries in lines of their own.
const APART: u64 = 8;
const LINE: u64 = 64;
/// Regions that are looked at before they are used.
const PROVED: u64 = 4;
/// From so many pages on a lap takes milliseconds, and from so many on every other round visits them: theirs take half a second.
const MANY: u64 = 1 << 16;
const VERY_MANY: u64 = 1 << 19;
/// Timed laps whose median stands for all of them.
const GROUP: usize = 3;
/// A group of laps that is cheaper than the one before by less than this share is no longer on its way.
const ALIKE: f64 = 0.02;
/// A visit ends after this time although laps still become cheaper.
const LONGEST_VISIT: Duration = Duration::from_millis(400);

/// Visits aliased pages whose page-table entries fill `entry_bytes` of cache lines. The times of these walks are still in cycles.
///
/// All footprints are visited in each round, so that a visit finds its page-table lines displaced by the others, and goes on
/// until laps are alike: what a walk costs depends on which caches hold these lines, and only laps bring them back.
///
/// # Errors
/// If address space is refused, or the pages cannot be proved to be of that kind.
pub fn walks(
    kind: PageKind,
    other: PageKind,
    entry_bytes: &[Bytes],
    rounds: u64,
    clock: &CoreClock,
) -> io::Result<Vec<Walk>> {
    let most = entry_bytes.iter().map(|bytes| bytes.0 / LINE).max().unwrap_or(0);
    let mut span = Span::reserve(kind, most * APART, Behind::OnePage)?;
    let page = kind.x86_size();
    proved(kind, &mut span, PageKind::Thp.x86_size().max(page), PROVED)?;
    let mut list = Span::reserve(other, (most * 8).div_ceil(other.x86_size().0), Behind::Private)?;
    let mut visit = |count: u64, round: u64, budget: Duration| {
        let order = rounds::order(count as usize, round, 0);
        let offsets: Vec<u64> = order.into_iter().map(|at| at as u64 * APART * page.0).collect();
        let tour = span.listed(&offsets, &mut list);
        // One lap of very many pages is a sample large enough.
        let group = if count < MANY { GROUP } else { 1 };
        converged(|| tour.cycles(clock), group, budget)
    };
    // Eight aliases hit everywhere and carry the constant, if any, that aliases cost.
    let hits = (0..20).filter_map(|round| visit(8, round, Duration::ZERO));
    let hit = hits.map(|lap| lap.cycles).fold(f64::INFINITY, f64::min);
    let mut visits: Vec<Vec<Lap>> = vec![Vec::new(); entry_bytes.len()];
    for round in 0..rounds {
        for (bytes, visits) in entry_bytes.iter().zip(&mut visits) {
            let pages = bytes.0 / LINE;
            if pages < VERY_MANY || round % 2 == 0 {
                visits.extend(visit(pages, round, LONGEST_VISIT));
            }
        }
    }
    let walk = |(&entry_bytes, visits): (&Bytes, &Vec<Lap>)| {
        let above: Vec<f64> = visits.iter().map(|lap| lap.cycles - hit).collect();
        let cycles = stats::of_medians(&above)?;
        Some(Walk {
            kind,
            pages: entry_bytes.0 / LINE,
            entry_bytes,
            cycles,
            ns: cycles,
            converged: visits.iter().all(|lap| lap.converged),
        })
    };
    Ok(entry_bytes.iter().zip(&visits).filter_map(walk).collect())
}

/// What a visit came to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lap {
    cycles: f64,
    converged: bool,
}

/// Goes round until a group of laps costs no less than the group before, but for noise, or the time is over. `None` if all
/// groups were disturbed.
fn converged(mut lap: impl FnMut() -> Option<f64>, group: usize, budget: Duration) -> Option<Lap> {
    let begun = Instant::now();
    let mut next = || {
        // Long laps meet a changed clock more often: a few more tries.
        let laps: Vec<f64> = (0..4 * group).filter_map(|_| lap()).take(group).collect();
        stats::median(&laps)
    };
    let mut before = next();
    loop {
        let after = next();
        let settled = before
            .zip(after)
            .is_some_and(|(before, after)| after >= (1.0 - ALIKE) * before);
        if settled || begun.elapsed() >= budget {
            let cycles = after.or(before)?;
            return Some(Lap {
                cycles,
                converged: settled,
            });
        }
        before = after.or(before);
    }
}

/// Memory that walks over so much of page tables take: those tables, and the list of what is visited.
pub fn takes(kind: PageKind, other: PageKind, entry_bytes: Bytes) -> Bytes {
    let count = entry_bytes.0 / LINE;
    Bytes(tables(kind, count * APART, count).0 + Bytes(count * 8).round_up_to(other.x86_size()).0)
}

/// What two kinds cost together and alone.
#[derive(Clone, Copy, Debug)]
pub struct Together {
    /// Cycles of an access when only either kind is visited, the more expensive of both.
    pub apart: f64,
    /// Cycles of an access when both are visited in turn.
    pub together: f64,
}

impl Together {
    /// Shared entries overflow and cost about `penalty` more; separate ones do not. `None` in between.
    pub fn shared(self, penalty: f64) -> Option<bool> {
        match (self.together - self.apart) / penalty {
            share if share > 0.6 => Some(true),
            share if share < 0.25 => Some(false),
            _ => None,
        }
    }
}

/// Of each kind, five eighths of its entries: as many fit alone, and not together.
fn taken(kinds: [(PageKind, u32); 2]) -> [(PageKind, u64); 2] {
    kinds.map(|(kind, entries)| (kind, u64::from(entries) * 5 / 8))
}

/// Memory that [`together`] takes.
pub fn memory(kinds: [(PageKind, u32); 2]) -> Bytes {
    Bytes(taken(kinds).iter().map(|(kind, count)| kind.x86_size().0 * count).sum())
}

/// Visits five eighths of a level's entries of each kind, alone and both in turn.
///
/// # Errors
/// If memory is refused.
pub fn together(kinds: [(PageKind, u32); 2], passes: u64, clock: &CoreClock) -> io::Result<Together> {
    let [(one, ones), (two, twos)] = taken(kinds);
    let mut first = Span::reserve(one, ones, Behind::Private)?;
    let mut second = Span::reserve(two, twos, Behind::Private)?;
    for (kind, count, span) in [(one, ones, &mut first), (two, twos, &mut second)] {
        if kind.is_large() {
            proved(kind, span, kind.x86_size(), count.max(1))?;
        }
    }
    let offsets = |kind: PageKind, count: u64, skip: u64, pass: u64| -> Vec<u64> {
        let page = kind.x86_size();
        let order = rounds::order(count.max(1) as usize, pass, 0);
        order
            .into_iter()
            // Another line in each page, so that data stays in the caches.
            .map(|at| at as u64 * page.0 + (at as u64 + skip) % (page.0 / LINE) * LINE)
            .collect()
    };
    let (mut apart, mut both) = ([f64::INFINITY; 2], f64::INFINITY);
    let least = |seen: f64, cost: Option<f64>| cost.map_or(seen, |cost| cost.min(seen));
    for pass in 0..passes {
        let here = offsets(one, ones, 0, pass);
        let there = offsets(two, twos, ones, pass);
        apart[0] = least(apart[0], first.ring(&here).cycles(clock));
        apart[1] = least(apart[1], second.ring(&there).cycles(clock));
        both = least(both, first.ring_with(&here, &mut second, &there).cycles(clock));
    }
    Ok(Together {
        apart: apart[0].max(apart[1]),
        together: both,
    })
}

/// Base-page entries that fill these caches: near, a typical second level, and beyond it.
pub fn footprints(kind: PageKind, thorough: bool) -> Vec<Bytes> {
    let mut all = vec![Bytes::kib(32), Bytes::kib(64)];
    if kind == PageKind::Base {
        all.extend([Bytes::kib(512), Bytes::mib(2)]);
        if thorough {
            all.extend([Bytes::mib(8), Bytes::mib(32)]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::tlb::simulated_tlb::{Array, Tlb};
    use model::Bytes;

    use std::time::Duration;

    use super::{Lap, Together, converged};

    const SMALL: Bytes = Bytes::kib(4);
    const LARGE: Bytes = Bytes::mib(2);
    const PENALTY: f64 = 7.0;

    /// Mean cost of the third lap in which so many pages of each size take turns.
    fn lap(arrays: &[Array], small: u64, large: u64) -> f64 {
        let mut tlb = Tlb::new(arrays, PENALTY);
        let mut total = 0.0;
        for _ in 0..3 {
            total = (0..small.max(large))
                .flat_map(|page| [(SMALL, page, small), (LARGE, page, large)])
                .filter(|(_, page, pages)| page < pages)
                .map(|(size, page, _)| tlb.access(size, page))
                .sum();
        }
        total / (small + large) as f64
    }

    /// The verdict on levels of so many entries for either size.
    fn shared(arrays: &[Array], entries: u64) -> Option<bool> {
        let (one, two) = (entries * 5 / 8, entries * 5 / 8);
        let seen = Together {
            apart: lap(arrays, one, 0).max(lap(arrays, 0, two)),
            together: lap(arrays, one, two),
        };
        seen.shared(PENALTY)
    }

    #[test]
    fn sizes_that_compete_for_entries_are_told_from_sizes_that_have_their_own() {
        let both = Array {
            holds: vec![SMALL, LARGE],
            ..Array::new(1, SMALL, 1, 64, 0.0)
        };
        let own = [Array::new(1, SMALL, 1, 64, 0.0), Array::new(1, LARGE, 1, 64, 0.0)];
        assert_eq!(shared(&[both], 64), Some(true));
        assert_eq!(shared(&own, 64), Some(false));
        let between = Together {
            apart: 4.0,
            together: 4.0 + 0.4 * PENALTY,
        };
        assert_eq!(between.shared(PENALTY), None);
    }

    #[test]
    fn second_levels_are_told_behind_first_levels_of_either_way() {
        let array = |level, page, sets, ways| Array::new(level, page, sets, ways, 0.0);
        let second = Array {
            holds: vec![SMALL, LARGE],
            ..array(2, SMALL, 128, 12)
        };
        let both = Array {
            holds: vec![SMALL, LARGE],
            ..array(1, SMALL, 1, 64)
        };
        let firsts = [vec![both], vec![array(1, SMALL, 16, 4), array(1, LARGE, 8, 4)]];
        for first in firsts {
            let shared_second = [first.clone(), vec![second.clone()]].concat();
            assert_eq!(shared(&shared_second, 1536), Some(true));
            let own = vec![array(2, SMALL, 128, 12), array(2, LARGE, 128, 12)];
            assert_eq!(shared(&[first, own].concat(), 1536), Some(false));
        }
    }

    #[test]
    fn a_visit_goes_on_until_laps_cost_no_less_and_says_if_they_never_did() {
        let falling = |end: i32| {
            let mut laps = 0;
            move || {
                laps += 1;
                Some(f64::from((200 - 10 * laps).max(end)))
            }
        };
        let lap = converged(falling(100), 3, Duration::from_secs(60)).expect("laps");
        let settled = Lap {
            cycles: 100.0,
            converged: true,
        };
        assert_eq!(lap, settled);
        let lap = converged(falling(0), 3, Duration::ZERO).expect("laps");
        assert!(!lap.converged && lap.cycles < 200.0, "{lap:?}");
        assert_eq!(converged(|| None, 3, Duration::ZERO), None);
        let mut disturbed = 0;
        let half = || {
            disturbed += 1;
            (disturbed % 2 == 0).then_some(7.0)
        };
        assert_eq!(converged(half, 1, Duration::ZERO).map(|lap| lap.cycles), Some(7.0));
    }
}
