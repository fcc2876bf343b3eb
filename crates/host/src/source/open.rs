//! Opens files that others may have put there: below a root, regular files only, and never so that opening or reading waits.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};

use model::Bytes;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, makedev, openat, openat2};
use rustix::io::Errno;

use super::walk::{self, Mounts, is_interface};
use crate::input::words;

/// For every opening: a pipe does not wait for its other end, and no terminal becomes ours.
const CAREFUL: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// A file of /proc or /sys that is larger than this is not what it claims to be.
pub(super) const LARGEST_FILE: Bytes = Bytes::mib(16);
/// Most files of a process fit into this, and are read at one go: an empty buffer would grow with a system call for each step.
const MOST_FILES: Bytes = Bytes::kib(4);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    pub bytes: Vec<u8>,
    /// How many bytes are in front of it.
    pub before: u64,
}

/// A file of the kernel, whose name is ours but for a process id. Links to what a process has open are not followed.
pub(super) fn kernel_file(path: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | CAREFUL;
    let file = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, Mode::empty())?,
        file => file?,
    };
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        other => Err(not_regular(other)),
    }
}

/// A file of the machine's own configuration, in directories that belong to root.
pub(super) fn own_file(path: &str) -> io::Result<File> {
    for_reading(&openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// A file below a root, out of which no link leads.
pub(super) fn file_below(root: &OwnedFd, path: &str) -> io::Result<File> {
    for_reading(&below(root, path, OFlags::PATH)?)
}

/// The same, where others chose the path, the file and what is mounted: interfaces of the kernel are refused, and file systems
/// in user space are not entered.
pub(super) fn plain_file_below(root: &OwnedFd, path: &str, mounts: &Mounts) -> io::Result<File> {
    let found = walk::below(root, path, OFlags::PATH, &|step| mounts.may_enter(step))?;
    if is_interface(&found)? {
        return Err(io::Error::other("it is a file of the kernel, not of the process"));
    }
    for_reading(&found)
}

pub(super) fn plain_directory_below(root: &OwnedFd, path: &str, mounts: &Mounts) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let found = walk::below(root, path, flags, &|step| mounts.may_enter(step))?;
    match is_interface(&found)? {
        true => Err(io::Error::other("it is a directory of the kernel, not of the process")),
        false => Ok(found),
    }
}

/// Opens a path below a root, as in a chroot, and follows no link of /proc to what a process has open. Where the kernel lacks
/// openat2 (before Linux 5.6) or a filter of system calls refuses it, one component is opened at a time.
pub(super) fn below(root: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => walk::below(root, path, flags, &|_| Ok(())),
        found => Ok(found?),
    }
}

/// Looked at before it is opened for reading: opening a pipe waits, and opening a device can do anything.
fn for_reading(found: &OwnedFd) -> io::Result<File> {
    let stat = fstat(found)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let again = format!("/proc/self/fd/{}", found.as_raw_fd());
            Ok(File::from(openat(CWD, again, OFlags::RDONLY | CAREFUL, Mode::empty())?))
        }
        // It stands for an empty file wherever configuration is masked.
        FileType::CharacterDevice if stat.st_rdev == makedev(1, 3) => File::open("/dev/null"),
        other => Err(not_regular(other)),
    }
}

fn not_regular(kind: FileType) -> io::Error {
    match kind {
        FileType::Directory => Errno::ISDIR.into(),
        _ => io::Error::other(format!("it is {}, not a regular file", words(kind))),
    }
}

/// All of a file; `None` if it is longer than `limit`.
pub(super) fn whole(file: &File, limit: Bytes) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(MOST_FILES.as_usize());
    file.take(limit.0 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit.0).then_some(bytes))
}

/// Its end: the last `limit` bytes, or all of it.
pub(super) fn end(mut file: &File, limit: Bytes) -> io::Result<End> {
    let before = file.metadata()?.len().saturating_sub(limit.0);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    // It may grow during this.
    file.take(limit.0).read_to_end(&mut bytes)?;
    Ok(End { bytes, before })
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
