//! Page kinds: which mechanism gives which page size.

use std::fmt;
use std::str::FromStr;

use crate::Bytes;

/// What can back a piece of memory, in the field's own words: `base`, `thp`, `mthp-64K`, `hugetlb-2M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageKind {
    /// The CPU's smallest page (4 KiB on x86-64, 4 to 64 KiB on arm64).
    Base,
    /// Transparent huge pages below the PMD size (several base pages in one folio).
    Mthp(Bytes),
    /// Transparent huge pages mapped by one PMD entry (2 MiB on x86-64).
    Thp,
    /// Pages from a hugetlb pool of that size.
    Hugetlb(Bytes),
}

impl PageKind {
    /// hugetlb pages of 2 MiB, the common case on x86-64.
    pub const HUGETLB_2M: Self = Self::Hugetlb(Bytes::mib(2));
    /// hugetlb pages of 1 GiB.
    pub const HUGETLB_1G: Self = Self::Hugetlb(Bytes::gib(1));

    /// The size of one page on x86-64, where this program measures; captured machines may have others.
    pub const fn x86_size(self) -> Bytes {
        match self {
            Self::Base => Bytes::kib(4),
            Self::Thp => Bytes::mib(2),
            Self::Mthp(size) | Self::Hugetlb(size) => size,
        }
    }

    /// The pool this kind draws from, if it draws from one.
    pub fn pool(self) -> Option<Bytes> {
        match self {
            Self::Hugetlb(size) => Some(size),
            Self::Base | Self::Thp | Self::Mthp(_) => None,
        }
    }

    /// The size of its pages, if these are THPs below the PMD size, which switches of their own turn on.
    pub fn mthp(self) -> Option<Bytes> {
        match self {
            Self::Mthp(size) => Some(size),
            Self::Base | Self::Thp | Self::Hugetlb(_) => None,
        }
    }

    /// Is this anything larger than base pages?
    pub fn is_large(self) -> bool {
        self != Self::Base
    }
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.pad("base"),
            Self::Thp => f.pad("thp"),
            Self::Mthp(size) => f.pad(&format!("mthp-{}", size.exact())),
            Self::Hugetlb(size) => f.pad(&format!("hugetlb-{}", size.exact())),
        }
    }
}

impl FromStr for PageKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        let fail = || {
            format!(
                "`{text}` is not a page kind (write base, thp, mthp-SIZE such as mthp-64K, or hugetlb-SIZE such as hugetlb-2M)"
            )
        };
        let size = |digits: &str| {
            let size = digits.parse::<Bytes>().ok();
            size.filter(|size| size.is_page()).ok_or_else(fail)
        };
        match lower.as_str() {
            "base" => Ok(Self::Base),
            "thp" => Ok(Self::Thp),
            other => match other.split_once('-') {
                Some(("mthp", digits)) => Ok(Self::Mthp(size(digits)?)),
                Some(("hugetlb", digits)) => Ok(Self::Hugetlb(size(digits)?)),
                _ => Err(fail()),
            },
        }
    }
}

crate::as_text!(PageKind, {
    "type": "string",
    "pattern": "^(base|thp|(mthp|hugetlb)-[0-9]+[KMG])$",
    "description": "base, thp, mthp-SIZE or hugetlb-SIZE"
});

#[cfg(test)]
mod tests {
    use super::PageKind;
    use crate::Bytes;

    #[test]
    fn every_kind_prints_what_it_reads() {
        for kind in [
            PageKind::Base,
            PageKind::Thp,
            PageKind::Mthp(Bytes::kib(64)),
            PageKind::HUGETLB_2M,
            PageKind::HUGETLB_1G,
            PageKind::Hugetlb(Bytes::mib(512)),
        ] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn a_wrong_kind_is_told_what_to_write() {
        for text in [
            "",
            "huge",
            "hugetlb",
            "hugetlb-",
            "hugetlb-3M",
            "mthp-64",
            "thp-2M",
            "hugetlb-1B",
        ] {
            let error = text.parse::<PageKind>().expect_err(text).to_string();
            assert!(error.contains("hugetlb-2M"), "{error}");
        }
    }
}
