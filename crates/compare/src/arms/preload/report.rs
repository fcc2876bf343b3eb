//! What the library counted.

use std::collections::BTreeMap;

use model::{Bytes, PageKind};
use preload_abi::{ERRNOS, Hook, Kind, Unserved, WORDS, at};
use serde::Serialize;

use super::layout::from_abi;

/// Counts over all processes of a program, from their start until they were read. It says what was ordered and granted at the time of
/// the calls; which pages came, only the process's smaps show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Processes that loaded the library, or were forked from one that had and then made a call that is looked at: small mappings, and
    /// calls that no hugetlb page can be in the way of, are counted but pass straight through. 0: the program never loaded it.
    pub processes: u64,
    /// Memory that was given a kind.
    pub served: BTreeMap<PageKind, Tally>,
    /// Large anonymous regions that were left as the program asked for them, by reason.
    pub left_alone: BTreeMap<&'static str, Tally>,
    /// Stretches that were refused their kind, by the kernel's error number; 11 (EAGAIN) is a race with another thread that was given up.
    pub fallbacks: BTreeMap<i32, u64>,
    /// Calls by function; only functions that were called.
    pub hooks: BTreeMap<&'static str, u64>,
    /// hugetlb pages that became base pages, because the program unmapped or protected a part of them.
    pub demoted: u64,
    /// How often a part of a hugetlb page in use was unmapped by a process with several threads: the page stays until all of it is.
    pub kept: u64,
    /// Calls of `mprotect` that failed because they cut through a hugetlb page in use.
    pub refused: u64,
}

/// How many, and how much in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
        let count = |word: usize| Some(words[word]).filter(|&count| count > 0);
        let pools = (Kind::LEAST_SHIFT..Kind::MOST_SHIFT).map(Kind::Hugetlb);
        let kinds = [Kind::Base, Kind::Thp].into_iter().chain(pools);
        let errnos = (0..ERRNOS).filter_map(|errno| Some((errno as i32, count(at::fallback(errno))?)));
        Self {
            processes: words[at::PROCESSES],
            served: kinds
                .filter_map(|kind| Some((from_abi(kind), tally(at::served(kind))?)))
                .collect(),
            left_alone: Unserved::ALL
                .into_iter()
                .filter_map(|why| Some((why.name(), tally(at::unserved(why))?)))
                .collect(),
            fallbacks: errnos.collect(),
            hooks: Hook::ALL
                .into_iter()
                .filter_map(|hook| Some((hook.name(), count(at::hook(hook))?)))
                .collect(),
            demoted: words[at::DEMOTED],
            kept: words[at::KEPT],
            refused: words[at::REFUSED],
        }
    }

    /// Bytes that were given this kind.
    pub fn bytes(&self, kind: PageKind) -> Bytes {
        self.served.get(&kind).map_or(Bytes(0), |tally| tally.bytes)
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, PageKind};
    use preload_abi::{Hook, Kind, Unserved, WORDS, at};

    use super::{Report, Tally};

    #[test]
    fn a_page_without_counts_is_an_empty_report() {
        assert_eq!(Report::of(&[0; WORDS]), Report::default());
    }

    #[test]
    fn every_count_is_found_under_its_name() {
        let mut words = [0; WORDS];
        words[at::PROCESSES] = 2;
        words[at::hook(Hook::Madvise)] = 3;
        words[at::served(Kind::Hugetlb(30))] = 1;
        words[at::served(Kind::Hugetlb(30)) + 1] = 1 << 30;
        words[at::unserved(Unserved::Reserved) + 1] = 9;
        words[at::fallback(12)] = 4;
        let report = Report::of(&words);
        assert_eq!(report.processes, 2);
        assert_eq!(report.hooks, [("madvise", 3)].into());
        assert_eq!(report.bytes(PageKind::HUGETLB_1G), Bytes::gib(1));
        assert_eq!(report.bytes(PageKind::Thp), Bytes(0));
        assert_eq!(
            report.left_alone["reserved"],
            Tally {
                regions: 0,
                bytes: Bytes(9)
            }
        );
        assert_eq!(report.fallbacks, [(12, 4)].into());
    }
}
