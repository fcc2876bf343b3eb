//! Which CPUs share a core, a last-level cache, a package, a NUMA node.

use std::collections::BTreeSet;

use model::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::memory::Meminfo;
use crate::{CpuList, Source};

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// Threads, cores, caches, packages and nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// CPUs that run.
    pub online: Reading<CpuList>,
    /// Do cores run several threads at the moment?
    pub smt: Reading<bool>,
    /// Every online CPU.
    pub cpus: Vec<LogicalCpu>,
    /// NUMA nodes; absent if the kernel was built without NUMA.
    pub nodes: Reading<Vec<Node>>,
}

/// One logical CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogicalCpu {
    /// Its number.
    pub cpu: u32,
    /// Its package (socket); -1 where the firmware does not report it.
    pub package: Reading<i64>,
    /// Its core's number inside the package.
    pub core: Reading<i64>,
    /// The threads of its core, itself included.
    pub twins: Reading<CpuList>,
    /// The CPUs that share its last-level cache, itself included.
    pub llc: Reading<CpuList>,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// Its CPUs; empty for memory without CPUs.
    pub cpus: Reading<CpuList>,
    /// Its memory.
    pub meminfo: Reading<Meminfo>,
    /// Distances to all nodes, in order of their numbers; 10 is local.
    pub distances: Reading<Vec<u32>>,
}

impl Topology {
    pub(super) fn read(source: &Source) -> Self {
        let online: Reading<CpuList> = source.value(&format!("{CPUS}/online"), "a list of CPUs");
        let numbers = online.known().into_iter().flat_map(CpuList::iter);
        let cpus: Vec<LogicalCpu> = numbers.map(|cpu| LogicalCpu::read(source, cpu)).collect();
        Self {
            smt: smt(source, &cpus),
            nodes: node_numbers(source).map(|nodes| nodes.into_iter().map(|node| Node::read(source, node)).collect()),
            online,
            cpus,
        }
    }

    /// The cores, each as the list of its threads.
    pub fn cores(&self) -> Vec<CpuList> {
        distinct(self.cpus.iter().map(|cpu| &cpu.twins))
    }

    /// The last-level caches, each as the list of CPUs that share it.
    pub fn llcs(&self) -> Vec<CpuList> {
        distinct(self.cpus.iter().map(|cpu| &cpu.llc))
    }

    /// The packages' numbers.
    pub fn packages(&self) -> BTreeSet<i64> {
        self.cpus
            .iter()
            .filter_map(|cpu| cpu.package.known().copied())
            .collect()
    }

    /// Has the machine no such node? Without any, as on a kernel without NUMA, that is not known.
    pub fn lacks(&self, node: u32) -> bool {
        let nodes = self.nodes.known().map_or(&[][..], Vec::as_slice);
        !nodes.is_empty() && nodes.iter().all(|own| own.node != node)
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        let holds = |node: &&Node| node.cpus.known().is_some_and(|cpus| cpus.contains(cpu));
        self.nodes.known()?.iter().find(holds).map(|node| node.node)
    }
}

impl LogicalCpu {
    fn read(source: &Source, cpu: u32) -> Self {
        let directory = format!("{CPUS}/cpu{cpu}/topology");
        let twins = format!("{directory}/thread_siblings_list");
        Self {
            cpu,
            package: source.value(&format!("{directory}/physical_package_id"), "a package number"),
            core: source.value(&format!("{directory}/core_id"), "a core number"),
            twins: source.value(&twins, "a list of CPUs"),
            llc: llc(source, cpu),
        }
    }
}

impl Node {
    fn read(source: &Source, node: u32) -> Self {
        let directory = format!("{NODES}/node{node}");
        Self {
            node,
            cpus: source.value(&format!("{directory}/cpulist"), "a list of CPUs"),
            meminfo: Meminfo::read(source, &format!("{directory}/meminfo")),
            distances: distances(source, &format!("{directory}/distance")),
        }
    }
}

/// The numbers of the online nodes, in order. A tree of few files need not have the directories of all.
pub fn node_numbers(source: &Source) -> Reading<Vec<u32>> {
    source.list(NODES).map(|names| {
        let number = |name: &String| name.strip_prefix("node")?.parse().ok();
        let online: Reading<CpuList> = source.value(&format!("{NODES}/online"), "a list of nodes");
        let online = online.known().into_iter().flat_map(CpuList::iter);
        let mut nodes: Vec<u32> = names.iter().filter_map(number).chain(online).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    })
}

/// As the kernel says; kernels and architectures without that file are judged by their cores.
fn smt(source: &Source, cpus: &[LogicalCpu]) -> Reading<bool> {
    let told = source.switch(&format!("{CPUS}/smt/active"));
    let mut known = cpus.iter().filter_map(|cpu| cpu.twins.known()).peekable();
    match told.known() {
        None if known.peek().is_some() => Reading::Known(known.any(|twins| twins.len() > 1)),
        _ => told,
    }
}

/// The highest level that is listed is the last one.
fn llc(source: &Source, cpu: u32) -> Reading<CpuList> {
    let directory = format!("{CPUS}/cpu{cpu}/cache");
    let highest = source.list(&directory).map(|names| {
        let is_index = |name: &String| name.starts_with("index");
        let level = |name: &String| source.number(&format!("{directory}/{name}/level")).known().copied();
        names.into_iter().filter(is_index).max_by_key(level)
    });
    match highest {
        Reading::Known(Some(name)) => source.value(&format!("{directory}/{name}/shared_cpu_list"), "a list of CPUs"),
        Reading::Known(None) => Reading::absent(format!("{directory}/index*")),
        Reading::Unread(why) => Reading::Unread(why),
    }
}

fn distances(source: &Source, path: &str) -> Reading<Vec<u32>> {
    source.line(path).and_then(|line| {
        let distance = |word| crate::parse::value(path, 0, "", "a distance", word);
        line.split_whitespace().map(distance).collect()
    })
}

fn distinct<'a>(lists: impl Iterator<Item = &'a Reading<CpuList>>) -> Vec<CpuList> {
    let known: BTreeSet<&CpuList> = lists.filter_map(Reading::known).collect();
    let mut lists: Vec<CpuList> = known.into_iter().cloned().collect();
    lists.sort_unstable_by_key(CpuList::first);
    lists
}
