//! How many accesses miss when pages take turns: how full the sets are, and what true LRU makes of it.

use model::tlb::Hash;

use super::probe::Layout;

/// `(pages in a set, sets with so many)` for the sets that are used at all, by ascending number of pages.
pub type Histogram = Vec<(u32, u32)>;

/// The sets of one array while more and more pages of a layout are visited.
struct Filling {
    layout: Layout,
    hash: Hash,
    pages: u32,
    sets: Vec<u32>,
    /// How many sets hold so many pages.
    holding: Vec<u32>,
    /// Fewest pages in a set that is used: of very many numbers of pages only a few occur, and these stand together.
    fewest: usize,
}

impl Filling {
    fn new(layout: Layout, sets: u32, hash: Hash) -> Self {
        Self {
            layout,
            hash,
            pages: 0,
            sets: vec![0; sets as usize],
            holding: vec![sets],
            fewest: 1,
        }
    }

    /// Adds the next page and returns how many pages its set holds then.
    fn add(&mut self) -> u32 {
        let set = self.hash.set(self.layout.page(self.pages), self.sets.len() as u32);
        self.pages += 1;
        let held = &mut self.sets[set as usize];
        self.holding[*held as usize] -= 1;
        *held += 1;
        if self.holding.len() <= *held as usize {
            self.holding.push(0);
        }
        self.holding[*held as usize] += 1;
        if *held == 1 {
            self.fewest = 1;
        }
        while self.holding[self.fewest] == 0 {
            self.fewest += 1;
        }
        *held
    }

    fn histogram(&self) -> Histogram {
        let filled = (0..).zip(&self.holding).skip(self.fewest);
        filled
            .filter(|(_, sets)| **sets > 0)
            .map(|(pages, &sets)| (pages, sets))
            .collect()
    }
}

/// How full the sets are at each of these numbers of pages, which ascend.
pub fn fill(layout: Layout, sets: u32, hash: Hash, pages: impl Iterator<Item = u32>) -> Vec<Histogram> {
    let mut filling = Filling::new(layout, sets, hash);
    pages
        .map(|pages| {
            while filling.pages < pages {
                filling.add();
            }
            filling.histogram()
        })
        .collect()
}

/// The most pages of a layout, up to `most`, that all fit.
pub fn capacity(layout: Layout, sets: u32, ways: u32, hash: Hash, most: u32) -> u32 {
    capacities(layout, sets, hash, std::iter::once(ways), most)[0]
}

/// The same for each of these numbers of ways, which ascend.
pub fn capacities(layout: Layout, sets: u32, hash: Hash, ways: impl Iterator<Item = u32>, most: u32) -> Vec<u32> {
    let mut filling = Filling::new(layout, sets, hash);
    let mut fullest = 0;
    ways.map(|ways| {
        while fullest <= ways && filling.pages < most {
            fullest = fullest.max(filling.add());
        }
        if fullest > ways { filling.pages - 1 } else { most }
    })
    .collect()
}

/// Share of all accesses that miss in sets so filled: going round and round, every page of an overfull LRU set is gone by the
/// time of its next turn.
pub fn misses(histogram: &Histogram, ways: u32) -> f64 {
    let (mut missed, mut all) = (0u64, 0u64);
    for &(pages, sets) in histogram {
        let here = u64::from(pages) * u64::from(sets);
        all += here;
        missed += if pages > ways { here } else { 0 };
    }
    missed as f64 / all.max(1) as f64
}

/// About the least share of all accesses that miss in sets so filled, whatever is replaced: picking at random keeps hardly more
/// of pages that take turns, and nothing that is built does much better.
pub fn least_misses(histogram: &Histogram, ways: u32) -> f64 {
    let (mut missed, mut all) = (0.0, 0.0);
    for &(pages, sets) in histogram {
        let here = f64::from(pages) * f64::from(sets);
        let held = f64::from(ways.min(pages)) / f64::from(pages);
        all += here;
        missed += here * (1.0 - held * held);
    }
    missed / f64::max(all, 1.0)
}

#[cfg(test)]
mod tests {
    use crate::tlb::simulated_tlb::{Array, Replacement, Tlb};
    use model::Bytes;
    use model::tlb::Hash;
    use stats::rounds;

    use super::{Layout, capacity, fill, least_misses, misses};

    #[test]
    fn one_page_too_many_overfills_one_set() {
        let filled = fill(Layout::DENSE, 16, Hash::Linear, [96, 97].into_iter());
        assert_eq!(filled, [vec![(6, 16)], vec![(6, 15), (7, 1)]]);
        assert_eq!(misses(&filled[0], 6), 0.0);
        assert!((misses(&filled[1], 6) - 7.0 / 97.0).abs() < 1e-9);
        let strided = fill(Layout::strided(4), 16, Hash::Linear, [7].into_iter());
        assert_eq!(misses(&strided[0], 6), 1.0);
    }

    #[test]
    fn what_fits_halves_with_each_doubling_of_the_stride_until_one_set_is_left() {
        let fitting = |hash| [0, 1, 4, 5].map(|stride| capacity(Layout::strided(stride), 16, 6, hash, 1000));
        assert_eq!(fitting(Hash::Linear), [96, 48, 6, 6]);
        assert_eq!(
            fitting(Hash::Fold),
            [96; 4],
            "hashed pages spread over all sets at any stride"
        );
        assert_eq!(capacity(Layout::DENSE, 16, 6, Hash::Linear, 50), 50);
    }

    /// Share of misses when so many pages of one set take turns, each lap in another order.
    fn missed(replacement: Replacement, ways: u32, pages: u32) -> f64 {
        const PAGE: Bytes = Bytes::kib(4);
        let array = Array {
            replacement,
            ..Array::new(1, PAGE, 1, ways, 0.0)
        };
        let mut tlb = Tlb::new(&[array], 1.0);
        let mut lap = |seed| -> f64 {
            let order = rounds::order(pages as usize, seed, 0);
            order.into_iter().map(|page| tlb.access(PAGE, page as u64)).sum()
        };
        (0..100).map(&mut lap).for_each(drop);
        (100..500).map(lap).sum::<f64>() / 400.0 / f64::from(pages)
    }

    #[test]
    fn nothing_that_is_built_misses_far_less_than_is_taken_for_the_least() {
        for ways in [4, 8, 16, 24, 72] {
            for pages in [ways, ways + 1, ways + ways / 4, ways * 3 / 2, ways * 2] {
                let least = least_misses(&vec![(pages, 1)], ways);
                assert!(least <= misses(&vec![(pages, 1)], ways));
                assert_eq!(least > 0.0, pages > ways);
                for replacement in Replacement::ALL {
                    let seen = missed(replacement, ways, pages);
                    assert!(
                        seen > 0.6 * least || least == 0.0 && seen == 0.0,
                        "{replacement:?} {pages} of {ways}: {seen} {least}"
                    );
                }
            }
        }
    }
}
