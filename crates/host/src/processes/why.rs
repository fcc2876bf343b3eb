//! Why a mapping is backed by base pages although transparent ones are larger: the first reason that holds, by typed facts.

use model::process::{MappingPages, ProcessPages};
use model::{Bytes, PageKind};

use super::file::by_file;
use super::ground::{Ground, advised_against, by_shape, has};
use super::mapping::{DEV_SHM, is_shmem};
use super::reason::Reason;

/// How the JVM calls the file of ZGC's heap.
const ZGC_HEAP: &str = "/memfd:java_heap";

/// Why some of a mapping is backed by base pages; `None` if none of it is, or if it draws from a hugetlb pool.
pub fn why_base(mapping: &MappingPages, process: &ProcessPages, ground: &Ground<'_>) -> Option<Reason> {
    let base = mapping.backing.of(PageKind::Base);
    if base == Bytes(0) || has(mapping, "ht") {
        return None;
    }
    if is_special(mapping) {
        return Some(Reason::Special);
    }
    let Some((thp, &pmd)) = ground.thp.known().and_then(|thp| Some((thp, thp.pmd_size.known()?))) else {
        return Some(Reason::PolicyUnread);
    };
    if is_of_file(mapping) {
        return Some(by_file(mapping, process, ground, pmd).unwrap_or(Reason::NotGiven));
    }
    let reason = advised_against(mapping, process).or_else(|| {
        let by_policy = match is_shared_memory(mapping) {
            true => thp
                .shared_policy(pmd)
                .known()
                .map(|policy| by_shared_policy(mapping, policy)),
            false => thp.policy(pmd).known().map(|policy| by_policy(mapping, policy)),
        };
        let Some(by_policy) = by_policy else {
            return Some(Reason::PolicyUnread);
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

fn is_special(mapping: &MappingPages) -> bool {
    ["io", "pf", "mm", "de"].iter().any(|flag| has(mapping, flag)) || is_of_kernel(&mapping.name)
}

/// Files of /dev/shm are files, whatever programs share by them.
fn is_of_file(mapping: &MappingPages) -> bool {
    let is_shared = is_shared_memory(mapping) && !mapping.name.starts_with(DEV_SHM);
    mapping.name.starts_with('/') && !is_shared
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

fn by_shared_policy(mapping: &MappingPages, policy: &str) -> Option<Reason> {
    if mapping.thp_eligible == Some(true) {
        return None;
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

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
