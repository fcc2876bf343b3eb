//! Why page cache is on base pages: its file system and the kernel, how it is mapped, and how it was read.

use model::process::{MappingPages, ProcessPages};
use model::{Bytes, PageKind};

use super::ground::{Ground, advised_against, aligned_bytes, by_shape, has};
use super::mapping::{DEV_SHM, is_shmem};
use super::reason::Reason;
use crate::snapshot::{Feature, Mount, MountTree};

/// The type of the file system that keeps a file's pages: below an overlay that of its layers, if it is one.
pub fn file_system<'a>(mounts: &'a MountTree, path: &str) -> Option<&'a str> {
    keeper(mounts, path).map(|mount| mount.kind.as_str())
}

fn keeper<'a>(mounts: &'a MountTree, path: &str) -> Option<&'a Mount> {
    if is_of_kernel(path) {
        return None;
    }
    let mount = mounts.of(path)?;
    if mount.kind != "overlay" {
        return Some(mount);
    }
    let layers = ["upperdir", "lowerdir"]
        .into_iter()
        .filter_map(|name| mount.option(name));
    let mut below = layers.flat_map(|paths| paths.split(':')).map(|path| mounts.of(path));
    let first = below.next()??;
    let is_one = first.kind != "overlay" && below.all(|other| other.is_some_and(|other| other.kind == first.kind));
    Some(if is_one { first } else { mount })
}

/// Memory that has a file of the kernel's own.
fn is_of_kernel(path: &str) -> bool {
    is_shmem(path.as_bytes()) && !path.starts_with(DEV_SHM)
}

/// What a file system does with the pages of its files.
enum Cache<'a> {
    /// It keeps them in huge pages, if they were read or written so.
    Huge,
    /// It does not, on this kernel.
    Small,
    /// It is a tmpfs with this option `huge=`.
    Memory(Option<&'a str>),
    /// Which one it is, or what it does, is not known.
    Unknown,
}

fn cache<'a>(ground: &Ground<'a>, path: &str) -> Cache<'a> {
    let keeper = keeper(ground.mounts, path);
    match keeper.map(|mount| (mount.kind.as_str(), mount.option("huge"))) {
        Some(("tmpfs", huge)) => Cache::Memory(huge),
        Some((kind, _)) => match Feature::of_file_system(kind).map(|feature| ground.kernel.has(feature)) {
            Some(Some(true)) => Cache::Huge,
            Some(Some(false)) => Cache::Small,
            _ => Cache::Unknown,
        },
        None if path.starts_with(DEV_SHM) => Cache::Memory(None),
        None => Cache::Unknown,
    }
}

/// The first reason that holds, of a mapping with base pages.
pub(super) fn by_file(
    mapping: &MappingPages,
    process: &ProcessPages,
    ground: &Ground<'_>,
    pmd: Bytes,
) -> Option<Reason> {
    if mapping.size < pmd {
        return Some(Reason::TooSmall);
    }
    let cache = cache(ground, &mapping.name);
    let by_system = match cache {
        // khugepaged collapses it (CONFIG_READ_ONLY_THP_FOR_FS).
        Cache::Small if mapping.thp_eligible == Some(true) => return None,
        Cache::Small => Some(Reason::FileSystem),
        Cache::Memory(huge) => by_tmpfs(mapping, ground, huge),
        Cache::Huge | Cache::Unknown => None,
    };
    by_system
        .or_else(|| advised_against(mapping, process))
        .or_else(|| (!is_congruent(mapping, pmd)).then_some(Reason::FileUnaligned))
        .or_else(|| by_shape(mapping, mapping.backing.of(PageKind::Base), pmd))
        .or(match cache {
            Cache::Unknown => Some(Reason::OfFile),
            Cache::Memory(_) | Cache::Small => None,
            Cache::Huge if mapping.perms.starts_with("rw") && mapping.perms.ends_with('p') => Some(Reason::FileCopies),
            Cache::Huge if mapping.flags.is_empty() => Some(Reason::FlagsUnread),
            Cache::Huge if has(mapping, "hg") => Some(Reason::FileCached),
            Cache::Huge => Some(Reason::FileNotAdvised),
        })
}

/// The kernel's `THPeligible` comes first; `deny` and `force` of the machine hold for every tmpfs.
fn by_tmpfs(mapping: &MappingPages, ground: &Ground<'_>, huge: Option<&str>) -> Option<Reason> {
    if mapping.thp_eligible == Some(true) {
        return None;
    }
    let of_all = ground.thp.known().and_then(|thp| thp.shmem_enabled.known());
    match (of_all.map(|choice| choice.chosen.as_str()), huge) {
        (Some("deny"), _) => Some(Reason::SharedNever),
        (Some("force"), _) | (_, Some("always" | "within_size")) => None,
        // What it was not advised is not known, or said otherwise.
        (_, Some("advise")) if mapping.flags.is_empty() || has(mapping, "hg") || has(mapping, "nh") => None,
        (_, Some("advise")) => Some(Reason::TmpfsNotAdvised),
        _ => Some(Reason::OfTmpfs),
    }
}

/// Do a place in the file and its address have the same place within a huge page?
fn is_congruent(mapping: &MappingPages, pmd: Bytes) -> bool {
    mapping.start.0.wrapping_sub(mapping.offset.0).is_multiple_of(pmd.0) && aligned_bytes(mapping, pmd).is_some()
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
