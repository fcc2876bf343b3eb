//! What pages hold: how zeros and common pages lie in a machine's regions, and which merged pages are in memory.

use super::PAGES;
use super::scenario::{Content, WHOLE};
use translation::random::{Chance, mixed};

/// Pages of a region by class: zero, common, unique, volatile. Common pages hang on the content's number and the region's alone, so that
/// machines with the same content have the same ones.
pub(super) fn of_region(content: Content, group: u64, vm: u64, region: u64, seed: u64) -> [u16; 4] {
    let mut same = Chance::new(seed ^ mixed(group ^ mixed(region)));
    let mut own = Chance::new(seed ^ mixed(!vm ^ mixed(region)));
    let place = (same.bits() >> 48) as u32;
    let common = amount(content.common, content.clustered, place, &mut same);
    // Zeros are gathered from the other end.
    let zero = amount(content.zero, content.clustered, WHOLE - 1 - place, &mut own).min(PAGES - common);
    let rest = PAGES - common - zero;
    let volatile = whole(u64::from(content.volatile) * u64::from(PAGES), &mut own).min(rest);
    [zero, common, rest - volatile, volatile].map(|count| count as u16)
}

/// So many parts of all pages, in as few regions as they are clustered; `place` says where this region stands among all.
fn amount(parts: u32, clustered: u32, place: u32, chance: &mut Chance) -> u32 {
    if parts == 0 {
        return 0;
    }
    let density = u64::from(parts) + ((u64::from(WHOLE - parts.min(WHOLE)) * u64::from(clustered)) >> 16);
    let carriers = (u64::from(parts) << 16) / density;
    if u64::from(place) >= carriers {
        return 0;
    }
    whole(density * u64::from(PAGES), chance).min(PAGES)
}

/// Parts of 65,536 as a whole number; what is left over is decided by chance.
pub(super) fn whole(parts: u64, chance: &mut Chance) -> u32 {
    (parts >> 16) as u32 + u32::from((chance.bits() >> 48) < (parts & 0xffff))
}

/// The common pages of one region number, for all machines with this content.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    /// Touched regions that hold it.
    pub(super) copies: u32,
    /// Regions by how many of its pages they share, which are the first ones; the least first.
    sharers: Vec<(u16, u32)>,
    /// The scan in which a region last waited for a partner, and that region's machine.
    pub(super) waiting: Option<(u64, u32)>,
}

impl Chunk {
    /// Does memory hold merged pages of it?
    pub(super) fn is_merged(&self) -> bool {
        !self.sharers.is_empty()
    }

    /// A region shares another number of its pages.
    pub(super) fn change(&mut self, before: u32, after: u32) {
        if before > 0
            && let Ok(place) = self.sharers.binary_search_by_key(&(before as u16), |sharer| sharer.0)
        {
            self.sharers[place].1 -= 1;
            if self.sharers[place].1 == 0 {
                self.sharers.remove(place);
            }
        }
        if after > 0 {
            match self.sharers.binary_search_by_key(&(after as u16), |sharer| sharer.0) {
                Ok(place) => self.sharers[place].1 += 1,
                Err(place) => self.sharers.insert(place, (after as u16, 1)),
            }
        }
    }

    /// Pages of memory behind all sharers, if one page has so many mappings at most.
    pub(super) fn frames(&self, most: u32) -> u64 {
        let mut mappings: u32 = self.sharers.iter().map(|sharer| sharer.1).sum();
        let (mut before, mut frames) = (0, 0);
        for (pages, regions) in &self.sharers {
            frames += u64::from(pages - before) * u64::from(mappings.div_ceil(most));
            before = *pages;
            mappings -= regions;
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunk, of_region};
    use crate::host_memory::scenario::{Content, WHOLE};

    fn content(zero: f64, common: f64, volatile: f64, clustered: f64) -> Content {
        let [zero, common, volatile, clustered] =
            [zero, common, volatile, clustered].map(|part| (part * f64::from(WHOLE)) as u32);
        Content {
            zero,
            common,
            volatile,
            clustered,
        }
    }

    #[test]
    fn shares_of_all_regions_are_those_asked_for_however_clustered() {
        for clustered in [0.0, 0.5, 1.0] {
            let content = content(0.1, 0.3, 0.2, clustered);
            let mut sums = [0_u64; 4];
            let mut with_common = 0;
            for region in 0..4000 {
                let counts = of_region(content, 1, 5, region, 7);
                assert_eq!(counts.iter().sum::<u16>(), 512);
                with_common += u32::from(counts[1] > 0);
                counts
                    .iter()
                    .zip(&mut sums)
                    .for_each(|(count, sum)| *sum += u64::from(*count));
            }
            let share = |class: usize| sums[class] as f64 / (4000.0 * 512.0);
            assert!((share(0) - 0.1).abs() < 0.02, "{clustered}: {sums:?}");
            assert!((share(1) - 0.3).abs() < 0.02, "{clustered}: {sums:?}");
            let carriers = f64::from(with_common) / 4000.0;
            let expected = 0.3 / (0.3 + 0.7 * clustered);
            assert!((carriers - expected).abs() < 0.03, "{clustered}: {carriers}");
        }
    }

    #[test]
    fn machines_with_one_content_have_the_same_common_pages() {
        let content = content(0.1, 0.3, 0.2, 0.5);
        for region in 0..100 {
            let of = |group, vm| of_region(content, group, vm, region, 7)[1];
            assert_eq!(of(1, 1), of(1, 2));
        }
        assert!(
            (0..100).any(|region| of_region(content, 1, 1, region, 7)[1] != of_region(content, 2, 1, region, 7)[1])
        );
    }

    #[test]
    fn frames_are_those_of_the_region_that_shares_most_and_of_too_many_sharers() {
        let mut chunk = Chunk::default();
        for pages in [10, 10, 30] {
            chunk.change(0, pages);
        }
        assert_eq!(chunk.frames(u32::MAX), 30);
        assert_eq!(chunk.frames(2), 10 * 2 + 20);
        chunk.change(30, 5);
        assert_eq!(chunk.frames(u32::MAX), 10);
        chunk.change(5, 0);
        chunk.change(10, 0);
        chunk.change(10, 0);
        assert!(!chunk.is_merged() && chunk.frames(1) == 0);
    }
}
