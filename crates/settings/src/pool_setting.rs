//! The settings that a lease may change: named by type, so that no other path can ever be written back from a journal.

use std::fmt;

use host::CpuList;
use host::snapshot::hugetlb::{file_of_pool, path_in_pool};
use model::{Bytes, Unread};

use crate::error::WriterError;
use crate::sink::{self, Sink};

/// One setting of the hugetlb pool of one page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolSetting {
    pub(crate) page: Bytes,
    pub(crate) which: Which,
}

/// Which setting of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Which {
    /// How many surplus pages the kernel may add on demand; they vanish with their mapping.
    Overcommit,
    /// Persistent pages, on a kernel without NUMA nodes.
    Pages,
    NodePages(u32),
}

impl PoolSetting {
    pub(crate) fn overcommit(page: Bytes) -> Self {
        let which = Which::Overcommit;
        Self { page, which }
    }

    /// The settings that grow the pool itself, one per node with memory. Node by node, because the machine-wide setting
    /// spreads growth and shrinking round-robin: after up and down again the nodes could differ from what they were.
    pub(crate) fn pages(sink: &dyn Sink, page: Bytes) -> Vec<Self> {
        let nodes = sink::text(sink, "/sys/devices/system/node/has_memory").unwrap_or_default();
        let on_node = |node| Self {
            page,
            which: Which::NodePages(node),
        };
        match nodes.trim().parse::<CpuList>() {
            Ok(ids) if !ids.is_empty() => ids.iter().map(on_node).collect(),
            _ => vec![Self {
                page,
                which: Which::Pages,
            }],
        }
    }

    /// The file's path; [`PoolSetting::parse`] reads it back.
    pub(crate) fn path(self) -> String {
        let file = match self.which {
            Which::Overcommit => "nr_overcommit_hugepages",
            Which::Pages | Which::NodePages(_) => "nr_hugepages",
        };
        self.beside(file)
    }

    /// The setting with exactly this path, if it is one that a lease may change.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let (page, file) = file_of_pool(path)?;
        let node = path
            .strip_prefix("/sys/devices/system/node/node")
            .and_then(|rest| rest.split_once('/'));
        let which = match (node, file) {
            (None, "nr_overcommit_hugepages") => Which::Overcommit,
            (None, "nr_hugepages") => Which::Pages,
            (Some((node, _)), "nr_hugepages") => Which::NodePages(node.parse().ok()?),
            _ => return None,
        };
        // One spelling only: `+1`, leading zeros and other homes do not come back as they were.
        Some(Self { page, which }).filter(|setting| setting.path() == path)
    }

    /// Its value: allowed surplus pages, or persistent pages.
    ///
    /// `nr_hugepages` reads as persistent plus surplus pages, but is written as persistent pages only; counting persistent
    /// pages both ways keeps pages that others hold as surplus out of our sums.
    pub(crate) fn read(self, sink: &dyn Sink) -> Result<u64, Unread> {
        match self.which {
            Which::Overcommit => sink::number(sink, self.path()),
            Which::Pages | Which::NodePages(_) => {
                let (total, surplus) = self.total_and_surplus(sink)?;
                Ok(total.saturating_sub(surplus))
            }
        }
    }

    /// All pages at this setting's place, and those of them that are surplus.
    pub(crate) fn total_and_surplus(self, sink: &dyn Sink) -> Result<(u64, u64), Unread> {
        let (total, surplus) = (self.beside("nr_hugepages"), self.beside("surplus_hugepages"));
        let mut before = sink::number(sink, &surplus)?;
        // Two files cannot be read at one instant; while others map and unmap, try for a quiet moment.
        for _ in 0..100 {
            let all = sink::number(sink, &total)?;
            let after = sink::number(sink, &surplus)?;
            if before == after {
                return Ok((all, after));
            }
            before = after;
        }
        Ok((sink::number(sink, &total)?, before))
    }

    /// Persistent pages that mappings hold or have been promised. Promises belong to no node, so each node counts them all.
    pub(crate) fn in_use(self, sink: &dyn Sink) -> Result<u64, Unread> {
        let (total, surplus) = self.total_and_surplus(sink)?;
        let free = sink::number(sink, self.beside("free_hugepages"))?;
        let page = self.page;
        let whole = Self {
            page,
            which: Which::Pages,
        };
        let promised = sink::number(sink, whole.beside("resv_hugepages"))?;
        Ok((total.saturating_sub(free) + promised)
            .saturating_sub(surplus)
            .min(total))
    }

    fn beside(self, file: &str) -> String {
        let node = match self.which {
            Which::NodePages(node) => Some(node),
            Which::Overcommit | Which::Pages => None,
        };
        path_in_pool(self.page, node, file)
    }

    pub(crate) fn write(self, sink: &dyn Sink, value: u64) -> Result<(), WriterError> {
        sink::write(sink, &self.path(), value.to_string())
    }
}

impl fmt::Display for PoolSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = self.page.exact();
        match self.which {
            Which::Overcommit => write!(f, "nr_overcommit_hugepages of {page} pages"),
            Which::Pages => write!(f, "nr_hugepages of {page} pages"),
            Which::NodePages(node) => write!(f, "nr_hugepages of {page} pages on node {node}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PoolSetting, Which};
    use model::Bytes;

    #[test]
    fn a_path_comes_back_as_its_setting() {
        for which in [Which::Overcommit, Which::Pages, Which::NodePages(12)] {
            let page = Bytes::mib(2);
            let setting = PoolSetting { page, which };
            assert_eq!(PoolSetting::parse(&setting.path()), Some(setting));
        }
    }

    #[test]
    fn no_other_path_is_a_setting() {
        for path in [
            "/etc/passwd",
            "nr_hugepages",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/demote",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/../../transparent_hugepage/enabled",
            "/sys/kernel/mm/hugepages/hugepages-02048kB/nr_hugepages",
            "/sys/kernel/mm/hugepages/hugepages-+2048kB/nr_hugepages",
            "/sys/kernel/mm/hugepages/hugepages-99999999999999999999kB/nr_hugepages",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages/",
            "/tmp/hugepages/hugepages-2048kB/nr_hugepages",
            "/sys/devices/system/node/node0/../node1/hugepages/hugepages-2048kB/nr_hugepages",
            "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_overcommit_hugepages",
        ] {
            assert_eq!(PoolSetting::parse(path), None, "{path}");
        }
    }
}
