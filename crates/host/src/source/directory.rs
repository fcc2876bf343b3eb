//! A directory as the root of a captured machine: no link leads out of it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

use super::open::{self, Opened};

/// An open root. Absolute links and `..` are resolved inside it, as in a chroot (`open::below`).
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

    pub(super) fn file(&self, path: &str) -> io::Result<Opened> {
        open::file_below(&self.root, path)
    }

    pub(super) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let fd = open::below(&self.root, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
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
        let fd = open::below(&self.root, path, OFlags::PATH | OFlags::NOFOLLOW)?;
        let target = rustix::fs::readlinkat(&fd, "", Vec::new())?;
        Ok(PathBuf::from(String::from_utf8_lossy(target.as_bytes()).into_owned()))
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
