//! Which page sizes, in the guest and in the host, back memory.

use model::Bytes;

use crate::random::mixed;

/// The page of those PMD ranges that are on huge pages, beside base pages.
pub(crate) const HUGE: Bytes = Bytes::mib(2);

/// The page sizes of one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    /// The page of the operating system that runs the program.
    pub guest: Bytes,
    /// The page of the hypervisor below; none natively.
    pub host: Option<Bytes>,
    /// Percent of the PMD ranges that are on 2 MiB pages instead of the guest's base pages, chosen by chance; none of a single size.
    pub share: Option<u8>,
}

impl Backing {
    /// Pages of one size, without a hypervisor.
    pub fn native(page: Bytes) -> Self {
        Self {
            guest: page,
            host: None,
            share: None,
        }
    }

    /// A guest's pages on a host's.
    pub fn nested(guest: Bytes, host: Bytes) -> Self {
        let host = Some(host);
        Self {
            host,
            ..Self::native(guest)
        }
    }

    /// What a TLB entry covers: the smaller of both pages (splintering). Where a share is on huge pages, this is for the others.
    pub fn entry(self) -> Bytes {
        self.host.map_or(self.guest, |host| host.min(self.guest))
    }

    /// What holds where the guest's page is its own, and what on huge pages.
    pub(crate) fn by_range<T>(self, of: impl Fn(Self) -> T) -> ByRange<T> {
        let huge = Self {
            guest: self.guest.max(HUGE),
            ..self
        };
        ByRange {
            percent: self.share.unwrap_or(0),
            base: of(self),
            huge: of(huge),
        }
    }
}

/// One value on base pages, another one in the PMD ranges that are on huge pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByRange<T> {
    /// Of the ranges that are on huge pages; 0 if all pages have one size.
    percent: u8,
    pub(crate) base: T,
    pub(crate) huge: T,
}

impl<T: Copy> ByRange<T> {
    /// The value at an address. A larger share has all ranges of a smaller one.
    #[inline]
    pub(crate) fn at(&self, address: u64) -> T {
        let is_huge = self.percent > 0 && mixed(address >> shift(HUGE)) % 100 < self.percent.into();
        if is_huge { self.huge } else { self.base }
    }
}

/// Address bits within a page.
pub(crate) const fn shift(page: Bytes) -> u32 {
    page.0.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::Backing;
    use model::Bytes;

    const BASE: Bytes = Bytes::kib(4);
    const LARGE: Bytes = Bytes::mib(2);

    #[test]
    fn an_entry_covers_the_smaller_page() {
        assert_eq!(Backing::nested(LARGE, BASE).entry(), BASE);
        assert_eq!(Backing::nested(LARGE, Bytes::gib(1)).entry(), LARGE);
        assert_eq!(Backing::native(LARGE).entry(), LARGE);
    }

    #[test]
    fn a_share_of_the_ranges_is_on_huge_pages_and_a_larger_share_has_them_too() {
        let huge = |percent| {
            let share = Some(percent);
            let pages = Backing {
                share,
                ..Backing::native(BASE)
            }
            .by_range(Backing::entry);
            let range = move |range: u64| pages.at(range << 21 | 0x12_3456) == LARGE;
            (0..20_000).filter(|&number| range(number)).collect::<Vec<u64>>()
        };
        let all = [1, 30, 50, 99].map(|percent| (percent, huge(percent)));
        for (percent, ranges) in &all {
            let expected = 200 * usize::from(*percent);
            assert!(ranges.len().abs_diff(expected) < 300, "{percent} %: {}", ranges.len());
        }
        for pair in all.windows(2) {
            assert!(pair[0].1.iter().all(|range| pair[1].1.binary_search(range).is_ok()));
        }
    }

    #[test]
    fn a_share_on_small_host_pages_has_small_entries() {
        let pages = |host| {
            let share = Some(30);
            let pages = Backing {
                share,
                ..Backing::nested(BASE, host)
            }
            .by_range(Backing::entry);
            (pages.base, pages.huge)
        };
        assert_eq!(pages(BASE), (BASE, BASE));
        assert_eq!(pages(Bytes::gib(1)), (BASE, LARGE));
    }
}
