//! Why a mapping is backed by base pages although transparent ones are larger: the first reason that holds, by typed facts.

use std::fmt;

use model::process::{MappingPages, ProcessPages};
use model::{Bytes, PageKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mapping::{DEV_SHM, is_shmem};
use crate::snapshot::Thp;

/// How the JVM calls the file of ZGC's heap.
const ZGC_HEAP: &str = "/memfd:java_heap";

/// Why base pages, in the order in which the kernel would refuse. `Display` is the sentence for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// This kernel has no THP, or its settings could not be read.
    PolicyUnread,
    /// The memory of a device or of the kernel (`io`, `pf`, `mm`, `de`): never transparent.
    Special,
    /// Page cache: its file system decides, not the policy for anonymous memory.
    OfFile,
    /// Shared memory, and the machine's policy for it (`shmem_enabled`) is `never`.
    SharedNever,
    /// Shared memory, the policy for it is `advise`, and madvise(MADV_HUGEPAGE) was not called on it.
    SharedNotAdvised,
    /// ZGC's heap under the policy `advise`: the JVM advises it through mappings that it takes away again, so that its flags do
    /// not show it.
    HeapNotAdvised,
    /// A file of a tmpfs such as /dev/shm: the mount's option `huge=` decides.
    OfTmpfs,
    /// madvise(MADV_NOHUGEPAGE) was called on it (`nh`).
    AdvisedAgainst,
    /// prctl(PR_SET_THP_DISABLE) here or in an ancestor.
    SwitchedOff,
    /// The machine's policy is `never`.
    PolicyNever,
    /// The machine's policy is `madvise`, and madvise(MADV_HUGEPAGE) was not called on it.
    NotAdvised,
    /// No aligned block of the PMD size fits in.
    TooSmall,
    /// Only the unaligned ends are backed by base pages: all that can be large is.
    Ends,
    /// The kernel's flags of the mapping were not read, because that would have held up a large process.
    FlagsUnread,
    /// The kernel says `THPeligible: 0` though nothing above forbids it: since Linux 6.18 that is how a process under
    /// PR_THP_DISABLE_EXCEPT_ADVISED looks.
    NotEligible,
    /// Eligible, but not allocated at the page fault (touched before the policy changed, fragmentation, a memory limit) and
    /// not collapsed by khugepaged since.
    NotGiven,
}

impl Reason {
    /// All of them, in their order.
    pub const ALL: [Self; 16] = [
        Self::PolicyUnread,
        Self::Special,
        Self::OfFile,
        Self::SharedNever,
        Self::SharedNotAdvised,
        Self::HeapNotAdvised,
        Self::OfTmpfs,
        Self::AdvisedAgainst,
        Self::SwitchedOff,
        Self::PolicyNever,
        Self::NotAdvised,
        Self::TooSmall,
        Self::Ends,
        Self::FlagsUnread,
        Self::NotEligible,
        Self::NotGiven,
    ];

    /// Could larger pages back the memory with other settings?
    pub fn can_change(self) -> bool {
        !matches!(
            self,
            Self::PolicyUnread | Self::Special | Self::OfFile | Self::TooSmall | Self::Ends
        )
    }

    /// In a word or two, for tables.
    pub fn short(self) -> &'static str {
        match self {
            Self::PolicyUnread => "policy not read",
            Self::Special => "device or kernel",
            Self::OfFile => "file",
            Self::SharedNever => "shmem never",
            Self::SharedNotAdvised => "shmem not advised",
            Self::HeapNotAdvised => "ZGC heap not advised",
            Self::OfTmpfs => "tmpfs huge=",
            Self::AdvisedAgainst => "nohugepage",
            Self::SwitchedOff => "prctl",
            Self::PolicyNever => "policy never",
            Self::NotAdvised => "not advised",
            Self::TooSmall => "too small",
            Self::Ends => "ends only",
            Self::FlagsUnread => "flags not read",
            Self::NotEligible => "not eligible",
            Self::NotGiven => "not allocated",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PolicyUnread => "the THP policy could not be read",
            Self::Special => "memory of a device or of the kernel",
            Self::OfFile => "page cache, which has a policy of its own",
            Self::SharedNever => {
                "shared memory without hugetlb pages, and the THP policy for it (shmem_enabled) is `never`"
            }
            Self::SharedNotAdvised => {
                "shared memory without hugetlb pages, and the THP policy for it (shmem_enabled) waits for advice (MADV_HUGEPAGE)"
            }
            Self::HeapNotAdvised => {
                "ZGC's heap, which a JVM with -XX:+UseTransparentHugePages advises only when it allocates the memory: the THP \
                 policy for it (shmem_enabled) has to be `advise` by then"
            }
            Self::OfTmpfs => "a file of a tmpfs, whose mount option `huge=` decides",
            Self::AdvisedAgainst => "the program advised against huge pages (MADV_NOHUGEPAGE)",
            Self::SwitchedOff => "switched off for this process or an ancestor (PR_SET_THP_DISABLE)",
            Self::PolicyNever => "the machine's policy is `never`",
            Self::NotAdvised => {
                "the machine's policy is `madvise` and the program did not advise this memory (MADV_HUGEPAGE)"
            }
            Self::TooSmall => "no aligned block of the size of a huge page fits into the mapping",
            Self::Ends => "only the unaligned ends are backed by base pages",
            Self::FlagsUnread => "not known: reading the flags of so large a process would stall it",
            Self::NotEligible => {
                "the kernel reports it as not eligible, as for a process under PR_THP_DISABLE_EXCEPT_ADVISED"
            }
            Self::NotGiven => {
                "eligible, but no huge page was allocated at the fault, and khugepaged has not collapsed it"
            }
        })
    }
}

