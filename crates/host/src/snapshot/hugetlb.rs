//! hugetlb pools: how many pages each size has, globally and per node.

use model::{Bytes, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::topology::node_numbers;
use crate::Source;

/// Where the kernel lists its pools.
pub const POOLS: &str = "/sys/kernel/mm/hugepages";

/// The pool of one page size. Counts are pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    /// Size of one page.
    pub size: Bytes,
    /// Pages in the pool, surplus ones included.
    pub nr: Reading<u64>,
    /// Pages that nothing maps yet, reserved ones included.
    pub free: Reading<u64>,
    /// Free pages that are promised to a mapping.
    pub reserved: Reading<u64>,
    /// Pages above the pool's persistent size; they go when they are unmapped.
    pub surplus: Reading<u64>,
    /// How many surplus pages the kernel may add on demand.
    pub overcommit: Reading<u64>,
    /// Into which size a page can be demoted; absent if it cannot.
    pub demotes_to: Reading<Bytes>,
    /// The same pool by node; absent without NUMA.
    pub nodes: Reading<Vec<NodePool>>,
}

/// One node's part of a pool. Counts are pages; reservations belong to no node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePool {
    /// NUMA node.
    pub node: u32,
    /// Pages on this node.
    pub nr: Reading<u64>,
    /// Free pages on this node.
    pub free: Reading<u64>,
    /// Surplus pages on this node.
    pub surplus: Reading<u64>,
}

impl Pool {
    /// Pages that a new mapping can still get without growth: free but not reserved.
    pub fn available(&self) -> Option<u64> {
        Some(self.free.known()?.saturating_sub(*self.reserved.known()?))
    }

    /// Pages that a mapping holds.
    pub fn used(&self) -> Option<u64> {
        Some(self.nr.known()?.saturating_sub(*self.free.known()?))
    }

    /// Pages that programs map or have reserved.
    pub fn taken(&self) -> Option<u64> {
        let taken = self.used()?.saturating_add(*self.reserved.known()?);
        Some(taken.min(*self.nr.known()?))
    }

    /// Where the kernel keeps this pool: `/sys/kernel/mm/hugepages/hugepages-2048kB`.
    pub fn directory(&self) -> String {
        format!("{POOLS}/{}", directory_name(self.size))
    }

    /// As the pool would be without pages that are borrowed in one of its settings.
    pub fn leave_out(&mut self, setting: &str, pages: u64) {
        let Some((directory, name)) = setting.rsplit_once('/') else {
            return;
        };
        let own = self.directory();
        let of_node = directory
            .strip_prefix("/sys/devices/system/node/node")
            .and_then(|rest| {
                let (node, pool) = rest.split_once("/hugepages/")?;
                own.ends_with(&format!("/{pool}")).then(|| node.parse::<u32>().ok())?
            });
        if directory != own && of_node.is_none() {
            return;
        }
        if name == "nr_overcommit_hugepages" {
            let there = self.surplus.known().map_or(0, |surplus| pages.min(*surplus));
            lower(&mut self.overcommit, pages);
            lower(&mut self.surplus, there);
            lower(&mut self.nr, there);
        } else {
            lower(&mut self.nr, pages);
        }
        at_most(&mut self.free, &self.nr);
        at_most(&mut self.reserved, &self.free);
        if let (Reading::Known(nodes), Some(node)) = (&mut self.nodes, of_node) {
            for node in nodes.iter_mut().filter(|own| own.node == node) {
                lower(&mut node.nr, pages);
                at_most(&mut node.free, &node.nr);
            }
        }
    }

    fn read(source: &Source, size: Bytes) -> Self {
        let number = |name: &str| source.number(&path_in_pool(size, None, name));
        Self {
            size,
            nr: number("nr_hugepages"),
            free: number("free_hugepages"),
            reserved: number("resv_hugepages"),
            surplus: number("surplus_hugepages"),
            overcommit: number("nr_overcommit_hugepages"),
            demotes_to: demotes_to(source, &path_in_pool(size, None, "demote_size")),
            nodes: node_numbers(source).map(|nodes| node_pools(source, &nodes, size)),
        }
    }
}

/// Every pool, smallest pages first.
pub(crate) fn read(source: &Source) -> Reading<Vec<Pool>> {
    source.list(POOLS).map(|names| {
        let sizes = sizes_in_names(&names).into_iter();
        sizes.map(|size| Pool::read(source, size)).collect()
    })
}

/// The directory of a size, below those of pools or of THP: `hugepages-2048kB`.
pub fn directory_name(size: Bytes) -> String {
    format!("hugepages-{}kB", size.0 / 1024)
}

/// A file of a pool, or of the part of it on a node: `/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages`.
pub fn path_in_pool(size: Bytes, node: Option<u32>, file: &str) -> String {
    let home = node.map_or_else(|| POOLS.to_owned(), pools_of_node);
    format!("{home}/{}/{file}", directory_name(size))
}

fn pools_of_node(node: u32) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages")
}

/// The sizes that have a directory among these, smallest first.
pub(super) fn sizes_in_names(names: &[String]) -> Vec<Bytes> {
    let mut sizes: Vec<Bytes> = names.iter().filter_map(|name| size_in_name(name)).collect();
    sizes.sort_unstable();
    sizes
}

/// The size in a name such as `hugepages-2048kB`.
pub fn size_in_name(name: &str) -> Option<Bytes> {
    let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
    kib.checked_mul(1024).map(Bytes)
}

/// The size and the file of a path such as `.../hugepages-2048kB/nr_hugepages`.
pub fn file_of_pool(path: &str) -> Option<(Bytes, &str)> {
    let (directory, file) = path.rsplit_once('/')?;
    let name = directory.rsplit('/').next()?;
    Some((size_in_name(name)?, file))
}

fn lower(count: &mut Reading<u64>, less: u64) {
    if let Reading::Known(count) = count {
        *count = count.saturating_sub(less);
    }
}

/// Free pages are never more than all pages, nor reserved ones more than free ones.
fn at_most(count: &mut Reading<u64>, most: &Reading<u64>) {
    if let (Reading::Known(count), Reading::Known(most)) = (count, most) {
        *count = (*count).min(*most);
    }
}

fn demotes_to(source: &Source, path: &str) -> Reading<Bytes> {
    source.line(path).and_then(|line| {
        let kib = line.strip_suffix("kB").unwrap_or(&line);
        crate::parse::kib(path, 0, "demote_size", kib)
    })
}

/// Nodes without memory have no such directory and no part of the pool.
fn node_pools(source: &Source, nodes: &[u32], size: Bytes) -> Vec<NodePool> {
    let part = |&node: &u32| {
        let directory = format!("{}/{}", pools_of_node(node), directory_name(size));
        let number = |name: &str| source.number(&path_in_pool(size, Some(node), name));
        source.list(&directory).known().map(|_| NodePool {
            node,
            nr: number("nr_hugepages"),
            free: number("free_hugepages"),
            surplus: number("surplus_hugepages"),
        })
    };
    nodes.iter().filter_map(part).collect()
}
