//! The settings that a plan may change: a closed set, so that no plan, whoever wrote it, can name another file.

/// Below `/proc/sys`.
const SYSCTLS: [&str; 14] = [
    "kernel/numa_balancing",
    "kernel/shmall",
    "kernel/shmmax",
    "kernel/shmmni",
    "vm/compaction_proactiveness",
    "vm/hugetlb_optimize_vmemmap",
    "vm/hugetlb_shm_group",
    "vm/max_map_count",
    "vm/min_free_kbytes",
    "vm/nr_hugepages",
    "vm/nr_hugepages_mempolicy",
    "vm/nr_overcommit_hugepages",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
];

/// Below `/sys/kernel/mm`; `SIZE` stands for `hugepages-NkB`.
const MEMORY: [&str; 22] = [
    "hugepages/SIZE/nr_hugepages",
    "hugepages/SIZE/nr_overcommit_hugepages",
    "ksm/merge_across_nodes",
    "ksm/pages_to_scan",
    "ksm/run",
    "ksm/sleep_millisecs",
    "ksm/use_zero_pages",
    "transparent_hugepage/SIZE/enabled",
    "transparent_hugepage/SIZE/shmem_enabled",
    "transparent_hugepage/defrag",
    "transparent_hugepage/enabled",
    "transparent_hugepage/khugepaged/alloc_sleep_millisecs",
    "transparent_hugepage/khugepaged/defrag",
    "transparent_hugepage/khugepaged/max_ptes_none",
    "transparent_hugepage/khugepaged/max_ptes_shared",
    "transparent_hugepage/khugepaged/max_ptes_swap",
    "transparent_hugepage/khugepaged/pages_to_scan",
    "transparent_hugepage/khugepaged/scan_sleep_millisecs",
    "transparent_hugepage/shmem_enabled",
    "transparent_hugepage/shrink_underused",
    "transparent_hugepage/split_underused_thp",
    "transparent_hugepage/use_zero_page",
];

/// Files of a control group's hugetlb controller, by what follows the size: version 2, then version 1.
const CGROUP: [&str; 4] = ["max", "rsvd.max", "limit_in_bytes", "rsvd.limit_in_bytes"];

/// Is this one of the settings that a plan may change? The path must be spelled exactly as the kernel's.
pub(super) fn is_known(path: &str) -> bool {
    if let Some(name) = path.strip_prefix("/proc/sys/") {
        return SYSCTLS.contains(&name);
    }
    if let Some(name) = path.strip_prefix("/sys/kernel/mm/") {
        return MEMORY.contains(&with_size(name).as_str());
    }
    if let Some(rest) = path.strip_prefix("/sys/devices/system/node/node") {
        let node_pool = rest.split_once('/').filter(|(node, _)| is_number(node));
        return node_pool.is_some_and(|(_, name)| with_size(name) == "hugepages/SIZE/nr_hugepages");
    }
    path.strip_prefix("/sys/fs/cgroup/").is_some_and(is_cgroup_limit)
}

/// The path with its component `hugepages-NkB` replaced by `SIZE`; a literal `SIZE` names nothing.
fn with_size(path: &str) -> String {
    let size = |part: &str| {
        let kib = part.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB"));
        kib.is_some_and(is_number)
    };
    let plain = |part| match part {
        "SIZE" => "",
        part if size(part) => "SIZE",
        part => part,
    };
    path.split('/').map(plain).collect::<Vec<_>>().join("/")
}

/// `any/group/hugetlb.2MB.max`.
fn is_cgroup_limit(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    let limit = file.strip_prefix("hugetlb.").and_then(|rest| rest.split_once("B."));
    limit.is_some_and(|(size, name)| {
        let digits = size.trim_end_matches(['K', 'M', 'G']);
        size.len() == digits.len() + 1 && is_number(digits) && CGROUP.contains(&name)
    })
}

/// Plain decimal digits without a leading zero (but `0` itself), as the kernel writes numbers in names.
fn is_number(text: &str) -> bool {
    (1..=12).contains(&text.len())
        && text.bytes().all(|digit| digit.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}
