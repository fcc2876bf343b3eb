//! Files and directories that a process names: looked up in its own root, with the rights of its own user, and within a bound of time.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use model::{Bytes, Cause, Unread};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::directory::names_in;
use super::error::unread;
use super::open::{End, plain_directory_below, plain_file_below};
use super::patience;
use super::walk::Mounts;
use crate::syscall::{Rights, take_rights};

/// Of status and mountinfo; a machine with thousands of containers has mountinfo of a megabyte.
const LONGEST: u64 = 16 << 20;
/// A directory that others are looked up in.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A path in the view of a process: `/proc/PID/root/PATH` or `/proc/PID/cwd/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    pid: String,
    anchor: &'static str,
    path: String,
}

impl Foreign {
    pub(super) fn parse(path: &str) -> Option<Self> {
        let (pid, rest) = path.strip_prefix("/proc/")?.split_once('/')?;
        if pid.is_empty() || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let found = ["root", "cwd"].into_iter().find_map(|anchor| {
            let path = rest.strip_prefix(anchor)?.strip_prefix('/')?;
            Some((anchor, path.to_owned()))
        });
        let pid = pid.to_owned();
        found.map(|(anchor, path)| Self { pid, anchor, path })
    }

    /// All of the file; `Ok(None)` if it is longer than `limit`.
    ///
    /// The user of a process chooses its arguments, its directories and the file systems behind them. So its file is read only if
    /// that user could read it, by the kernel's own judgement: root must not read out what its author could not.
    pub(super) fn bytes(&self, limit: Bytes) -> Result<Option<Vec<u8>>, Unread> {
        self.with(move |root, path, mounts| plain_file_below(root, path, mounts)?.bytes(limit))
    }

    /// Its end, in the same way.
    pub(super) fn end(&self, limit: Bytes) -> Result<End, Unread> {
        self.with(move |root, path, mounts| plain_file_below(root, path, mounts)?.end(limit))
    }

    /// The names in a directory, in the same way.
    pub(super) fn list(&self) -> Result<Vec<String>, Unread> {
        self.with(|root, path, mounts| names_in(&plain_directory_below(root, path, mounts)?))
    }

    fn with<T: Send + 'static>(
        &self,
        read: impl FnOnce(&OwnedFd, &str, &Mounts) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Unread> {
        let foreign = self.clone();
        patience::within(patience::FILE, move || foreign.read(read))
            .map_err(|why| Unread::new(Cause::Failed, self.place(), why))?
    }

    fn place(&self) -> String {
        format!("/proc/{}/{}/{}", self.pid, self.anchor, self.path)
    }

    /// In a thread of its own, which ends with the rights that it took.
    fn read<T>(&self, read: impl FnOnce(&OwnedFd, &str, &Mounts) -> io::Result<T>) -> Result<T, Unread> {
        let from_io = |error: io::Error| unread(&self.place(), &error);
        let directory = |at: &OwnedFd, name: &str| openat(at, name, DIRECTORY, Mode::empty());
        let process = openat(CWD, "/proc", DIRECTORY, Mode::empty())
            .and_then(|proc| directory(&proc, &self.pid))
            .map_err(|error| from_io(error.into()))?;
        let rights = rights(&process).map_err(from_io)?;
        let root = directory(&process, self.anchor).map_err(|error| from_io(error.into()))?;
        let mounts = Mounts::parse(&small_file(&process, "mountinfo").map_err(from_io)?);
        take_rights(&rights).map_err(|why| Unread::new(Cause::Denied, self.place(), why))?;
        read(&root, &self.path, &mounts).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let why = format!("user {} of the process may not read it", rights.uid);
                Unread::new(Cause::Denied, self.place(), why)
            }
            _ => from_io(error),
        })
    }
}

/// Whose rights a process has. One that runs with the rights of another user than the one who started it (setuid) speaks for
/// neither.
fn rights(process: &OwnedFd) -> io::Result<Rights> {
    let status = small_file(process, "status")?;
    parse_rights(&status).ok_or_else(|| io::Error::other("the process runs with the rights of several users"))
}

/// A file of the kernel about the process.
fn small_file(process: &OwnedFd, name: &str) -> io::Result<String> {
    let file = openat(process, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    File::from(file).take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_rights(status: &str) -> Option<Rights> {
    let numbers = |key: &str| -> Option<Vec<u32>> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().map(|number| number.parse().ok()).collect()
    };
    let all_same = |key: &str| {
        let ids = numbers(key)?;
        let first = *ids.first()?;
        (ids.len() == 4 && ids.iter().all(|id| *id == first)).then_some(first)
    };
    Some(Rights {
        uid: all_same("Uid:")?,
        gid: all_same("Gid:")?,
        groups: numbers("Groups:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Foreign, parse_rights};

    #[test]
    fn only_a_path_below_a_process_s_root_or_directory_is_foreign() {
        let parsed = |path: &str| Foreign::parse(path).map(|foreign| (foreign.anchor, foreign.path));
        assert_eq!(parsed("/proc/7/root/etc/x"), Some(("root", "etc/x".to_owned())));
        assert_eq!(parsed("/proc/7/root//../x"), Some(("root", "/../x".to_owned())));
        assert_eq!(parsed("/proc/7/cwd/x"), Some(("cwd", "x".to_owned())));
        for path in [
            "/proc/7/rootx/y",
            "/proc/7/root",
            "/proc/self/root/x",
            "/proc//root/x",
            "/etc/proc/7/root/x",
        ] {
            assert_eq!(Foreign::parse(path), None, "{path}");
        }
    }

    #[test]
    fn a_process_with_the_rights_of_several_users_speaks_for_none() {
        let status = |uid: &str| format!("Name:\tpostgres\nUid:\t{uid}\nGid:\t5\t5\t5\t5\nGroups:\t5 103 \n");
        let rights = parse_rights(&status("101\t101\t101\t101")).expect("one user");
        assert_eq!((rights.uid, rights.gid, rights.groups), (101, 5, vec![5, 103]));
        for uid in ["101\t0\t0\t0", "0\t101\t101\t101", "101\t101", "x\t1\t1\t1", ""] {
            assert!(parse_rights(&status(uid)).is_none(), "{uid}");
        }
    }
}
