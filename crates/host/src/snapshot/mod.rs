//! One look at everything that decides page sizes on a machine.

pub mod cgroup;
pub mod cpu;
pub mod features;
pub mod hugetlb;
pub mod kernel;
pub mod kvm;
pub mod memory;
pub mod mounts;
pub mod numbers;
pub mod sysctl;
pub mod thp;
pub mod topology;

#[cfg(test)]
mod tests;

use model::{Bytes, Machine, PageKind, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Source;

pub use cgroup::{Cgroup, CgroupVersion};
pub use cpu::{Cache, CacheHolds, Cpu, Tlb, TlbArray, TlbHolds};
pub use features::Feature;
pub use hugetlb::{NodePool, Pool};
pub use kernel::{Kernel, PREEMPT};
pub use kvm::{Kvm, Mmu};
pub use memory::{FreeBlocks, Meminfo, Memory, Pressure, Stall};
pub use mounts::{Mount, MountTree};
pub use numbers::Numbers;
pub use sysctl::Sysctls;
pub use thp::{Choice, Thp, ThpSize};
pub use topology::{LogicalCpu, Node, Topology};

/// Everything that decides page sizes, read once. Each fact is there or says why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// `this machine`, or the path of the capture.
    pub source: String,
    /// Release, command line, base page.
    pub kernel: Kernel,
    /// meminfo, vmstat, free blocks, pressure.
    pub memory: Memory,
    /// The hugetlb pools, smallest pages first; absent if the kernel was built without hugetlb.
    pub pools: Reading<Vec<Pool>>,
    /// Transparent huge pages; absent if the kernel was built without them.
    pub thp: Reading<Thp>,
    /// Same-page merging (KSM), which splits huge pages to share base pages: its settings and counters by file name.
    pub ksm: Reading<Numbers>,
    /// Kernel settings by their sysctl name.
    pub sysctls: Sysctls,
    /// hugetlbfs, and tmpfs that is mounted with `huge=`.
    pub mounts: Reading<Vec<Mount>>,
    /// Control groups and their hugetlb controller.
    pub cgroup: Cgroup,
    /// Model, caches, TLBs, hypervisor.
    pub cpu: Cpu,
    /// Threads, cores, caches, packages, NUMA nodes.
    pub topology: Topology,
    /// `/dev/kvm` and how it translates guest addresses.
    pub kvm: Kvm,
}

impl Snapshot {
    /// Reads everything once.
    pub fn take(source: &Source) -> Self {
        Self {
            source: source.name().to_owned(),
            kernel: Kernel::read(source),
            memory: Memory::read(source),
            pools: hugetlb::read(source),
            thp: Thp::read(source),
            ksm: Numbers::of_directory(source, "/sys/kernel/mm/ksm"),
            sysctls: Sysctls::read(source),
            mounts: mounts::read(source),
            cgroup: Cgroup::read(source),
            cpu: Cpu::read(source),
            topology: Topology::read(source),
            kvm: Kvm::read(source),
        }
    }

    /// The machine in the few words that every result carries.
    pub fn machine(&self) -> Machine {
        Machine {
            cpu: self.cpu.model_name.clone(),
            kernel: self.kernel.release.clone(),
            hypervisor: self.cpu.hypervisor.clone(),
            cpus: self.topology.online.as_ref().map(|cpus| cpus.len() as u64),
            nodes: self.topology.nodes.as_ref().map(|nodes| nodes.len() as u64),
            memory: self.memory.get("MemTotal"),
            base_page: self.base_page(),
        }
    }

    /// The CPU's smallest page.
    pub fn base_page(&self) -> Reading<Bytes> {
        self.kernel.base_page.clone()
    }

    /// The size that one PMD entry maps, which is what `thp` means.
    pub fn pmd_page(&self) -> Reading<Bytes> {
        self.thp.as_ref().and_then(|thp| thp.pmd_size.clone().into_result())
    }

    /// The pool of that page size.
    pub fn pool(&self, size: Bytes) -> Option<&Pool> {
        self.pools.known()?.iter().find(|pool| pool.size == size)
    }

    /// Page sizes that a boot line can ask for; `None` where the machine shows no pools.
    pub fn boot_sizes(&self) -> Option<Vec<Bytes>> {
        let pools = self.pools.known().filter(|pools| !pools.is_empty())?;
        let made = [Bytes::mib(2), Bytes::gib(1)].into_iter();
        let made = made.filter(|size| self.is_made_at_boot(*size));
        Some(pools.iter().map(|pool| pool.size).chain(made).collect())
    }

    /// Has this kernel no pool of that size because its boot line does not name it, though the CPU has such pages?
    pub fn is_made_at_boot(&self, size: Bytes) -> bool {
        let (flag, without) = match size {
            size if size == Bytes::mib(2) => ("pse", Feature::PmdPool),
            size if size == Bytes::gib(1) => ("pdpe1gb", Feature::GiganticPool),
            _ => return false,
        };
        // Without hugetlb no boot line helps.
        let has_others = self.pools.known().is_some_and(|pools| !pools.is_empty());
        has_others
            && self.pool(size).is_none()
            && self.cpu.has(flag).known() == Some(&true)
            && self.kernel.has(without) == Some(false)
    }

    /// Every kind of page that this kernel can put behind anonymous memory, allowed at the moment or not. (mTHP sizes
    /// that only shared memory may use are left out.)
    pub fn page_kinds(&self) -> Vec<PageKind> {
        let thp = self.thp.known().map(Thp::kinds).unwrap_or_default();
        let pools = self.pools.known().map(Vec::as_slice).unwrap_or_default();
        let hugetlb = pools.iter().map(|pool| PageKind::Hugetlb(pool.size));
        [PageKind::Base].into_iter().chain(thp).chain(hugetlb).collect()
    }
}
