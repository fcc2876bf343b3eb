//! Memory of a process that huge pages could back and do not, by what would have to change.

use std::collections::BTreeMap;

use model::process::{MappingPages, ProcessPages};
use model::{Bytes, PageKind, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ground::{Ground, aligned_bytes};
use super::reason::Reason;
use super::why::why_base;

/// Base pages that lie in whole blocks of the PMD size, and that other settings, or advice, would make huge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// All of them.
    pub bytes: Bytes,
    /// Those in memory that is eligible already: nothing forbids huge pages, and base pages back it.
    pub eligible: Bytes,
    /// Why they are small.
    pub why: BTreeMap<Reason, Bytes>,
}

impl Missed {
    /// The reason that most bytes have.
    pub fn main_reason(&self) -> Option<Reason> {
        let most = self.why.iter().max_by_key(|(_, bytes)| **bytes);
        most.map(|(reason, _)| *reason)
    }

    fn add(&mut self, reason: Reason, bytes: Bytes) {
        if bytes.0 == 0 {
            return;
        }
        self.bytes.0 += bytes.0;
        if reason == Reason::NotGiven {
            self.eligible.0 += bytes.0;
        }
        self.why.entry(reason).or_default().0 += bytes.0;
    }
}

impl Extend<Self> for Missed {
    fn extend<I: IntoIterator<Item = Self>>(&mut self, items: I) {
        for (reason, bytes) in items.into_iter().flat_map(|item| item.why) {
            self.add(reason, bytes);
        }
    }
}

/// The memory of a process that huge pages could back and do not, while its mappings are read one by one.
#[derive(Debug)]
pub struct Missing<'a> {
    process: &'a ProcessPages,
    ground: Ground<'a>,
    pmd: Result<Bytes, Unread>,
    sum: Missed,
}

impl<'a> Missing<'a> {
    /// Of a process.
    pub fn new(process: &'a ProcessPages, ground: &Ground<'a>) -> Self {
        let thp = ground.thp.as_ref().into_result();
        Self {
            process,
            ground: *ground,
            pmd: thp.and_then(|thp| thp.pmd_size.clone().into_result()),
            sum: Missed::default(),
        }
    }

    /// Adds a mapping. Why some of it is on base pages, if it is.
    pub fn add(&mut self, mapping: &MappingPages) -> Option<Reason> {
        let why = why_base(mapping, self.process, &self.ground);
        if let (Ok(pmd), Some(reason)) = (&self.pmd, why.filter(|why| why.can_change())) {
            self.sum.add(reason, in_blocks(mapping, *pmd));
        }
        why
    }

    /// The sum over what was added. Unread where the machine has no THP, or does not report its size.
    pub fn sum(self) -> Reading<Missed> {
        self.pmd.map(|_| self.sum).into()
    }
}

/// Base pages that fit into whole blocks, beside the huge pages that are there.
fn in_blocks(mapping: &MappingPages, pmd: Bytes) -> Bytes {
    let blocks = aligned_bytes(mapping, pmd).unwrap_or(mapping.size.0);
    let room = blocks.saturating_sub(mapping.backing.of(PageKind::Thp).0);
    Bytes(mapping.backing.of(PageKind::Base).0.min(room))
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Cause, Reading};

    use super::{Missed, Missing};
    use crate::processes::areas::counted;
    use crate::processes::{Ground, Reason, one};
    use crate::snapshot::MountTree;
    use crate::{Snapshot, Source, Tree};

    const THP: &str = "/sys/kernel/mm/transparent_hugepage";

    /// 5 MiB that were advised and hold one huge page, 3 MiB that were not and have room for one, 1 MiB too small for
    /// any, and page cache.
    const SMAPS: &str = "7f0000000000-7f0000500000 rw-p 00000000 00:00 0 \nRss: 4096 kB\nAnonHugePages: 2048 kB\nTHPeligible: 1\nVmFlags: rd wr hg \n\
        7f0000e00000-7f0001100000 rw-p 00000000 00:00 0 \nRss: 3072 kB\nTHPeligible: 0\nVmFlags: rd wr \n\
        7f0001200000-7f0001300000 rw-p 00000000 00:00 0 \nRss: 1024 kB\nTHPeligible: 0\nVmFlags: rd wr hg \n\
        7f0002000000-7f0002800000 r--p 00000000 08:01 9 /data\nRss: 8192 kB\nTHPeligible: 0\nVmFlags: rd \n";

    fn look(tree: Tree) -> Reading<Missed> {
        let tree = tree
            .file(
                "/proc/5/status",
                "Name:\ta\nVmRSS:\t9 kB\nVmPTE:\t9 kB\nTHP_enabled:\t1\n",
            )
            .file("/proc/5/smaps", SMAPS);
        let source = Source::from_tree("made", tree);
        let process = one(&source, 5).into_result().expect("a process");
        let snapshot = Snapshot::take(&source);
        let mounts = MountTree::default();
        let mut missing = Missing::new(&process, &Ground::new(&snapshot, &mounts));
        let areas = counted(&source, 5).into_result().expect("mappings");
        for area in areas {
            missing.add(&area.to_pages());
        }
        missing.sum()
    }

    fn policy(policy: &str) -> Tree {
        Tree::new()
            .line(&format!("{THP}/enabled"), policy)
            .line(&format!("{THP}/hpage_pmd_size"), 2 << 20)
    }

    #[test]
    fn only_whole_blocks_of_anonymous_memory_count() {
        let found = look(policy("always [madvise] never")).into_result().expect("known");
        let why: Vec<_> = found.why.clone().into_iter().collect();
        // Of the first mapping 4 MiB are whole blocks and 2 MiB large; of the second 2 MiB are a whole block.
        assert_eq!(
            why,
            [(Reason::NotAdvised, Bytes::mib(2)), (Reason::NotGiven, Bytes::mib(2))]
        );
        assert_eq!((found.bytes, found.eligible), (Bytes::mib(4), Bytes::mib(2)));
        let mut twice = found.clone();
        twice.extend([found]);
        assert_eq!((twice.bytes, twice.eligible), (Bytes::mib(8), Bytes::mib(4)));
    }

    #[test]
    fn where_the_policy_is_never_all_of_it_is_for_that() {
        let found = look(policy("always madvise [never]")).into_result().expect("known");
        assert_eq!(found.main_reason(), Some(Reason::PolicyNever));
        assert_eq!((found.bytes, found.eligible), (Bytes::mib(4), Bytes(0)));
    }

    #[test]
    fn without_transparent_pages_it_is_not_known_instead_of_none() {
        assert_eq!(look(Tree::new()).unread().map(|why| why.unread), Some(Cause::Absent));
    }
}
