//! /proc/PID/numa_maps: the NUMA nodes of the pages of a process, by page kind as far as that is known.

use std::collections::{BTreeMap, HashMap};

use model::process::MappingPages;
use model::{Backing, Bytes, PageKind, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::Limits;
use super::status::Status;
use crate::source::whole_lines;
use crate::{Source, parse};

/// What a process has on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodePages {
    /// The node.
    pub node: u32,
    /// Bytes by page kind.
    pub backing: Backing,
    /// Base pages and THP of mappings that have both and lie on several nodes: the kernel reports their sum only.
    pub base_or_thp: Bytes,
}

impl NodePages {
    /// All bytes on this node.
    pub fn total(&self) -> Bytes {
        Bytes(self.backing.total().0.saturating_add(self.base_or_thp.0))
    }
}

/// A line has 100 bytes or so: over two million mappings fit.
const LARGEST: Bytes = Bytes::mib(256);

/// Pages of one mapping by node: a line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingNodes {
    /// Its first address.
    pub start: u64,
    pub page: Bytes,
    pub is_hugetlb: bool,
    /// Nodes, each with its pages.
    pub nodes: Vec<(u32, u64)>,
}

/// THP of mappings by their first address; mappings without THP are left out.
#[derive(Clone, Debug, Default)]
pub struct ThpByStart(HashMap<u64, Bytes>);

impl ThpByStart {
    /// Notes a mapping.
    pub fn add(&mut self, mapping: &MappingPages) {
        let thp = mapping.backing.of(PageKind::Thp);
        if thp.0 > 0 {
            self.0.insert(mapping.start.0, thp);
        }
    }

    fn of(&self, area: &MappingNodes) -> Bytes {
        self.0.get(&area.start).copied().unwrap_or_default()
    }
}

/// The pages of a process by node. `thp` holds the THP of each mapping.
///
/// Absent without NUMA; left out with the reason where the walk would hold up a large process.
pub fn nodes(source: &Source, pid: u32, thp: &ThpByStart, limits: Limits) -> Reading<Vec<NodePages>> {
    let mut sums = Sums::default();
    let read = walk(source, pid, limits, |area| sums.add(&area, thp.of(&area)));
    read.map(|()| sums.0.into_values().collect())
}

/// Its hugetlb mappings alone, likewise.
pub fn hugetlb_nodes(source: &Source, pid: u32, limits: Limits) -> Reading<Vec<MappingNodes>> {
    let mut all = Vec::new();
    let read = walk(source, pid, limits, |area| all.extend(area.is_hugetlb.then_some(area)));
    read.map(|()| all)
}

fn walk(source: &Source, pid: u32, limits: Limits, mut visit: impl FnMut(MappingNodes)) -> Reading<()> {
    let path = format!("/proc/{pid}/numa_maps");
    Reading::from(Status::read(source, pid)).and_then(|status| {
        limits.allow_whole(source, pid, &status)?;
        source.pieces(&path, LARGEST, whole_lines, |before, piece| {
            each_area(&path, before, piece, &mut visit)
        })
    })
}

/// What lies on each node.
#[derive(Default)]
struct Sums(BTreeMap<u32, NodePages>);

impl Sums {
    fn add(&mut self, area: &MappingNodes, thp: Bytes) {
        for &(node, pages) in &area.nodes {
            let bytes = Bytes(pages.saturating_mul(area.page.0));
            let of = self.0.entry(node).or_default();
            of.node = node;
            of.add(area, bytes, thp);
        }
    }
}

impl NodePages {
    /// `thp` is what the whole area has; it lies on this node for sure if the area lies on no other.
    fn add(&mut self, area: &MappingNodes, bytes: Bytes, thp: Bytes) {
        if area.is_hugetlb {
            self.backing.add(PageKind::Hugetlb(area.page), bytes);
        } else if thp.0 == 0 || area.nodes.len() == 1 {
            let thp = Bytes(thp.0.min(bytes.0));
            self.backing.add(PageKind::Thp, thp);
            self.backing.add(PageKind::Base, Bytes(bytes.0 - thp.0));
        } else {
            self.base_or_thp.0 = self.base_or_thp.0.saturating_add(bytes.0);
        }
    }
}

/// Lines such as `7f2a40000000 default anon=512 huge N0=256 N1=256 kernelpagesize_kB=2048`, of a file with so many lines before.
fn each_area(path: &str, before: usize, bytes: &[u8], mut visit: impl FnMut(MappingNodes)) -> Result<(), Unread> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = (before..).zip(text.lines());
    lines.try_for_each(|(index, line)| area(path, index, line).map(&mut visit))
}

