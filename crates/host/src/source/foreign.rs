//! Files and directories that a process names: looked up in its own root, with the rights of its own user, and by a process that may be left behind.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use model::{Bytes, Cause, Unread};
use rustix::fs::{CWD, Mode, OFlags, openat};

use serde::{Deserialize, Serialize};

use super::aside::{self, Answer, Head};
use super::directory::names_in;
use super::hugetlb_files;
use super::open::{self, End, plain_directory_below, plain_file_below};
use super::walk::Mounts;
use crate::syscall::{Rights, Taken};

/// Of status and mountinfo; a machine with thousands of containers has mountinfo of a megabyte.
const LONGEST: u64 = 16 << 20;
/// A directory that others are looked up in.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A path in the view of a process: `/proc/PID/root/PATH` or `/proc/PID/cwd/PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Foreign {
    pid: String,
    anchor: String,
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
            Some((anchor.to_owned(), path.to_owned()))
        });
        let pid = pid.to_owned();
        found.map(|(anchor, path)| Self { pid, anchor, path })
    }

    /// All of the file; `Ok(None)` if it is longer than `limit`.
    ///
    /// The user of a process chooses its arguments, its directories and the file systems behind them. So its file is read only if
    /// that user could read it, by the kernel's own judgement: root must not read out what its author could not.
    pub(super) fn bytes(&self, limit: Bytes) -> Result<Option<Vec<u8>>, Unread> {
        let (head, bytes) = self.ask(Part::Whole(limit))?;
        Ok((!head.is_too_long).then_some(bytes))
    }

    /// Its end, in the same way.
    pub(super) fn end(&self, limit: Bytes) -> Result<End, Unread> {
        let (Head { before, .. }, bytes) = self.ask(Part::End(limit))?;
        Ok(End { bytes, before })
    }

    /// The names in a directory, in the same way.
    pub(super) fn list(&self) -> Result<Vec<String>, Unread> {
        let (_, names) = self.ask(Part::Names)?;
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn ask(&self, part: Part) -> Result<Answer, Unread> {
        let place = self.place();
        let user = self.user().map_err(|error| Unread::of_io(&place, &error))?;
        let (mut head, bytes) = aside::ask(&Question::Of(self.clone(), part), Some(user), &place)?;
        head.unread.take().map_or(Ok((head, bytes)), Err)
    }

    /// Whose process it is, as the kernel reports it.
    fn user(&self) -> io::Result<u32> {
        let process = openat(CWD, format!("/proc/{}", self.pid), DIRECTORY, Mode::empty())?;
        Ok(rights(&process)?.uid)
    }

    fn place(&self) -> String {
        format!("/proc/{}/{}/{}", self.pid, self.anchor, self.path)
    }

    /// In the process that reads, which has its own rights again afterwards.
    fn answer(&self, part: Part) -> Result<Answer, Unread> {
        let from_io = |error: io::Error| Unread::of_io(self.place(), &error);
        let directory = |at: &OwnedFd, name: &str| openat(at, name, DIRECTORY, Mode::empty());
        let process = openat(CWD, "/proc", DIRECTORY, Mode::empty())
            .and_then(|proc| directory(&proc, &self.pid))
            .map_err(|error| from_io(error.into()))?;
        let rights = rights(&process).map_err(from_io)?;
        let root = directory(&process, &self.anchor).map_err(|error| from_io(error.into()))?;
        let mounts = Mounts::parse(&small_file(&process, "mountinfo").map_err(from_io)?);
        let taken = Taken::take(&rights).map_err(|why| Unread::new(Cause::Denied, self.place(), why))?;
        let read = part.read(&root, &self.path, &mounts);
        drop(taken);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let why = format!("user {} of the process may not read it", rights.uid);
                Unread::new(Cause::Denied, self.place(), why)
            }
            _ => from_io(error),
        })
    }
}

/// What a process beside this one is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// A part of what a process names.
    Of(Foreign, Part),
    /// Files on hugetlbfs that these mounts and processes have.
    HugetlbFiles(Vec<String>, Vec<u32>),
}

/// What of a file or directory is wanted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Part {
    Whole(Bytes),
    End(Bytes),
    Names,
}

impl aside::Question for Question {
    fn answer(&self) -> Answer {
        let answer = match self {
            Self::Of(foreign, part) => foreign.answer(*part),
            Self::HugetlbFiles(mounts, pids) => {
                hugetlb_files::read(mounts, pids).map(|text| (Head::default(), text.into_bytes()))
            }
        };
        answer.unwrap_or_else(|unread| {
            let unread = Some(unread);
            (
                Head {
                    unread,
                    ..Head::default()
                },
                Vec::new(),
            )
        })
    }
}

impl Part {
    fn read(self, root: &OwnedFd, path: &str, mounts: &Mounts) -> io::Result<Answer> {
        let file = || plain_file_below(root, path, mounts);
        let mut head = Head::default();
        let bytes = match self {
            Self::Whole(limit) => {
                let bytes = open::whole(&file()?, limit)?;
                head.is_too_long = bytes.is_none();
                bytes.unwrap_or_default()
            }
            Self::End(limit) => {
                let End { bytes, before } = open::end(&file()?, limit)?;
                head.before = before;
                bytes
            }
            Self::Names => names_in(&plain_directory_below(root, path, mounts)?)?
                .join("\0")
                .into_bytes(),
        };
        Ok((head, bytes))
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
        assert_eq!(
            parsed("/proc/7/root/etc/x"),
            Some(("root".to_owned(), "etc/x".to_owned()))
        );
        assert_eq!(
            parsed("/proc/7/root//../x"),
            Some(("root".to_owned(), "/../x".to_owned()))
        );
        assert_eq!(parsed("/proc/7/cwd/x"), Some(("cwd".to_owned(), "x".to_owned())));
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
