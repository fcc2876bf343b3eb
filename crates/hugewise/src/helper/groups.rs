//! The process groups of the helpers that run, so that a signal can end them all.

use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// Those that are running, which are their leaders' ids.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills all helpers that run now, with what they started.
pub(crate) fn end_all() {
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.iter().for_each(|group| kill(*group));
}

pub(super) fn add(group: Pid) {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner).push(group);
}

pub(super) fn remove(group: Pid) {
    let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.retain(|running| *running != group);
}

pub(super) fn kill(group: Pid) {
    // It may have ended by itself.
    let _ = kill_process_group(group, Signal::KILL);
}
