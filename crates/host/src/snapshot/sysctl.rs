//! Kernel settings that have a say in page sizes.

use std::collections::BTreeMap;
use std::str::FromStr;

use model::{Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Source, parse};

/// The settings that are read, by sysctl name.
pub const SYSCTLS: [&str; 25] = [
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.randomize_va_space",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "vm.compact_unevictable_allowed",
    "vm.compaction_proactiveness",
    "vm.defrag_mode",
    "vm.enable_soft_offline",
    "vm.extfrag_threshold",
    "vm.hugetlb_optimize_vmemmap",
    "vm.hugetlb_shm_group",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.mmap_min_addr",
    "vm.movable_gigantic_pages",
    "vm.nr_hugepages",
    "vm.nr_overcommit_hugepages",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.swappiness",
    "vm.unprivileged_userfaultfd",
    "vm.watermark_boost_factor",
    "vm.zone_reclaim_mode",
];

/// Settings by sysctl name, such as `vm.nr_hugepages`; text as the kernel writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Sysctls(BTreeMap<String, Reading<String>>);

impl Sysctls {
    pub(super) fn read(source: &Source) -> Self {
        let read = |name: &str| (name.to_owned(), source.line(&path(name)));
        Self(SYSCTLS.into_iter().map(read).collect())
    }

    /// A setting as text.
    pub fn text(&self, name: &str) -> Reading<String> {
        self.0.get(name).cloned().unwrap_or_else(|| Reading::absent(path(name)))
    }

    /// A setting as a number; `kernel.perf_event_paranoid` can be negative, `kernel.shmmax` needs 64 bits.
    pub fn number<T: FromStr>(&self, name: &str) -> Reading<T> {
        let parsed = |text: String| -> Result<T, Unread> { parse::value(&path(name), 0, "", "a whole number", &text) };
        self.text(name).and_then(parsed)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Reading<String>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// Where the kernel keeps a setting: `/proc/sys/vm/nr_hugepages`.
pub fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}
