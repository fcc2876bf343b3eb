//! A file's directory and its name in it, found without trusting links that others may have planted.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat};
use rustix::io::Errno;

use crate::trusted::caller;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// An open directory and a name in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

pub(super) enum Found {
    Nothing,
    File,
    /// A pipe, a terminal, a device or a descriptor: nothing that could be replaced.
    Stream,
}

/// Follows links to where a path leads: those in its directories, and the last one.
pub(super) fn find(path: &Path) -> io::Result<(Place, Found)> {
    let mut links = 0;
    let mut place = Place::below(CWD, path, &mut links)?;
    loop {
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
                let to = place.followed(&entry, &mut links)?;
                place = Place::below(&place.directory, &to, &mut links)?;
            }
            _ => return Ok((place, Found::Stream)),
        }
    }
}

impl Place {
    fn below(start: impl AsFd, path: &Path, links: &mut usize) -> io::Result<Self> {
        let bytes = path.as_os_str().as_bytes();
        let (directory, name) = match bytes.iter().rposition(|&byte| byte == b'/') {
            Some(end) => (&bytes[..=end], &bytes[end + 1..]),
            None => (&b"."[..], bytes),
        };
        if matches!(name, b"" | b"." | b"..") {
            return Err(if bytes.is_empty() { Errno::NOENT } else { Errno::ISDIR }.into());
        }
        Ok(Self {
            directory: walk(start, Path::new(OsStr::from_bytes(directory)), links)?,
            name: OsStr::from_bytes(name).to_owned(),
        })
    }

    /// Where a link leads, if it may be followed.
    fn followed(&self, link: &Stat, links: &mut usize) -> io::Result<PathBuf> {
        *links += 1;
        if *links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        self.trust(link)?;
        let to = rustix::fs::readlinkat(&self.directory, &self.name, Vec::new())?;
        Ok(PathBuf::from(OsStr::from_bytes(to.to_bytes())))
    }

    /// What stands under the name, links not followed.
    pub(super) fn entry(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            entry => Ok(Some(entry?)),
        }
    }

    /// The file that is there, for writing; nothing of it is changed.
    pub(super) fn open_existing(&self) -> io::Result<File> {
        self.open(OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK, 0)
    }

    /// The file that is there, for reading.
    pub(super) fn open_to_read(&self) -> io::Result<File> {
        self.open(OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK, 0)
    }

    /// The file that is there, for reading and writing; nothing of it is changed.
    pub(super) fn open_to_add(&self) -> io::Result<File> {
        let file = self.open(OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK, 0)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// A new file, for reading and writing.
    pub(super) fn create(&self) -> io::Result<File> {
        self.open(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, 0o666)
    }

    /// What is there, for writing at its end.
    pub(super) fn stream(&self) -> io::Result<File> {
        self.open(OFlags::WRONLY | OFlags::APPEND, 0)
    }

    fn open(&self, flags: OFlags, mode: u32) -> io::Result<File> {
        let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &self.name, flags, Mode::from_raw_mode(mode))?;
        Ok(file.into())
    }

    fn is_in_proc(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstatfs(&self.directory)?.f_type == PROC_SUPER_MAGIC)
    }

    /// Refuses what another user may have put there for us to write to.
    fn trust(&self, entry: &Stat) -> io::Result<()> {
        let directory = rustix::fs::statat(&self.directory, "", AtFlags::EMPTY_PATH)?;
        let is_link = FileType::from_raw_mode(entry.st_mode).is_symlink();
        let is_trusted = match (rustix::process::geteuid().as_raw(), is_link) {
            // Links of the user who called sudo may lead anywhere that this user could lead root to.
            (0, true) => root_may_follow(entry, &directory, caller()),
            (user, _) => is_trusted(entry, &directory, user),
        };
        if is_trusted {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "it belongs to user {}, in a directory that others than user {} may write: remove it, or choose another directory",
                entry.st_uid,
                rustix::process::geteuid().as_raw()
            ),
        ))
    }
}

/// Opens a directory step by step; those of the kernel's own files, where links are no files, at once.
fn walk(start: impl AsFd, path: &Path, links: &mut usize) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = if path.is_absolute() { "/" } else { "." };
    let mut directory = rustix::fs::openat(start, root, flags, Mode::empty())?;
    let parts = |path: &Path| {
        path.components()
            .rev()
            .map(|part| part.as_os_str().to_owned())
            .collect::<Vec<_>>()
    };
    let mut left = parts(path);
    while let Some(name) = left.pop() {
        if matches!(name.as_bytes(), b"/" | b".") {
            continue;
        }
        let place = Place { directory, name };
        let entry = place.entry()?.ok_or(Errno::NOENT)?;
        let is_link = FileType::from_raw_mode(entry.st_mode).is_symlink();
        if !is_link || place.is_in_proc()? {
            directory = rustix::fs::openat(&place.directory, &place.name, flags, Mode::empty())?;
            continue;
        }
        let to = place.followed(&entry, links)?;
        let root = if to.is_absolute() { "/" } else { "." };
        directory = rustix::fs::openat(&place.directory, root, flags, Mode::empty())?;
        left.extend(parts(&to));
    }
    Ok(directory)
}

/// A link may be followed by root where no other user could have put it: in a directory of root's, or of the user who called sudo. Where
/// others may write, it has to be theirs, too.
fn root_may_follow(link: &Stat, directory: &Stat, caller: Option<u32>) -> bool {
    let is_known = |user: u32| user == 0 || Some(user) == caller;
    is_known(directory.st_uid) && (directory.st_mode & 0o022 == 0 || is_known(link.st_uid))
}

/// The kernel's rule for sticky directories that others may write; root follows it in all that others may write.
fn is_trusted(entry: &Stat, directory: &Stat, user: u32) -> bool {
    let is_shared = directory.st_mode & 0o022 != 0;
    let is_sticky = directory.st_mode & 0o1000 != 0;
    !is_shared || !(is_sticky || user == 0) || entry.st_uid == user || entry.st_uid == directory.st_uid
}
