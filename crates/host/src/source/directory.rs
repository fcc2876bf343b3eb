//! A directory as the root of a captured machine: no link leads out of it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

/// An open root. Absolute links and `..` are resolved inside it, as in a chroot (openat2, Linux 5.6).
#[derive(Debug)]
pub(super) struct Directory {
    root: OwnedFd,
}

impl Directory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { root })
    }

    pub(super) fn open_file(&self, path: &str) -> io::Result<fs::File> {
        // A pipe in a foreign directory must not block the reader.
        self.open_inside(path, OFlags::RDONLY | OFlags::NONBLOCK)
            .map(fs::File::from)
    }

    pub(super) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let fd = self.open_inside(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                found.push(name);
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    pub(super) fn target(&self, path: &str) -> io::Result<PathBuf> {
        let fd = self.open_inside(path, OFlags::PATH | OFlags::NOFOLLOW)?;
        let target = rustix::fs::readlinkat(&fd, "", Vec::new())?;
        Ok(PathBuf::from(String::from_utf8_lossy(target.as_bytes()).into_owned()))
    }

    fn open_inside(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        Ok(rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve)?)
    }
}

/// The names of a directory, in order.
pub(super) fn names(entries: fs::ReadDir) -> io::Result<Vec<String>> {
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}
