//! The one page that hugewise and libhugewise_preload.so share: orders one way, counts the other.
//!
//! It is an array of [`WORDS`] 64-bit words in the machine's byte order, in a sealed memfd. hugewise writes the orders once,
//! before the program starts; the library, in every process that loads it, adds to the counts. Which file it is stands in the
//! environment variable [`VARIABLE`], as `FD:NONCE:/proc/PID/fd/FD`: the descriptor is inherited under that number, and if the program
//! closed it, the path leads to the same file. [`at::NONCE`] distinguishes it from any other.
#![no_std]

mod kind;

pub use kind::{Kind, Rule};

/// The environment variable that says where the page is.
pub const VARIABLE: &str = "HUGEWISE_PRELOAD";
/// The first word: whose page this is, and the version of this layout in the last byte.
pub const MAGIC: u64 = u64::from_be_bytes(*b"hwpages\x03");
/// Words in the page.
pub const WORDS: usize = 512;
/// Bytes in the page, which is the length of its file.
pub const BYTES: usize = WORDS * size_of::<u64>();
/// How many rules fit.
pub const MOST_RULES: usize = 60;
/// Error numbers that are counted one by one; those beyond share the count of 0.
pub const ERRNOS: usize = 134;

/// Where in the page what stands.
pub mod at {
    use super::{ERRNOS, Kind, MOST_RULES};

    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// A number of this page alone.
    pub const NONCE: usize = 1;
    /// Smaller regions are left alone: bytes.
    pub const MINIMUM: usize = 2;
    /// The kind of whatever no rule names.
    pub const KIND: usize = 3;
    /// How many rules there are.
    pub const RULE_COUNT: usize = 4;
    /// The rules: first byte, end and kind of each, in ascending order, none overlapping.
    pub const RULES: usize = 8;

    const COUNTS: usize = RULES + 3 * MOST_RULES;
    /// hugetlb pages replaced by base pages, because the program cut through them.
    pub const DEMOTED: usize = COUNTS;
    /// How often a part of a hugetlb page in use was unmapped, and the page stayed until all of it was.
    pub const KEPT: usize = COUNTS + 1;
    /// Changes of protection that failed because they cut through a hugetlb page in use.
    pub const REFUSED: usize = COUNTS + 2;
    /// Programs that loaded the library, each once.
    pub const LOADED: usize = COUNTS + 3;
    const SERVED: usize = COUNTS + 4;
    const FALLBACKS: usize = SERVED + 2 * Kind::ALL.len();

    /// Stretches of memory that were given a kind; their bytes are in the next word.
    pub const fn served(kind: Kind) -> usize {
        SERVED + 2 * kind as usize
    }

    /// Stretches that were refused a kind with an error number.
    pub const fn fallback(errno: usize) -> usize {
        FALLBACKS + if errno < ERRNOS { errno } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    use super::{ERRNOS, Kind, WORDS, at};

    #[test]
    fn no_two_things_share_a_word_and_all_fit() {
        let mut taken = BTreeSet::new();
        let mut take = |word: usize| assert!(word < WORDS && taken.insert(word), "{word}");
        for word in 0..at::RULES + 3 * super::MOST_RULES {
            take(word);
        }
        for word in [at::DEMOTED, at::KEPT, at::REFUSED, at::LOADED] {
            take(word);
        }
        for kind in Kind::ALL {
            take(at::served(kind));
            take(at::served(kind) + 1);
        }
        for errno in 0..ERRNOS {
            take(at::fallback(errno));
        }
        assert_eq!(at::fallback(4095), at::fallback(0));
    }
}
