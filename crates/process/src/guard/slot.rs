//! Where a process is registered, in memory that the guardian shares.

use std::sync::atomic::{AtomicI32, AtomicU64};

/// A process or group to end: as `kill` takes it, a process, or the group of minus that number.
#[derive(Default)]
pub(crate) struct Slot {
    pub(super) target: AtomicI32,
    /// Nanoseconds from boot until it was registered: a process of this id that began later is another one.
    pub(super) since: AtomicU64,
}
