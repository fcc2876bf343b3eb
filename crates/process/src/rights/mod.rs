//! Programs that get other rights than this process has: the one place where a user, limits, a session and an environment of their own are given.
//!
//! What is started so shares nothing with who started it: no terminal, no session keyring, no variables, no descriptors, no privileges, no
//! place in the order in which the kernel ends processes for want of memory.

mod syscall;
#[cfg(test)]
mod tests;
mod unused;

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{Resource, Rlimit, chdir, getrlimit, setrlimit, umask};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, set_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

pub use unused::{User, unused};

const ACCOUNTS: &CStr = c"/etc/passwd";
/// What an ordinary user has at most (soft, hard), as the kernel and systemd start a session: files, locked memory, real time, core files.
const LIMITS: [(Resource, u64, u64); 6] = [
    (Resource::Nofile, 1 << 10, 1 << 19),
    (Resource::Memlock, 8 << 20, 8 << 20),
    (Resource::Stack, 8 << 20, u64::MAX),
    (Resource::Nice, 0, 0),
    (Resource::Rtprio, 0, 0),
    (Resource::Msgqueue, 819_200, 819_200),
];

/// What a program has in place of what this process has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutIn {
    /// As whom it runs, if not as the user of this process; needs root.
    pub user: Option<User>,
    pub directory: PathBuf,
    /// All that is in its environment but for what its order sets.
    pub environment: Vec<(OsString, OsString)>,
    /// A file that it finds in the place of `/etc/passwd`: some programs insist on an account.
    pub accounts: Option<PathBuf>,
}

impl ShutIn {
    /// In the child, whose files are its own by now: gives up all else. The user comes last but for what only that user can do.
    pub(crate) fn enter(&self, inherited: &[RawFd]) -> io::Result<()> {
        umask(Mode::from_raw_mode(0o077));
        limit(Resource::Core, 0, 0)?;
        syscall::keep_only_standard_files(inherited)?;
        if let Some(user) = self.user {
            self.become_user(user)?;
        }
        syscall::join_new_session_keyring()?;
        set_no_new_privs(true)?;
        Ok(chdir(&self.directory)?)
    }

    fn become_user(&self, user: User) -> io::Result<()> {
        syscall::be_ended_like_any_other()?;
        syscall::be_scheduled_like_any_other()?;
        LIMITS
            .iter()
            .try_for_each(|&(what, soft, hard)| limit(what, soft, hard))?;
        // A container may forbid it; what a program then leaves in shared memory of System V is its user's alone.
        let has_ipc = syscall::leave_shared_memory();
        if let Some(accounts) = self.accounts.as_deref().filter(|_| has_ipc) {
            syscall::leave_mounts()?;
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            mount_bind(accounts, ACCOUNTS)?;
        }
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        // Secure bits of this process may have kept them.
        let none = CapabilitySet::empty();
        let none = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        Ok(set_capabilities(None, none)?)
    }
}

/// No more than that, and no more than this process has.
fn limit(what: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let has = getrlimit(what);
    let least = |has: Option<u64>, most: u64| Some(has.unwrap_or(u64::MAX).min(most)).filter(|least| *least < u64::MAX);
    let maximum = least(has.maximum, hard);
    let current = least(has.current, soft.min(maximum.unwrap_or(u64::MAX)));
    Ok(setrlimit(what, Rlimit { current, maximum })?)
}
