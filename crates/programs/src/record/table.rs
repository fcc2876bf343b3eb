//! The files of a capture, and what of each is kept.

use super::keep::Kept;
use crate::config::STARTERS;
use host::snapshot::mounts::MOUNTS;
use host::source::HUGETLB_FILES;

/// What of a file's content is kept.
pub(super) type Keep = fn(&[u8]) -> Kept;

/// Files of the machine that the snapshot does not read: other parts of a diagnosis do.
pub(super) const BESIDE_SNAPSHOT: [(&str, Keep); 3] = [
    (HUGETLB_FILES, whole),
    ("/proc/uptime", whole),
    ("/sys/kernel/debug/kvm/*/pages_{4k,2m,1g}", whole),
];

/// What is kept of a file that the snapshot reads. Only the kernel's own files are, and of those that name more than memory
/// and placement a part.
pub(super) fn of_snapshot(path: &str) -> Keep {
    match path {
        "/proc/cmdline" => known_parameters,
        "/proc/cpuinfo" => first_block,
        MOUNTS => memory_mounts,
        // Control groups may be mounted anywhere.
        _ if path.ends_with("/cgroup.controllers") => whole,
        _ if ["/proc/", "/sys/", "/hugewise/"]
            .iter()
            .any(|own| path.starts_with(own)) =>
        {
            whole
        }
        _ => |_| Kept::idle(),
    }
}

/// Boot parameters that decide page sizes and placement. Others can hold names and addresses and are left out.
const PARAMETERS: [&str; 37] = [
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
    "preempt",
    "psi",
    "rcu_nocbs",
    "sysctl.vm.nr_hugepages",
    "sysctl.vm.nr_overcommit_hugepages",
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

/// `/proc/cpuinfo` repeats itself for every CPU. Of POWER the platform and its MMU stand behind all.
fn first_block(content: &[u8]) -> Kept {
    let end = content
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .map_or(content.len(), |at| at + 1);
    let (first, rest) = content.split_at(end);
    let is_of_power = |line: &&[u8]| line.starts_with(b"platform") || line.starts_with(b"MMU");
    let of_power: Vec<&[u8]> = rest
        .split_inclusive(|&byte| byte == b'\n')
        .filter(is_of_power)
        .collect();
    Kept::whole(&[first, &of_power.concat()].concat())
}

/// File systems that hand out pages, control groups, that of the settings, and that of the processes (`hidepid`).
pub(super) fn memory_mounts(content: &[u8]) -> Kept {
    let kinds: [&[u8]; 7] = [
        b"hugetlbfs",
        b"tmpfs",
        b"cgroup",
        b"cgroup2",
        b"sysfs",
        b"fuse.lxcfs",
        b"proc",
    ];
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
    let (mut known, others): (Vec<&str>, Vec<&str>) = text.split_whitespace().partition(|word| is_parameter(word));
    // What follows these may hold the machine's id.
    let is_there = |start: &&str| others.iter().any(|word| word.starts_with(*start));
    known.extend(STARTERS.into_iter().filter(is_there));
    let line = format!("{}\n", known.join(" ")).into_bytes();
    Kept::part(line, others.len(), "boot parameters that decide nothing about pages")
}

/// Is it a boot parameter that decides page sizes?
pub(super) fn is_parameter(word: &str) -> bool {
    PARAMETERS.contains(&word.split('=').next().unwrap_or_default())
}
