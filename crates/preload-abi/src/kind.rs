//! Page kinds and layout rules, as words.

/// What a stretch of memory is to be backed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Base pages only.
    Base,
    /// Transparent huge pages.
    Thp,
    /// Pages of a hugetlb pool, by the binary logarithm of their size: 21 is 2 MiB.
    Hugetlb(u8),
}

impl Kind {
    /// The smallest pool page, 4 KiB, as a logarithm.
    pub const LEAST_SHIFT: u8 = 12;
    /// Every pool page is smaller than this, as a logarithm.
    pub const MOST_SHIFT: u8 = 40;
    /// How many numbers [`slot`](Self::slot) gives.
    pub(crate) const SLOTS: usize = Self::MOST_SHIFT as usize;

    /// Bytes of a page on x86-64.
    pub const fn page(self) -> usize {
        match self {
            Self::Base => 1 << 12,
            Self::Thp => 1 << 21,
            Self::Hugetlb(shift) => 1_usize.wrapping_shl(shift as u32),
        }
    }

    /// A small number of its own.
    pub const fn slot(self) -> usize {
        match self {
            Self::Base => 0,
            Self::Thp => 1,
            Self::Hugetlb(shift) => shift as usize,
        }
    }

    /// As a word of the page.
    pub const fn to_word(self) -> u64 {
        self.slot() as u64
    }

    /// From a word of the page.
    pub const fn from_word(word: u64) -> Option<Self> {
        const LEAST: u64 = Kind::LEAST_SHIFT as u64;
        const LAST: u64 = Kind::MOST_SHIFT as u64 - 1;
        match word {
            0 => Some(Self::Base),
            1 => Some(Self::Thp),
            LEAST..=LAST => Some(Self::Hugetlb(word as u8)),
            _ => None,
        }
    }
}

/// One rule: bytes `from..to` of the growth get this kind.
///
/// The growth is counted in each process by itself: all anonymous regions of at least the minimum that the program maps through the
/// hooks, laid end to end in the order of the calls; unmapping gives nothing back. A forked child goes on where its parent was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The first byte.
    pub from: u64,
    /// The byte after the last one.
    pub to: u64,
    pub kind: Kind,
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn every_kind_comes_back_from_its_word_and_other_words_are_none() {
        for kind in [
            Kind::Base,
            Kind::Thp,
            Kind::Hugetlb(12),
            Kind::Hugetlb(21),
            Kind::Hugetlb(39),
        ] {
            assert_eq!(Kind::from_word(kind.to_word()), Some(kind));
        }
        for word in [2, 11, 40, u64::MAX] {
            assert_eq!(Kind::from_word(word), None);
        }
    }
}
