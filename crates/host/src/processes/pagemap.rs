//! The 64-bit words of /proc/PID/pagemap and /proc/kpageflags (the kernel's admin-guide/mm/pagemap.rst).

/// Bytes per word in both files.
pub const WORD: usize = size_of::<u64>();

/// What pagemap says of one virtual page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWord(pub u64);

impl PageWord {
    pub fn is_present(self) -> bool {
        self.0 & (1 << 63) != 0
    }

    /// Its frame number, if it is in memory; 0 is what a reader without CAP_SYS_ADMIN gets.
    pub fn frame(self) -> Option<u64> {
        self.is_present().then_some(self.0 & ((1 << 55) - 1))
    }
}

/// What kpageflags says of one physical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFlags(pub u64);

impl PageFlags {
    /// First page of a compound page.
    pub const COMPOUND_HEAD: u64 = 1 << 15;
    /// Any other page of a compound page.
    pub const COMPOUND_TAIL: u64 = 1 << 16;
    /// Of a hugetlb pool.
    pub const HUGE: u64 = 1 << 17;
    /// Of a transparent huge page of any size.
    pub const THP: u64 = 1 << 22;

    /// First page of a transparent huge page?
    pub fn is_thp_head(self) -> bool {
        self.is_thp() && self.0 & Self::COMPOUND_HEAD != 0
    }

    /// A later page of a transparent huge page?
    pub fn is_thp_tail(self) -> bool {
        self.is_thp() && self.0 & Self::COMPOUND_TAIL != 0
    }

    fn is_thp(self) -> bool {
        self.0 & Self::THP != 0 && self.0 & Self::HUGE == 0
    }
}

/// The whole words in `bytes`, in the machine's byte order; a cut last word is left out.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<WORD>().0.iter().map(|&word| u64::from_ne_bytes(word))
}
