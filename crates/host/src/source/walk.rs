//! A path below a root, one component at a time: where the kernel has no openat2, and where each step must be looked at.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;

use crate::mountinfo::lines;

/// As the kernel has it (MAXSYMLINKS).
const MOST_LINKS: u32 = 40;
/// A component is looked at as it is.
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a path as in a chroot: absolute links and `..` stay below the root. Links on file systems of the kernel's own, such as
/// /proc/PID/fd/N, are refused, because they lead to what is open and not to what their text says.
///
/// `may_enter` is asked about the root and about every step before anything is asked of the file system that it is on.
pub(super) fn below(
    root: &OwnedFd,
    path: &str,
    flags: OFlags,
    may_enter: &dyn Fn(&OwnedFd) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    may_enter(root)?;
    let mut left: VecDeque<String> = components(path).collect();
    // Directories below the root, the innermost last.
    let mut inside: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        if name == ".." {
            inside.pop();
            continue;
        }
        let here = inside.last().unwrap_or(root);
        let found = openat(here, name.as_str(), STEP, Mode::empty())?;
        may_enter(&found)?;
        let is_link = FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::Symlink;
        let is_wanted = flags.contains(OFlags::NOFOLLOW) && left.is_empty();
        if !is_link || is_wanted {
            inside.push(found);
            continue;
        }
        links += 1;
        if links > MOST_LINKS || is_interface(&found)? {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(&found, "", Vec::new())?;
        let target = target.to_string_lossy().into_owned();
        if target.starts_with('/') {
            inside.clear();
        }
        components(&target).rev().for_each(|name| left.push_front(name));
    }
    let found = inside.last().unwrap_or(root);
    if flags.contains(OFlags::PATH) {
        return Ok(rustix::io::fcntl_dupfd_cloexec(found, 0)?);
    }
    // Only directories are opened so, and a directory is itself at `.`.
    Ok(openat(found, ".", flags | OFlags::CLOEXEC, Mode::empty())?)
}

fn components(path: &str) -> impl DoubleEndedIterator<Item = String> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
        .map(str::to_owned)
}

/// The mounts that a process sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounts(Vec<(u64, String)>);

impl Mounts {
    pub(super) fn parse(mountinfo: &str) -> Self {
        let mounts = lines(mountinfo).map(|mount| (mount.id, mount.kind.to_owned()));
        Self(mounts.collect())
    }

    /// Refuses file systems that are served by a process: while it does not answer, nothing ends who asked, not even SIGKILL.
    pub(super) fn may_enter(&self, file: &OwnedFd) -> io::Result<()> {
        let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
        let id = told
            .lines()
            .find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse::<u64>().ok());
        match self.0.iter().find(|(known, _)| Some(*known) == id) {
            Some((_, kind)) if kind.starts_with("fuse") => Err(io::Error::other(format!(
                "it is on a file system in user space ({kind})"
            ))),
            Some(_) => Ok(()),
            None => Err(io::Error::other(
                "it is on a mount that the process did not have a moment ago",
            )),
        }
    }
}

/// f_type of file systems whose files are interfaces of the kernel (linux/magic.h): reading `/proc/kmsg` or `trace_pipe` waits
/// for events and takes them from others. Regular files all the same.
const INTERFACES: [i64; 12] = [
    0x9fa0,                 // proc
    0x6265_6572,            // sysfs
    0x6462_6720,            // debugfs
    0x7472_6163,            // tracefs
    0x0027_e0eb,            // cgroup
    0x6367_7270,            // cgroup2
    0x7363_6673,            // securityfs
    0x6265_6570,            // configfs
    0xcafe_4a11_u32 as i64, // bpf
    0xde5e_81e4_u32 as i64, // efivarfs
    0x1980_0202,            // mqueue
    0x1cd1,                 // devpts
];

/// Is it on a file system of the kernel's own?
pub(super) fn is_interface(file: &OwnedFd) -> io::Result<bool> {
    Ok(INTERFACES.contains(&fstatfs(file)?.f_type))
}