fn area(path: &str, index: usize, line: &str) -> Result<MappingNodes, Unread> {
    let mut words = line.split_ascii_whitespace();
    let start = words.next().unwrap_or_default();
    let start = u64::from_str_radix(start, 16)
        .map_err(|_| parse::garbled(path, index, "the line", "ADDRESS POLICY ...", line))?;
    let mut area = MappingNodes {
        start,
        page: Bytes(0),
        is_hugetlb: false,
        nodes: Vec::new(),
    };
    for word in words {
        match word.split_once('=') {
            None => area.is_hugetlb |= word == "huge",
            Some(("kernelpagesize_kB", size)) => area.page = parse::kib(path, index, "kernelpagesize_kB", size)?,
            Some((key, pages)) => {
                if let Some(node) = key.strip_prefix('N').and_then(|node| node.parse().ok()) {
                    area.nodes
                        .push((node, parse::value(path, index, key, "a number of pages", pages)?));
                }
            }
        }
    }
    Ok(area)
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use model::Unread;

    use super::{MappingNodes, Sums, ThpByStart, each_area, nodes};
    use crate::processes::areas::counted;
    use crate::processes::{Limits, one};
    use crate::{Source, Tree};

    fn parse_numa_maps(path: &str, bytes: &[u8]) -> Result<Vec<MappingNodes>, Unread> {
        let mut areas = Vec::new();
        each_area(path, 0, bytes, |area| areas.push(area)).map(|()| areas)
    }

    fn thp(source: &Source, pid: u32) -> ThpByStart {
        let mut thp = ThpByStart::default();
        let areas = counted(source, pid).into_result().expect("mappings");
        areas.iter().for_each(|area| thp.add(&area.to_pages()));
        thp
    }

    const MAPS: &str = "7f0000000000 default anon=2048 dirty=2048 active=0 N0=1024 N1=1024 kernelpagesize_kB=4\n\
        7f0001000000 bind:1 anon=1024 N1=1024 kernelpagesize_kB=4\n\
        7f0002000000 default file=/N0=x heap anon=3 N0=3 kernelpagesize_kB=4\n\
        7f0040000000 interleave:0-1 file=/anon_hugepage\\040(deleted) huge anon=4 N0=2 N1=2 kernelpagesize_kB=2048\n\
        7ffd00000000 default stack\n";
    const SMAPS: &str = "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \nRss: 8192 kB\nAnonHugePages: 4096 kB\n\
        7f0001000000-7f0001400000 rw-p 00000000 00:00 0 \nRss: 4096 kB\nAnonHugePages: 2048 kB\n";

    #[test]
    fn kinds_are_told_where_the_kernel_tells_them_and_summed_where_not() {
        let source = Source::from_tree("made", Tree::new().file("/proc/5/smaps", SMAPS));
        let thp = thp(&source, 5);
        let mut sums = Sums::default();
        for area in parse_numa_maps("/proc/5/numa_maps", MAPS.as_bytes()).expect("areas") {
            sums.add(&area, thp.of(&area));
        }
        let told: Vec<(u32, String, Bytes)> = sums
            .0
            .into_values()
            .map(|node| (node.node, node.backing.to_string(), node.base_or_thp))
            .collect();
        assert_eq!(
            told,
            [
                (0, "base 12K + hugetlb-2M 4M".to_owned(), Bytes::mib(4)),
                (1, "base 2M + thp 2M + hugetlb-2M 4M".to_owned(), Bytes::mib(4)),
            ]
        );
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (line, place) in [("x default\n", ":1"), ("1000 default N0=many\n", ":1")] {
            let why = parse_numa_maps("/proc/5/numa_maps", line.as_bytes()).expect_err(line);
            assert!(why.place.ends_with(place), "{why}");
        }
        let fine: Vec<MappingNodes> =
            parse_numa_maps("x", b"1000 default new=word Nx=1\n").expect("unknown words are no error");
        assert!(fine[0].nodes.is_empty());
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn the_nodes_of_this_process_add_up_to_its_memory() {
        let (source, pid) = (Source::live(), std::process::id());
        let own = thp(&source, pid);
        let Some(nodes) = nodes(&source, pid, &own, Limits::default()).into_result().ok() else {
            return testing::skipped("the kernel has no numa_maps");
        };
        let total: u64 = nodes.iter().map(|node| node.total().0).sum();
        let resident = one(&source, pid).into_result().expect("itself").resident;
        let resident = resident.into_result().expect("known").0;
        // Other tests of this process map and unmap at the same time; pages of zeros and of devices are on no node.
        assert!(total > resident / 4 && total < resident * 4, "{total} of {resident}");
    }
}
