//! A made hugetlb pool, which does what mm/hugetlb.c does to the counts of pages.

use std::io;

use model::Bytes;

/// Pages of one size on one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) persistent: u64,
    pub(crate) surplus: u64,
    pub(crate) in_use: u64,
    /// Contiguous memory: how many more pages can be allocated.
    pub(crate) room: u64,
    /// Fragmented memory: how many more can be allocated after compaction.
    pub(crate) broken: u64,
}

/// The pool of one page size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pool {
    pub(crate) nodes: Vec<Node>,
    pub(crate) resv: u64,
    pub(crate) overcommit: u64,
    /// Gigantic pages: no overcommit.
    pub(crate) gigantic: bool,
}

impl Node {
    pub(crate) fn total(&self) -> u64 {
        self.persistent + self.surplus
    }

    fn free(&self) -> u64 {
        self.total() - self.in_use
    }

    /// As `set_max_huge_pages` of mm/hugetlb.c: surplus pages are adopted first; pages in use become surplus, not free.
    pub(crate) fn set_persistent(&mut self, count: u64) {
        while self.persistent < count && self.surplus > 0 {
            self.surplus -= 1;
            self.persistent += 1;
        }
        while self.persistent < count && self.room > 0 {
            self.room -= 1;
            self.persistent += 1;
        }
        while self.persistent > count && self.free() > 0 {
            self.persistent -= 1;
            self.room += 1;
        }
        while self.persistent > count {
            self.persistent -= 1;
            self.surplus += 1;
        }
    }
}

impl Pool {
    /// Someone maps and touches a page, if there is one.
    pub(crate) fn map(&mut self) {
        let surplus: u64 = self.nodes.iter().map(|node| node.surplus).sum();
        let overcommit = self.overcommit;
        if let Some(node) = self.nodes.iter_mut().find(|node| node.free() > 0) {
            node.in_use += 1;
        } else if let Some(node) = self.nodes.iter_mut().find(|node| node.room > 0 && surplus < overcommit) {
            node.room -= 1;
            node.surplus += 1;
            node.in_use += 1;
        }
    }

    /// Someone unmaps a page; surplus pages go back to memory.
    pub(crate) fn unmap(&mut self) {
        if let Some(node) = self.nodes.iter_mut().find(|node| node.in_use > 0) {
            node.in_use -= 1;
            if node.surplus > 0 {
                node.surplus -= 1;
                node.room += 1;
            }
        }
    }

    pub(super) fn read(&self, node: Option<usize>, file: &str) -> Option<u64> {
        let nodes = match node {
            Some(node) => std::slice::from_ref(self.nodes.get(node)?),
            None => &self.nodes,
        };
        let sum = |of: fn(&Node) -> u64| Some(nodes.iter().map(of).sum());
        match (file, node) {
            ("nr_hugepages", _) => sum(Node::total),
            ("free_hugepages", _) => sum(Node::free),
            ("surplus_hugepages", _) => sum(|node| node.surplus),
            ("resv_hugepages", None) => Some(self.resv),
            ("nr_overcommit_hugepages", None) => Some(self.overcommit),
            _ => None,
        }
    }

    pub(super) fn write(&mut self, node: Option<usize>, file: &str, value: u64) -> io::Result<()> {
        match (file, node) {
            ("nr_hugepages", Some(node)) => self.nodes[node].set_persistent(value),
            ("nr_hugepages", None) if self.nodes.len() == 1 => self.nodes[0].set_persistent(value),
            ("nr_overcommit_hugepages", None) if self.gigantic => return Err(io::ErrorKind::InvalidInput.into()),
            ("nr_overcommit_hugepages", None) => self.overcommit = value,
            _ => return Err(io::ErrorKind::NotFound.into()),
        }
        Ok(())
    }
}

/// Page size, node and file name of a pool's file.
pub(super) fn pool_file(path: &str) -> Option<(Bytes, Option<usize>, &str)> {
    let (home, rest) = path.split_once("/hugepages/hugepages-")?;
    let (kib, file) = rest.split_once("kB/")?;
    let node = match home {
        "/sys/kernel/mm" => None,
        node => Some(node.strip_prefix("/sys/devices/system/node/node")?.parse().ok()?),
    };
    Some((Bytes::kib(kib.parse().ok()?), node, file))
}
