//! What the machine as a whole says, so that processes need not be asked: sizes, pools in use, PMD-mapped pages in use.

use model::{Bytes, Reading};

use super::status::Status;
use crate::Source;
use crate::snapshot::features::numbers;
use crate::snapshot::hugetlb;
use crate::snapshot::kernel::RELEASE;

/// Which sorts of memory have PMD-mapped pages anywhere on the machine. Where one has none, no process needs to be
/// asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    anonymous: bool,
    file: bool,
    shared: bool,
}

impl Mapped {
    /// From /proc/vmstat. Until Linux 5.12 it counted huge pages, not base pages, and could be behind by over a
    /// hundred of them per CPU.
    pub(super) fn read(source: &Source) -> Self {
        let (vmstat, release) = (source.text("/proc/vmstat"), source.line(RELEASE));
        let is_exact = release.known().and_then(|release| numbers(release)) >= Some([5, 12, 0]);
        let exact = vmstat.known().filter(|_| is_exact);
        let has = |name: &str| exact.is_none_or(|text| counts(text, name));
        Self {
            anonymous: has("nr_anon_transparent_hugepages"),
            file: has("nr_file_pmdmapped"),
            shared: has("nr_shmem_pmdmapped"),
        }
    }

    /// The most that a process can have on PMD-mapped pages of one sort; an unknown part may be all of its RSS.
    pub(super) fn most(self, status: &Status, rss: Bytes) -> Bytes {
        let part = |mapped: bool, part: &Reading<Bytes>| {
            let bytes = part.known().copied().unwrap_or(rss);
            if mapped { bytes } else { Bytes(0) }
        };
        part(self.anonymous, &status.rss_anon)
            .max(part(self.file, &status.rss_file))
            .max(part(self.shared, &status.rss_shmem))
    }
}

/// Is a vmstat counter other than zero? One that is missing may be.
fn counts(vmstat: &str, name: &str) -> bool {
    let value = vmstat
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value != Some("0")
}

/// The size of a PMD-mapped page; 2 MiB where the kernel does not say, which is the smallest that 64-bit machines have.
pub(super) fn pmd_size(source: &Source) -> Bytes {
    let size = source.number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    size.known().map_or(Bytes::mib(2), |&size| Bytes(size))
}

/// The page size of the one hugetlb pool with pages in use; `None` if there are several or if a pool cannot be read.
pub(super) fn only_pool_in_use(source: &Source) -> Option<Bytes> {
    let mut only = None;
    for pool in hugetlb::read(source).known()? {
        if pool.used()? > 0 && only.replace(pool.size).is_some() {
            return None;
        }
    }
    only
}
