//! The settings that a plan may change, and the values that each may get: a closed set, so that no plan, whatever its author,
//! can name another file or write anything else to one of these.

/// What a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// `max`, or a number of bytes.
    Limit,
}

use Values::{Limit, Number, Words};

/// More pages than any machine has: 64 TiB in pages of 4 KiB.
const PAGES: Values = Number(0, 1 << 34);
const SWITCH: Values = Number(0, 1);
const MILLISECONDS: Values = Number(0, u32::MAX as u64);
/// Base pages of a huge page; 8192 on arm64 with base pages of 64 KiB.
const ENTRIES: Values = Number(0, 8191);
const POLICY: Values = Words(&["always", "madvise", "never"]);
const SHMEM: Values = Words(&["always", "within_size", "advise", "never", "deny", "force"]);
const MTHP: Values = Words(&["always", "inherit", "madvise", "never"]);
const MTHP_SHMEM: Values = Words(&["always", "inherit", "within_size", "advise", "never"]);
const DEFRAG: Values = Words(&["always", "defer", "defer+madvise", "madvise", "never"]);

/// Below `/proc/sys`: Documentation/admin-guide/sysctl/vm.rst and kernel.rst.
const SYSCTLS: [(&str, Values); 14] = [
    ("kernel/numa_balancing", Number(0, 3)),
    // Less than the kernel's own default until 3.16 (32 MiB, 4096 segments) keeps programs from starting.
    ("kernel/shmall", Number(512, u64::MAX)),
    ("kernel/shmmax", Number(32 << 20, u64::MAX)),
    // IPCMNI_EXTEND, with the boot parameter ipcmni_extend.
    ("kernel/shmmni", Number(4096, 1 << 24)),
    ("vm/compaction_proactiveness", Number(0, 100)),
    ("vm/hugetlb_optimize_vmemmap", SWITCH),
    // A group's number; the last one stands for none.
    ("vm/hugetlb_shm_group", Number(0, u32::MAX as u64 - 1)),
    // Fewer than the kernel's own default would end programs that run.
    ("vm/max_map_count", Number(65_530, i32::MAX as u64)),
    // The kernel's own most is 256 MiB; 4 GiB are what large machines are tuned to.
    ("vm/min_free_kbytes", Number(1024, 4 << 20)),
    ("vm/nr_hugepages", PAGES),
    ("vm/nr_hugepages_mempolicy", PAGES),
    ("vm/nr_overcommit_hugepages", PAGES),
    ("vm/swappiness", Number(0, 200)),
    ("vm/zone_reclaim_mode", Number(0, 7)),
];

/// Below `/sys/kernel/mm`; `SIZE` stands for `hugepages-NkB`: Documentation/admin-guide/mm/hugetlbpage.rst, transhuge.rst, ksm.rst.
const MEMORY: [(&str, Values); 22] = [
    ("hugepages/SIZE/nr_hugepages", PAGES),
    ("hugepages/SIZE/nr_overcommit_hugepages", PAGES),
    ("ksm/merge_across_nodes", SWITCH),
    ("ksm/pages_to_scan", MILLISECONDS),
    ("ksm/run", Number(0, 2)),
    ("ksm/sleep_millisecs", MILLISECONDS),
    ("ksm/use_zero_pages", SWITCH),
    ("transparent_hugepage/SIZE/enabled", MTHP),
    ("transparent_hugepage/SIZE/shmem_enabled", MTHP_SHMEM),
    ("transparent_hugepage/defrag", DEFRAG),
    ("transparent_hugepage/enabled", POLICY),
    ("transparent_hugepage/khugepaged/alloc_sleep_millisecs", MILLISECONDS),
    ("transparent_hugepage/khugepaged/defrag", SWITCH),
    ("transparent_hugepage/khugepaged/max_ptes_none", ENTRIES),
    ("transparent_hugepage/khugepaged/max_ptes_shared", ENTRIES),
    ("transparent_hugepage/khugepaged/max_ptes_swap", ENTRIES),
    (
        "transparent_hugepage/khugepaged/pages_to_scan",
        Number(1, u32::MAX as u64),
    ),
    ("transparent_hugepage/khugepaged/scan_sleep_millisecs", MILLISECONDS),
    ("transparent_hugepage/shmem_enabled", SHMEM),
    ("transparent_hugepage/shrink_underused", SWITCH),
    ("transparent_hugepage/split_underused_thp", SWITCH),
    ("transparent_hugepage/use_zero_page", SWITCH),
];

/// Files of a control group's hugetlb controller, by what follows the size: version 2, then version 1.
const CGROUP: [&str; 4] = ["max", "rsvd.max", "limit_in_bytes", "rsvd.limit_in_bytes"];

/// Is this one of the settings that a plan may change? The path must be spelled exactly as the kernel's.
pub(super) fn is_known(path: &str) -> bool {
    values(path).is_some()
}

/// Is this a pool, whole or on one node?
pub(super) fn is_pool(path: &str) -> bool {
    path.ends_with("/nr_hugepages") && path.starts_with("/sys/") && is_known(path)
}

/// May this value be written there?
///
/// # Errors
/// What may be written, in words.
pub(super) fn check(path: &str, value: &str) -> Result<(), String> {
    match values(path) {
        Some(values) if values.hold(value) => Ok(()),
        Some(values) => Err(format!("{path} takes {values}")),
        None => Err("it is not one of the settings that hugewise changes".to_owned()),
    }
}

impl Values {
    fn hold(self, value: &str) -> bool {
        match self {
            Number(least, most) => number(value).is_some_and(|number| (least..=most).contains(&number)),
            Words(words) => words.contains(&value),
            Limit => value == "max" || number(value).is_some(),
        }
    }
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number(least, u64::MAX) => write!(f, "a whole number from {least}"),
            Number(least, most) => write!(f, "a whole number from {least} to {most}"),
            Words(words) => write!(f, "one of {}", words.join(", ")),
            Limit => write!(f, "`max` or a number of bytes"),
        }
    }
}

/// Digits alone: no sign, no blanks.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// What a setting holds; `None` of one that no plan may change.
fn values(path: &str) -> Option<Values> {
    let of = |table: &[(&str, Values)], name: &str| Some(table.iter().find(|(known, _)| *known == name)?.1);
    if let Some(name) = path.strip_prefix("/proc/sys/") {
        return of(&SYSCTLS, name);
    }
    if let Some(name) = path.strip_prefix("/sys/kernel/mm/") {
        return of(&MEMORY, &with_size(name));
    }
    if let Some(rest) = path.strip_prefix("/sys/devices/system/node/node") {
        let node_pool = rest.split_once('/').filter(|(node, _)| is_number(node));
        let is_pool = node_pool.is_some_and(|(_, name)| with_size(name) == "hugepages/SIZE/nr_hugepages");
        return is_pool.then_some(PAGES);
    }
    let group = path.strip_prefix("/sys/fs/cgroup/")?;
    is_cgroup_limit(group).then_some(Limit)
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
