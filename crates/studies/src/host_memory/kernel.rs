//! Linux's own settings for pages that are merged and collapsed.

use super::Ns;

/// Same-page merging of Linux; names and usual values are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ksm {
    /// Pages of each turn.
    pub pages_to_scan: u32,
    /// Milliseconds between turns.
    pub sleep_millisecs: u32,
    /// Are pages of zeros freed, and mapped to the kernel's?
    pub use_zero_pages: bool,
    /// Does splitting a huge page free its pages of zeros (Linux 6.12 and later)?
    pub split_frees_zeros: bool,
    /// Mappings of one merged page.
    pub max_page_sharing: u32,
    /// CPU time of ksmd for each page, in nanoseconds (measured: 0.25 to 0.86 million pages for each second of a CPU).
    pub page_ns: u32,
}

impl Default for Ksm {
    fn default() -> Self {
        Self {
            pages_to_scan: 100,
            sleep_millisecs: 20,
            use_zero_pages: false,
            split_frees_zeros: true,
            max_page_sharing: 256,
            page_ns: 2000,
        }
    }
}

impl Ksm {
    /// Do shared pages of zeros take no memory?
    pub(super) fn zeros_are_free(&self) -> bool {
        self.use_zero_pages || self.split_frees_zeros
    }

    /// The time from page to page: a turn's sleep and CPU time over its pages.
    pub fn each_page(&self) -> Ns {
        Ns::from(self.sleep_millisecs) * 1_000_000 / Ns::from(self.pages_to_scan.max(1)) + Ns::from(self.page_ns)
    }
}

/// khugepaged of Linux; names and usual values are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Khugepaged {
    /// Pages of each turn; 0 turns it off.
    pub pages_to_scan: u32,
    /// Milliseconds between turns.
    pub scan_sleep_millisecs: u32,
    /// A region with more pages that are not there is left alone.
    pub max_ptes_none: u32,
    /// A region with more shared pages is left alone.
    pub max_ptes_shared: u32,
    /// A region with more swapped pages is left alone.
    pub max_ptes_swap: u32,
}

impl Default for Khugepaged {
    fn default() -> Self {
        Self {
            pages_to_scan: 4096,
            scan_sleep_millisecs: 10_000,
            max_ptes_none: 511,
            max_ptes_shared: 256,
            max_ptes_swap: 64,
        }
    }
}

impl Khugepaged {
    /// The time from region to region.
    pub(super) fn each_region(&self) -> Option<Ns> {
        let regions = self.pages_to_scan.div_ceil(super::PAGES);
        (regions > 0).then(|| (Ns::from(self.scan_sleep_millisecs) * 1_000_000 / Ns::from(regions)).max(1000))
    }
}
