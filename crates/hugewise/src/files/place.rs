//! A file's directory and its name in it, found without trusting links that others may have planted.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat};
use rustix::io::Errno;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// An open directory and a name in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

/// What is there.
pub(super) enum Found {
    Nothing,
    File,
    /// A pipe, a terminal, a device or a descriptor: nothing that could be replaced.
    Stream,
}

/// Follows links to where a path leads.
pub(super) fn find(path: &Path) -> io::Result<(Place, Found)> {
    let mut place = Place::below(CWD, path)?;
    for _ in 0..MOST_LINKS {
        let Some(entry) = place.entry()? else {
            return Ok((place, Found::Nothing));
        };
        match FileType::from_raw_mode(entry.st_mode) {
            FileType::RegularFile => {
                place.trust(&entry)?;
                return Ok((place, Found::File));
            }
            FileType::Directory => return Err(Errno::ISDIR.into()),
            // Names of open files: /dev/stdout and /dev/fd/N lead here.
            FileType::Symlink if place.is_in_proc()? => return Ok((place, Found::Stream)),
            FileType::Symlink => {
                place.trust(&entry)?;
                let to = rustix::fs::readlinkat(&place.directory, &place.name, Vec::new())?;
                place = Place::below(&place.directory, Path::new(OsStr::from_bytes(to.to_bytes())))?;
            }
            _ => return Ok((place, Found::Stream)),
        }
    }
    Err(Errno::LOOP.into())
}

impl Place {
    fn below(start: impl AsFd, path: &Path) -> io::Result<Self> {
        let bytes = path.as_os_str().as_bytes();
        let (directory, name) = match bytes.iter().rposition(|&byte| byte == b'/') {
            Some(end) => (&bytes[..=end], &bytes[end + 1..]),
            None => (&b"."[..], bytes),
        };
        if matches!(name, b"" | b"." | b"..") {
            return Err(if bytes.is_empty() { Errno::NOENT } else { Errno::ISDIR }.into());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            directory: rustix::fs::openat(start, directory, flags, Mode::empty())?,
            name: OsStr::from_bytes(name).to_owned(),
        })
    }

    /// What stands under the name, links not followed.
    pub(super) fn entry(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            entry => Ok(Some(entry?)),
        }
    }

    /// The file that is there, for writing; nothing of it is changed.
    pub(super) fn open_existing(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())?)
    }

    /// What is there, for writing at its end.
    pub(super) fn stream(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())?.into())
    }

    fn is_in_proc(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstatfs(&self.directory)?.f_type == PROC_SUPER_MAGIC)
    }

    /// Refuses what another user may have put there for us to write to.
    fn trust(&self, entry: &Stat) -> io::Result<()> {
        let directory = rustix::fs::statat(&self.directory, "", AtFlags::EMPTY_PATH)?;
        if is_trusted(entry, &directory, rustix::process::geteuid().as_raw()) {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "it belongs to user {}, in a directory that others may write: remove it, or choose another directory",
                entry.st_uid
            ),
        ))
    }
}

/// The kernel's rule for sticky directories that others may write; root follows it in all that others may write.
fn is_trusted(entry: &Stat, directory: &Stat, user: u32) -> bool {
    let is_shared = directory.st_mode & 0o022 != 0;
    let is_sticky = directory.st_mode & 0o1000 != 0;
    !is_shared || !(is_sticky || user == 0) || entry.st_uid == user || entry.st_uid == directory.st_uid
}
