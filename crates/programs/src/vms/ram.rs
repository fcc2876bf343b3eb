//! Which mappings of a process hold its guest's memory. Pure.

use model::process::MappingPages;
use model::vms::Configured;
use model::{Backing, Bytes};

use host::processes::Mapping;

/// What backs the guest's memory.
#[derive(Debug, PartialEq)]
pub(super) struct Memory {
    pub(super) backing: Backing,
    pub(super) mapped: Bytes,
    pub(super) found: &'static str,
    pub(super) mappings: Vec<MappingPages>,
}

/// Smaller mappings are heaps, stacks and device memory.
const SMALLEST: Bytes = Bytes::mib(16);

/// Mappings of the configured sizes; without such ones, the largest that can be written and not executed (which leaves out
/// the buffers of QEMU's translator).
pub(super) fn find(mappings: &[Mapping<&[u8]>], configured: Option<&Configured>) -> Option<Memory> {
    let could: Vec<&Mapping<&[u8]>> = mappings
        .iter()
        .filter(|mapping| mapping.perms.starts_with(b"rw-") && !mapping.name.starts_with(b"["))
        .collect();
    configured
        .and_then(|configured| by_size(&could, configured))
        .or_else(|| largest(&could))
}

/// Each piece of memory is one mapping of its size; the same mapping serves only one piece.
fn by_size(mappings: &[&Mapping<&[u8]>], configured: &Configured) -> Option<Memory> {
    let mut left = mappings.to_vec();
    let mut mine = Vec::new();
    for region in &configured.memory {
        let at = left.iter().position(|mapping| mapping.size() == region.size)?;
        mine.push(left.swap_remove(at));
    }
    (!mine.is_empty()).then(|| sum(&mine, "by size"))
}

/// The largest one, and those of a quarter of its size or more: memory may lie on several nodes or around a hole.
fn largest(mappings: &[&Mapping<&[u8]>]) -> Option<Memory> {
    let most = mappings
        .iter()
        .map(|mapping| mapping.size())
        .max()
        .filter(|&size| size >= SMALLEST)?;
    let mine: Vec<&Mapping<&[u8]>> = mappings
        .iter()
        .filter(|mapping| mapping.size().0 >= most.0 / 4)
        .copied()
        .collect();
    Some(sum(&mine, "largest"))
}

fn sum(mappings: &[&Mapping<&[u8]>], found: &'static str) -> Memory {
    let mut backing = Backing::new();
    for mapping in mappings {
        backing.extend(mapping.backing().iter());
    }
    Memory {
        backing,
        mapped: Bytes(mappings.iter().map(|mapping| mapping.size().0).sum()),
        found,
        mappings: mappings.iter().map(|mapping| mapping.to_pages()).collect(),
    }
}
