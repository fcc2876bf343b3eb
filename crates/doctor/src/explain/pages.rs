//! The figures of a part: where it lies, its pages, and what backs them.

use model::{Bytes, Reading, Unread};
use programs::Area;

use super::{HugetlbPages, Needs, Part, PartKind};
use crate::facts::pages_for;

pub(super) fn range(start: u64, end: u64) -> String {
    format!("{start:x}-{end:x}")
}

impl HugetlbPages {
    /// Those of so much memory, of which so much is touched.
    pub(super) fn of(page: Bytes, size: Bytes, touched: Option<Bytes>) -> Self {
        Self {
            page,
            total: pages_for(size, page),
            touched: touched.map(|bytes| bytes.0 / page.0.max(1)),
        }
    }
}

/// The pages that hold so much.
pub(super) fn needs(page: Bytes, whole: Bytes) -> Needs {
    let pages = pages_for(whole, page);
    Needs { page, pages }
}

/// The pages of shared memory that draws from a pool as this mapping of it does.
pub(super) fn of_pool(area: &Area, size: Bytes, touched: &Reading<Bytes>) -> Option<HugetlbPages> {
    let page = area.counted.as_ref().filter(|_| area.is_hugetlb())?.kernel_page?;
    Some(HugetlbPages::of(page, size, touched.known().copied()))
}

pub(super) fn unread(what: PartKind, why: Unread) -> Part {
    Part {
        what,
        range: None,
        size: Bytes(0),
        backing: Reading::Unread(why.clone()),
        touched: Reading::Unread(why),
        hugetlb: None,
        needs: None,
    }
}
