//! Page kinds and layout rules, as words.

/// What a stretch of memory is to be backed by: the kinds of x86-64 that a call can order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Base pages only.
    Base,
    /// Transparent huge pages.
    Thp,
    /// Pages of 2 MiB of a hugetlb pool.
    Pool2M,
    /// Likewise of 1 GiB.
    Pool1G,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Base, Self::Thp, Self::Pool2M, Self::Pool1G];

    /// Bytes of a page.
    pub const fn page(self) -> usize {
        match self {
            Self::Base => 1 << 12,
            Self::Thp | Self::Pool2M => 1 << 21,
            Self::Pool1G => 1 << 30,
        }
    }

    /// As a word of the page.
    pub const fn to_word(self) -> u64 {
        self as u64
    }

    /// From a word of the page.
    pub fn from_word(word: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_word() == word)
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
        for kind in Kind::ALL {
            assert_eq!(Kind::from_word(kind.to_word()), Some(kind));
        }
        for word in [4, 21, u64::MAX] {
            assert_eq!(Kind::from_word(word), None);
        }
    }
}
