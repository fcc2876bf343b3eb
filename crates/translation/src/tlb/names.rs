//! Names of pages: 32 bits that stand for a page of any size, so that tags of TLBs are short and exact.

use std::collections::HashMap;

use crate::random::golden;

/// Bits of a page number that a name keeps; the others become the number of a region.
pub(crate) const LOW: u32 = 16;
/// Regions looked up without a hash map.
const RECENT: usize = 1024;

/// More regions of 65,536 pages are touched than 32 bits can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the accesses touch more than 65,535 separate regions of 65,536 pages (256 MiB of 4 KiB pages each)")]
pub struct TooSpread;

/// The names given out so far. Memory grows with the regions that were touched, never with the accesses.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    recent: Box<[u64; RECENT]>,
    bases: Box<[u32; RECENT]>,
    all: HashMap<u64, u32>,
    keys: Vec<u64>,
}

const NONE: u64 = u64::MAX;

/// Where a region is among the recent ones.
#[inline(always)]
fn recent_place(region: u64) -> usize {
    (golden(region) >> (u64::BITS - RECENT.ilog2())) as usize
}

impl Default for Names {
    fn default() -> Self {
        Self {
            recent: Box::new([NONE; RECENT]),
            bases: Box::new([0; RECENT]),
            all: HashMap::new(),
            // The name 0 stands for an empty place, so region 0 stays unused.
            keys: vec![NONE],
        }
    }
}

impl Names {
    /// The name of a page of a class (a small number, such as that of its size).
    #[inline(always)]
    pub(crate) fn of(&mut self, class: u8, page: u64) -> Result<u32, TooSpread> {
        Ok(self.base(Self::region_of(class, page))? | page as u32 & ((1 << LOW) - 1))
    }

    /// The region of such a page.
    #[inline]
    pub(crate) fn region_of(class: u8, page: u64) -> u64 {
        page >> LOW | u64::from(class) << 56
    }

    /// Class and page of a name.
    #[inline]
    pub(crate) fn page(&self, name: u32) -> (u8, u64) {
        let region = self.keys[(name >> LOW) as usize];
        let page = (region & ((1 << 56) - 1)) << LOW | u64::from(name & ((1 << LOW) - 1));
        ((region >> 56) as u8, page)
    }

    /// What all names of a region begin with.
    #[inline(always)]
    pub(crate) fn base(&mut self, region: u64) -> Result<u32, TooSpread> {
        let (recent, base) = self.recent(region);
        if recent == region {
            return Ok(base);
        }
        let base = self.numbered(region)?;
        self.recent[recent_place(region)] = region;
        self.bases[recent_place(region)] = base;
        Ok(base)
    }

    /// The only region that may be this one among those looked up recently, and what its names begin with.
    #[inline(always)]
    pub(crate) fn recent(&self, region: u64) -> (u64, u32) {
        let place = recent_place(region);
        (self.recent[place], self.bases[place])
    }

    #[cold]
    fn numbered(&mut self, region: u64) -> Result<u32, TooSpread> {
        if let Some(&base) = self.all.get(&region) {
            return Ok(base);
        }
        let number = u32::try_from(self.keys.len())
            .ok()
            .filter(|&number| number >> (32 - LOW) == 0);
        let base = number.ok_or(TooSpread)? << LOW;
        self.keys.push(region);
        self.all.insert(region, base);
        Ok(base)
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, TooSpread};

    #[test]
    fn names_differ_where_page_or_class_do_and_lead_back() {
        let mut names = Names::default();
        let pages = [(0, 0), (1, 0), (0, 65_535), (0, 65_536), (2, 1 << 40)];
        let given: Vec<u32> = pages
            .iter()
            .map(|&(class, page)| names.of(class, page).expect("a name"))
            .collect();
        for (at, &(class, page)) in pages.iter().enumerate() {
            assert_eq!(names.page(given[at]), (class, page));
            assert_eq!(names.of(class, page), Ok(given[at]));
            assert_eq!(given.iter().filter(|&&name| name == given[at]).count(), 1);
            assert_ne!(given[at], 0);
        }
    }

    #[test]
    fn what_cannot_be_named_is_an_error() {
        let mut names = Names::default();
        for region in 0..65_535 {
            names.of(0, region << 16).expect("a name");
        }
        assert_eq!(names.of(0, 65_535 << 16), Err(TooSpread));
        assert!(names.of(0, 7 << 16).is_ok());
    }
}
