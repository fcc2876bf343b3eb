//! Who translates, with which page sizes in the guest and in the host.

use std::fmt;
use std::str::FromStr;

use model::{Bytes, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::mixed;

/// The page of those PMD ranges that are on huge pages, beside base pages.
pub(crate) const HUGE: Bytes = Bytes::mib(2);

names! {
    /// Who translates, and how.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Mode, "a mode" {
        /// No hypervisor.
        Native = "native",
        /// EPT or NPT: two page tables, walked in two dimensions.
        Nested = "nested",
        /// The hypervisor keeps page tables that map the guest's addresses to memory.
        Shadow = "shadow",
    }
}

/// Who translates, with which pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Who translates.
    pub mode: Mode,
    /// The page of the operating system that runs the program, in bytes.
    pub guest_page: Bytes,
    /// The page of the hypervisor, in bytes; none natively.
    pub host_page: Option<Bytes>,
    /// Percent of the aligned 2 MiB ranges that are on 2 MiB pages instead, chosen by chance; absent where all pages have one size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u8>,
}

impl Setting {
    /// A guest's page on a host's; natively there is no host.
    pub fn new(mode: Mode, guest_page: Bytes, host_page: Bytes) -> Self {
        Self {
            mode,
            guest_page,
            host_page: (mode != Mode::Native).then_some(host_page),
            share: None,
        }
    }

    /// With 1 to 99 percent of the PMD ranges on 2 MiB pages, beside base pages.
    #[must_use]
    pub fn with_share(self, percent: u8) -> Self {
        Self {
            share: Some(percent),
            ..self
        }
    }

    /// What a TLB entry covers: the smaller of both pages (splintering). Where a share is on huge pages, this is for the others.
    pub fn entry(self) -> Bytes {
        self.host_page.map_or(self.guest_page, |host| host.min(self.guest_page))
    }

    /// What holds where the guest's page is its own, and what on huge pages.
    pub(crate) fn by_range<T>(self, of: impl Fn(Self) -> T) -> ByRange<T> {
        let huge = Self {
            guest_page: self.guest_page.max(HUGE),
            ..self
        };
        ByRange {
            percent: self.share.unwrap_or(0),
            base: of(self),
            huge: of(huge),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.mode.name(), self.guest_page.exact())?;
        self.share.map_or(Ok(()), |percent| write!(f, "+{percent}%"))?;
        self.host_page.map_or(Ok(()), |host| write!(f, "/{}", host.exact()))
    }
}

impl FromStr for Setting {
    type Err = String;

    /// Reads `native:4K`, `native:4K+30%` or `nested:4K/2M`; the host's page is the guest's where it is left out.
    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || {
            format!(
                "`{text}` is no setting (write native:4K, native:4K+30%, nested:4K/2M, nested:4K+30%/4K or shadow:4K/4K)"
            )
        };
        let (mode, pages) = text.split_once(':').ok_or_else(fail)?;
        let mode: Mode = mode.parse()?;
        let (guest, host) = match pages.split_once('/') {
            Some((_, host)) if mode == Mode::Native || host.contains('+') => return Err(fail()),
            Some((guest, host)) => (guest, Some(host.parse()?)),
            None => (pages, None),
        };
        let (guest_page, share) = guest_pages(guest)?;
        Ok(Self {
            share,
            ..Self::new(mode, guest_page, host.unwrap_or(guest_page))
        })
    }
}

/// Reads `2M`, or `4K+30%`: base pages and the percentage of PMD ranges on 2 MiB pages.
///
/// # Errors
/// If the page is no size, or there can be no such share.
pub fn guest_pages(text: &str) -> Result<(Bytes, Option<u8>), String> {
    let Some((base, share)) = text.split_once('+') else {
        return Ok((text.parse()?, None));
    };
    let percent = share.strip_suffix('%').and_then(|number| number.parse::<u8>().ok());
    match (base.parse()?, percent) {
        (page, _) if page != Bytes::kib(4) => Err(format!(
            "`{text}`: a share of 2M pages is beside pages of 4K, as in 4K+30%"
        )),
        (page, Some(1..=99)) => Ok((page, percent)),
        _ => Err(format!(
            "`{text}`: expected a share of 2M pages from 1% to 99%, as in 4K+30%"
        )),
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
    use super::{Mode, Setting};
    use model::Bytes;

    const BASE: Bytes = Bytes::kib(4);
    const LARGE: Bytes = Bytes::mib(2);

    #[test]
    fn an_entry_covers_the_smaller_page() {
        assert_eq!(Setting::new(Mode::Nested, LARGE, BASE).entry(), BASE);
        assert_eq!(Setting::new(Mode::Nested, LARGE, Bytes::gib(1)).entry(), LARGE);
        assert_eq!(Setting::new(Mode::Native, LARGE, LARGE).entry(), LARGE);
    }

    #[test]
    fn a_share_of_the_ranges_is_on_huge_pages_and_a_larger_share_has_them_too() {
        let huge = |percent| {
            let setting = Setting::new(Mode::Native, BASE, BASE).with_share(percent);
            let pages = setting.by_range(Setting::entry);
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
            let setting = Setting::new(Mode::Nested, BASE, host).with_share(30);
            let pages = setting.by_range(Setting::entry);
            (pages.base, pages.huge)
        };
        assert_eq!(pages(BASE), (BASE, BASE));
        assert_eq!(pages(Bytes::gib(1)), (BASE, LARGE));
    }
}
