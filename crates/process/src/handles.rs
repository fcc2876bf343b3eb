//! Processes that are to end, by handles that never come to mean another process: signalled, and waited for until they have ended.
//!
//! A killed process ends when the kernel next runs it, which on a busy machine takes tens of milliseconds. A process that kills
//! one that is not its child has to wait for it.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use host::Source;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal, test_kill_process_group,
};

use super::tree;
use crate::ended::{END_TIMEOUT, TERM_TIMEOUT};

#[derive(Default)]
pub struct Handles(Vec<OwnedFd>);

impl Handles {
    pub(crate) fn of(pids: impl IntoIterator<Item = u32>) -> Self {
        Self(pids.into_iter().filter_map(|pid| handle(pid).ok()).collect())
    }

    /// All that descend from a process, in groups of their own or not.
    pub fn below(source: &Source, root: u32) -> Self {
        Self::of(tree::of(source, root).pids.into_iter().skip(1))
    }

    /// A process that has not ended, with all that descend from it, if `is_same` says that the number still means it.
    pub(crate) fn with_descendants(source: &Source, pid: u32, is_same: impl Fn() -> bool) -> Self {
        let Some(own) = handle(pid).ok().filter(|_| is_same()) else {
            return Self::default();
        };
        let mut all = Self::below(source, pid);
        all.0.insert(0, own);
        all
    }

    /// Takes those of another, too.
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Signals all of them; fails only for those that have ended, or belong to another user.
    pub(crate) fn signal(&self, signal: Signal) {
        for process in &self.0 {
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// Waits until all of them have ended, at most until then. Have they?
    pub(crate) fn have_ended_by(&self, until: Instant) -> bool {
        self.0.iter().all(|process| has_ended(process, until))
    }

    /// Waits until they have ended as they were asked, and kills those that do not.
    pub fn end(&self) {
        let until = Instant::now() + TERM_TIMEOUT;
        for process in &self.0 {
            if !has_ended(process, until) && pidfd_send_signal(process, Signal::KILL).is_ok() {
                has_ended(process, Instant::now() + END_TIMEOUT);
            }
        }
    }
}

/// A handle of the process that has this number now.
///
/// # Errors
/// The kernel's; `SRCH` if there is none.
pub fn handle(pid: u32) -> Result<OwnedFd, Errno> {
    pidfd_open(by_number(pid).ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

/// As the kernel's calls take it.
pub(crate) fn by_number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn has_ended(process: &OwnedFd, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    rustix::io::retry_on_intr(|| has_ended_within(process, left)).unwrap_or(false)
}

/// Has the process of this handle ended, now or before the time is over?
///
/// # Errors
/// The kernel's; `INTR` if a signal ended the wait.
pub fn has_ended_within(process: &OwnedFd, time: Duration) -> Result<bool, Errno> {
    let timeout = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    let ready = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout))?;
    Ok(ready > 0)
}

/// Waits until all members of a process group have ended, at most until then. Have they? Of a group without members, which most
/// programs leave, this is one system call. A group whose members all belong to another user cannot be killed, and is not waited for.
pub(crate) fn group_has_ended_by(source: &Source, leader: Pid, until: Instant) -> bool {
    let mut ended = BTreeSet::new();
    while has_members(leader) {
        let Some(members) = tree::group(source, leader.as_raw_nonzero().get()) else {
            return false;
        };
        // A process that has ended is a member until its parent, or the subreaper that adopted it, has waited for it.
        if members.is_subset(&ended) {
            return true;
        }
        if !Handles::of(members.difference(&ended).copied()).have_ended_by(until) {
            return false;
        }
        ended.extend(members);
    }
    true
}

/// Are there any, be it some that have ended and were not waited for?
pub(crate) fn has_members(leader: Pid) -> bool {
    test_kill_process_group(leader).is_ok()
}

/// Signals a process group at once: the kernel lets no member fork in between.
pub(crate) fn signal_group(leader: Pid, signal: Signal) {
    // Fails only if there is none.
    let _ = kill_process_group(leader, signal);
}

#[cfg(test)]
#[path = "handles_tests.rs"]
mod tests;
