//! What a page-table walk costs, by where the page-table entries are, and whether two kinds share TLB entries.

use std::io;

use chase::clock::CoreClock;
use chase::tlbwalk::{Behind, Span};
use model::{Bytes, PageKind};

use super::live::Pages;
use super::occupancy::shuffled;

/// Page-table entries in one cache line: pages that far apart have entries in lines of their own.
const APART: u64 = 8;
const LINE: u64 = 64;
/// Pages visited in all passes over one footprint, about: a walk to memory takes 100 ns, and each pass makes a few laps.
const VISITS: u64 = 400_000;
/// Passes over a footprint that alone exceeds that.
const FEWEST_PASSES: u64 = 3;

/// Pages and added cycles per access, one value per undisturbed pass.
pub struct Measured {
    /// Pages visited in turn.
    pub pages: u64,
    /// Lines of last-level page-table entries they need.
    pub entry_bytes: Bytes,
    /// Cycles above a first-level hit.
    pub cycles: Vec<f64>,
}

/// Visits aliased pages whose page-table entries fill `entry_bytes` of cache lines.
///
/// # Errors
/// If address space is refused.
pub fn walks(
    pages: Pages,
    other: Pages,
    entry_bytes: &[Bytes],
    passes: u64,
    clock: &CoreClock,
) -> io::Result<Vec<Measured>> {
    let most = entry_bytes.iter().map(|bytes| bytes.0 / LINE).max().unwrap_or(0);
    let mut span = Span::reserve(pages.kind, pages.size, (most * APART).max(1), Behind::OnePage)?;
    let list_bytes = Bytes(most * 8).round_up_to(other.size);
    let mut list = Span::reserve(
        other.kind,
        other.size,
        (list_bytes.0 / other.size.0).max(1),
        Behind::Private,
    )?;
    let mut cost = |count: u64, pass: u64| {
        let order = shuffled(count as usize, pass);
        let offsets: Vec<u64> = order.into_iter().map(|at| at as u64 * APART * pages.size.0).collect();
        span.listed(&offsets, &mut list).cycles(clock)
    };
    // Eight aliases hit everywhere and carry the constant, if any, that aliases cost.
    let hit = (0..20).filter_map(|pass| cost(8, pass)).fold(f64::INFINITY, f64::min);
    let measured = entry_bytes.iter().map(|&entry_bytes| {
        let count = entry_bytes.0 / LINE;
        let passes = (VISITS / count.max(1)).clamp(FEWEST_PASSES.min(passes), passes);
        Measured {
            pages: count,
            entry_bytes,
            cycles: (0..passes)
                // Long laps meet a changed clock more often: a few more tries.
                .filter_map(|pass| (0..4).find_map(|_| cost(count, pass)))
                .map(|cost| cost - hit)
                .collect(),
        }
    });
    Ok(measured.collect())
}

/// What two kinds cost together and alone.
#[derive(Clone, Copy, Debug)]
pub struct Together {
    /// Cycles of an access when only either kind is visited, the dearer of both.
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
fn taken(kinds: [(Pages, u32); 2]) -> [(Pages, u64); 2] {
    kinds.map(|(pages, entries)| (pages, u64::from(entries) * 5 / 8))
}

/// Memory that [`together`] takes.
pub fn memory(kinds: [(Pages, u32); 2]) -> Bytes {
    Bytes(taken(kinds).iter().map(|(pages, count)| pages.size.0 * count).sum())
}

/// Visits five eighths of a level's entries of each kind, alone and both in turn.
///
/// # Errors
/// If memory is refused.
pub fn together(kinds: [(Pages, u32); 2], passes: u64, clock: &CoreClock) -> io::Result<Together> {
    let [(one, ones), (two, twos)] = taken(kinds);
    let mut first = Span::reserve(one.kind, one.size, ones.max(1), Behind::Private)?;
    let mut second = Span::reserve(two.kind, two.size, twos.max(1), Behind::Private)?;
    let offsets = |page: Bytes, count: u64, skip: u64, pass: u64| -> Vec<u64> {
        let order = shuffled(count.max(1) as usize, pass);
        order
            .into_iter()
            // Another line in each page, so that data stays in the caches.
            .map(|at| at as u64 * page.0 + (at as u64 + skip) % (page.0 / LINE) * LINE)
            .collect()
    };
    let (mut apart, mut both) = ([f64::INFINITY; 2], f64::INFINITY);
    for pass in 0..passes {
        let here = offsets(one.size, ones, 0, pass);
        let there = offsets(two.size, twos, ones, pass);
        apart[0] = first
            .ring(&here)
            .cycles(clock)
            .map_or(apart[0], |cost| cost.min(apart[0]));
        apart[1] = second
            .ring(&there)
            .cycles(clock)
            .map_or(apart[1], |cost| cost.min(apart[1]));
        both = first
            .ring_with(&here, &mut second, &there)
            .cycles(clock)
            .map_or(both, |cost| cost.min(both));
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
    use model::Bytes;
    use sim::tlb::{Array, Tlb};

    use super::Together;

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
}