/// Why some of a mapping is backed by base pages; `None` if none of it is, or if it draws from a hugetlb pool.
///
/// `thp` is the snapshot's policy; `None` where it could not be read.
pub fn why_base(mapping: &MappingPages, process: &ProcessPages, thp: Option<&Thp>) -> Option<Reason> {
    let base = mapping.backing.of(PageKind::Base);
    if base == Bytes(0) || has(mapping, "ht") {
        return None;
    }
    let is_shared = is_shared_memory(mapping);
    let reason = forbidden(mapping, process).or_else(|| {
        let policy = thp.and_then(|thp| policy(thp, is_shared));
        let Some((pmd, policy)) = policy else {
            return Some(Reason::PolicyUnread);
        };
        let by_policy = match is_shared {
            true => by_shared_policy(mapping, &policy),
            false => by_policy(mapping, &policy),
        };
        by_policy
            .or_else(|| by_shape(mapping, base, pmd))
            .or_else(|| mapping.flags.is_empty().then_some(Reason::FlagsUnread))
    });
    Some(reason.unwrap_or(match mapping.thp_eligible {
        Some(false) => Reason::NotEligible,
        Some(true) | None => Reason::NotGiven,
    }))
}

/// What holds under every policy of the machine.
fn forbidden(mapping: &MappingPages, process: &ProcessPages) -> Option<Reason> {
    if ["io", "pf", "mm", "de"].iter().any(|flag| has(mapping, flag)) || is_of_kernel(&mapping.name) {
        Some(Reason::Special)
    } else if mapping.name.starts_with('/') && !is_shared_memory(mapping) {
        Some(Reason::OfFile)
    } else if has(mapping, "nh") {
        Some(Reason::AdvisedAgainst)
    } else if process.thp_enabled.known() == Some(&false) {
        Some(Reason::SwitchedOff)
    } else {
        None
    }
}

fn is_of_kernel(name: &str) -> bool {
    ["[vdso]", "[vvar", "[vsyscall]", "[uprobes]"]
        .iter()
        .any(|own| name.starts_with(own))
}

/// A shared mapping of memory without a file on a disk.
fn is_shared_memory(mapping: &MappingPages) -> bool {
    mapping.perms.ends_with('s') && is_shmem(mapping.name.as_bytes())
}

/// The PMD size, and the policy for pages of that size.
fn policy(thp: &Thp, is_shared: bool) -> Option<(Bytes, String)> {
    let pmd = *thp.pmd_size.known()?;
    let policy = match is_shared {
        true => thp.shared_policy(pmd),
        false => thp.policy(pmd),
    };
    Some((pmd, policy.known()?.clone()))
}

/// The kernel's `THPeligible` comes first: it knows a tmpfs's own mount options.
fn by_shared_policy(mapping: &MappingPages, policy: &str) -> Option<Reason> {
    if mapping.thp_eligible == Some(true) {
        return None;
    }
    if mapping.name.starts_with(DEV_SHM) {
        return Some(Reason::OfTmpfs);
    }
    match policy {
        "never" | "deny" => Some(Reason::SharedNever),
        "advise" if !mapping.flags.is_empty() && !has(mapping, "hg") => {
            Some(match mapping.name.starts_with(ZGC_HEAP) {
                true => Reason::HeapNotAdvised,
                false => Reason::SharedNotAdvised,
            })
        }
        _ => None,
    }
}

fn by_policy(mapping: &MappingPages, policy: &str) -> Option<Reason> {
    match policy {
        "never" => Some(Reason::PolicyNever),
        "madvise" if !mapping.flags.is_empty() && !has(mapping, "hg") => Some(Reason::NotAdvised),
        _ => None,
    }
}

/// Can the bytes on base pages lie in an aligned block at all?
fn by_shape(mapping: &MappingPages, base: Bytes, pmd: Bytes) -> Option<Reason> {
    let blocks = aligned_bytes(mapping, pmd)?;
    if blocks == 0 {
        Some(Reason::TooSmall)
    } else if base.0 <= mapping.size.0.saturating_sub(blocks) && mapping.backing.of(PageKind::Thp).0 == blocks {
        Some(Reason::Ends)
    } else {
        None
    }
}

/// Bytes of a mapping in whole aligned blocks; `None` if no block can begin in it.
pub(super) fn aligned_bytes(mapping: &MappingPages, block: Bytes) -> Option<u64> {
    let first = mapping.start.0.checked_next_multiple_of(block.0)?;
    Some(mapping.end.0.saturating_sub(first) / block.0 * block.0)
}

fn has(mapping: &MappingPages, flag: &str) -> bool {
    mapping.flags.iter().any(|set| set == flag)
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
