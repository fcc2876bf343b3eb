//! The files of a capture, and what of each is kept.

use super::keep::Kept;
use crate::snapshot::mounts::MOUNTS;
use crate::source::{CPUID, DEV_KVM, HUGETLB_FILES, PAGE_SIZE};

/// What of a file's content is kept.
pub(super) type Keep = fn(&[u8]) -> Kept;

/// Some files of the machine.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) pattern: &'static str,
    pub(super) keep: Keep,
}

pub(super) const fn all(pattern: &'static str) -> Entry {
    Entry { pattern, keep: whole }
}

/// Files of hardware and memory. (Sysctls have a table of their own in `snapshot::sysctl`.)
pub(super) const MACHINE: [Entry; 39] = [
    all(CPUID),
    all(PAGE_SIZE),
    all(DEV_KVM),
    all(HUGETLB_FILES),
    all("/proc/buddyinfo"),
    all("/proc/cgroups"),
    Entry {
        pattern: "/proc/cmdline",
        keep: known_parameters,
    },
    Entry {
        pattern: "/proc/cpuinfo",
        keep: first_block,
    },
    all("/proc/meminfo"),
    all("/proc/pagetypeinfo"),
    all("/proc/pressure/memory"),
    Entry {
        pattern: MOUNTS,
        keep: memory_mounts,
    },
    all("/proc/sys/kernel/osrelease"),
    all("/proc/uptime"),
    all("/proc/vmstat"),
    all("/sys/class/dmi/id/{sys_vendor,product_name}"),
    all("/sys/devices/system/cpu/{online,possible,isolated,nohz_full}"),
    all("/sys/devices/system/cpu/smt/{active,control}"),
    all("/sys/devices/system/cpu/cpu*/cache/index*/{level,type,size,shared_cpu_list}"),
    all("/sys/devices/system/cpu/cpu*/cache/index*/{ways_of_associativity,coherency_line_size}"),
    all("/sys/devices/system/cpu/cpu*/topology/{physical_package_id,die_id,core_id,thread_siblings_list}"),
    all("/sys/devices/system/node/{online,has_cpu,has_memory}"),
    all("/sys/devices/system/node/node*/{cpulist,distance,meminfo}"),
    all("/sys/devices/system/node/node*/hugepages/hugepages-*/{nr_hugepages,free_hugepages,surplus_hugepages}"),
    all("/sys/firmware/devicetree/base/hypervisor/compatible"),
    all("/sys/hypervisor/type"),
    all("/sys/kernel/debug/kvm/*/pages_{4k,2m,1g}"),
    all("/sys/kernel/mm/hugepages/hugepages-*/{nr_hugepages,free_hugepages,resv_hugepages,surplus_hugepages}"),
    all("/sys/kernel/mm/hugepages/hugepages-*/{nr_overcommit_hugepages,demote_size}"),
    all("/sys/kernel/mm/ksm/*"),
    all("/sys/kernel/mm/transparent_hugepage/{enabled,defrag,shmem_enabled,hpage_pmd_size,use_zero_page}"),
    all("/sys/kernel/mm/transparent_hugepage/shrink_underused"),
    all("/sys/kernel/mm/transparent_hugepage/khugepaged/*"),
    all("/sys/kernel/mm/transparent_hugepage/hugepages-*/{enabled,shmem_enabled}"),
    all("/sys/kernel/mm/transparent_hugepage/hugepages-*/stats/*"),
    all("/sys/module/kvm/parameters/{nx_huge_pages,tdp_mmu}"),
    all("/sys/module/kvm_intel/parameters/{ept,nested}"),
    all("/sys/module/kvm_amd/parameters/{npt,nested}"),
    all("/sys/module/kvm_pvm/parameters/pvm_native"),
];

/// Directories whose existence alone says something.
pub(super) const DIRECTORIES: [&str; 5] = [
    "/sys/kernel/mm/hugepages",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/module/kvm_amd",
    "/sys/module/kvm_intel",
    "/sys/module/kvm_pvm",
];

/// Boot parameters that decide page sizes and placement. Others can hold names and addresses and are left out.
const PARAMETERS: [&str; 34] = [
    "cgroup_disable",
    "cgroup_no_v1",
    "cma",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "hugetlb_cma",
    "hugetlb_cma_only",
    "hugetlb_free_vmemmap",
    "intel_iommu",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "kernelcore",
    "kvm-intel.ept",
    "kvm-amd.npt",
    "kvm.nx_huge_pages",
    "maxcpus",
    "mem",
    "mitigations",
    "movablecore",
    "no5lvl",
    "nohz_full",
    "nosmt",
    "numa",
    "numa_balancing",
    "psi",
    "rcu_nocbs",
    "systemd.unified_cgroup_hierarchy",
    "thp_anon",
    "thp_shmem",
    "transparent_hugepage",
    "transparent_hugepage_shmem",
    "transparent_hugepage_tmpfs",
];

pub(super) fn whole(content: &[u8]) -> Kept {
    Kept::whole(content)
}

/// `/proc/cpuinfo` repeats itself for every CPU.
fn first_block(content: &[u8]) -> Kept {
    let end = content
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .map_or(content.len(), |at| at + 1);
    Kept::whole(&content[..end])
}

/// File systems that hand out pages, and control groups.
pub(super) fn memory_mounts(content: &[u8]) -> Kept {
    let kinds: [&[u8]; 4] = [b"hugetlbfs", b"tmpfs", b"cgroup", b"cgroup2"];
    let keeps = |line: &&[u8]| {
        line.split(|&byte| byte == b' ')
            .nth(2)
            .is_some_and(|kind| kinds.contains(&kind))
    };
    let (ours, others): (Vec<&[u8]>, Vec<&[u8]>) = content.split_inclusive(|&byte| byte == b'\n').partition(keeps);
    Kept::part(ours.concat(), others.len(), "mounts of other file systems")
}

fn known_parameters(content: &[u8]) -> Kept {
    let text = String::from_utf8_lossy(content);
    let (known, others): (Vec<&str>, Vec<&str>) = text.split_whitespace().partition(|word| is_parameter(word));
    let line = format!("{}\n", known.join(" ")).into_bytes();
    Kept::part(line, others.len(), "boot parameters that decide nothing about pages")
}

/// Is it a boot parameter that decides page sizes?
pub(super) fn is_parameter(word: &str) -> bool {
    PARAMETERS.contains(&word.split('=').next().unwrap_or_default())
}
