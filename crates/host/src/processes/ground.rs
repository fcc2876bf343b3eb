//! What decides for memory of every sort whether it can be on huge pages: the machine, the program's own wish, and where a mapping lies.

use model::process::{MappingPages, ProcessPages};
use model::{Bytes, PageKind, Reading};

use super::reason::Reason;
use crate::snapshot::{Kernel, MountTree, Snapshot, Thp};

/// What decides beside the mapping itself: the policy, the kernel, and the mounts that the process sees.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub thp: &'a Reading<Thp>,
    pub kernel: &'a Kernel,
    /// Empty where they are not known.
    pub mounts: &'a MountTree,
}

impl<'a> Ground<'a> {
    pub fn new(snapshot: &'a Snapshot, mounts: &'a MountTree) -> Self {
        Self {
            thp: &snapshot.thp,
            kernel: &snapshot.kernel,
            mounts,
        }
    }
}

/// By the program's own wish.
pub(super) fn advised_against(mapping: &MappingPages, process: &ProcessPages) -> Option<Reason> {
    match process.thp_enabled.known() {
        _ if has(mapping, "nh") => Some(Reason::AdvisedAgainst),
        Some(false) => Some(Reason::SwitchedOff),
        _ => None,
    }
}

/// Can the bytes on base pages lie in an aligned block at all?
pub(super) fn by_shape(mapping: &MappingPages, base: Bytes, pmd: Bytes) -> Option<Reason> {
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

pub(super) fn has(mapping: &MappingPages, flag: &str) -> bool {
    mapping.flags.iter().any(|set| set == flag)
}
