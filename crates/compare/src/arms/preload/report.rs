//! What the library counted.

use std::collections::BTreeMap;

use model::{Bytes, PageKind};
use preload_abi::{ERRNOS, Kind, WORDS, at};

use super::layout::from_abi;

/// Counts over all processes of a program, from their start until they were read. It says what was ordered and granted at the time of
/// the calls; which pages came, only the process's smaps show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Memory that was given a kind.
    pub served: BTreeMap<PageKind, Tally>,
    /// Stretches that were refused their kind, by the kernel's error number; 11 (EAGAIN) is a race with another thread that was given up.
    pub fallbacks: BTreeMap<i32, u64>,
    /// hugetlb pages that became base pages, because the program unmapped or protected a part of them.
    pub demoted: u64,
    /// How often a part of a hugetlb page in use was unmapped by a process with several threads: the page stays until all of it is.
    pub kept: u64,
    /// Calls of `mprotect` that failed because they cut through a hugetlb page in use.
    pub refused: u64,
    /// Programs that loaded the library. 0: none did.
    pub loaded: u64,
}

/// How many, and how much in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Regions, or stretches of a region that a rule cut out.
    pub regions: u64,
    pub bytes: Bytes,
}

impl Report {
    pub(super) fn of(words: &[u64; WORDS]) -> Self {
        let tally = |word: usize| {
            let tally = Tally {
                regions: words[word],
                bytes: Bytes(words[word + 1]),
            };
            (tally != Tally::default()).then_some(tally)
        };
        let errnos = (0..ERRNOS).map(|errno| (errno as i32, words[at::fallback(errno)]));
        Self {
            served: Kind::ALL
                .into_iter()
                .filter_map(|kind| Some((from_abi(kind), tally(at::served(kind))?)))
                .collect(),
            fallbacks: errnos.filter(|(_, count)| *count > 0).collect(),
            demoted: words[at::DEMOTED],
            kept: words[at::KEPT],
            refused: words[at::REFUSED],
            loaded: words[at::LOADED],
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, PageKind};
    use preload_abi::{Kind, WORDS, at};

    use super::{Report, Tally};

    #[test]
    fn a_page_without_counts_is_an_empty_report() {
        assert_eq!(Report::of(&[0; WORDS]), Report::default());
    }

    #[test]
    fn every_count_is_found_under_its_name() {
        let mut words = [0; WORDS];
        words[at::DEMOTED] = 3;
        words[at::served(Kind::Pool1G)] = 1;
        words[at::served(Kind::Pool1G) + 1] = 1 << 30;
        words[at::fallback(12)] = 4;
        let report = Report::of(&words);
        assert_eq!(report.demoted, 3);
        let tally = Tally {
            regions: 1,
            bytes: Bytes::gib(1),
        };
        assert_eq!(report.served, [(PageKind::HUGETLB_1G, tally)].into());
        assert_eq!(report.fallbacks, [(12, 4)].into());
    }
}
