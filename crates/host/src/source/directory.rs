//! A directory as the root of a captured machine: no link leads out of it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use model::Bytes;
use rustix::fs::{CWD, Mode, OFlags};

use super::open;

/// As many as an archive may have paths.
const MOST_NAMES: usize = 1 << 20;
/// Their bytes in all; the names of /proc on a machine with a million processes have 7 MiB.
const LONGEST_NAMES: Bytes = Bytes::mib(64);

/// Opens a root. Absolute links and `..` are resolved inside it, as in a chroot (`open::below`).
pub(super) fn root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// The names in a directory below a root, in order.
pub(super) fn list(root: &OwnedFd, path: &str) -> io::Result<Vec<String>> {
    names_in(&open::below(root, path, OFlags::RDONLY | OFlags::DIRECTORY)?)
}

/// Where a link below a root points to.
pub(super) fn target(root: &OwnedFd, path: &str) -> io::Result<PathBuf> {
    let fd = open::below(root, path, OFlags::PATH | OFlags::NOFOLLOW)?;
    let target = rustix::fs::readlinkat(&fd, "", Vec::new())?;
    Ok(PathBuf::from(String::from_utf8_lossy(target.as_bytes()).into_owned()))
}

/// The names of an open directory, in order.
pub(super) fn names_in(directory: &OwnedFd) -> io::Result<Vec<String>> {
    let names = rustix::fs::Dir::read_from(directory)?;
    let names = names.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    sorted(names.filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")))
}

/// The names of a directory, in order.
pub(super) fn names(entries: fs::ReadDir) -> io::Result<Vec<String>> {
    sorted(entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())))
}

fn sorted(names: impl Iterator<Item = io::Result<String>>) -> io::Result<Vec<String>> {
    let (mut all, mut text) = (Vec::new(), 0);
    for name in names {
        let name = name?;
        text += name.len() as u64;
        if all.len() == MOST_NAMES || text > LONGEST_NAMES.0 {
            let why = format!("it has more than {MOST_NAMES} names, or more than {LONGEST_NAMES} of them");
            return Err(io::Error::other(why));
        }
        all.push(name);
    }
    all.sort_unstable();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_NAMES, MOST_NAMES, sorted};

    #[test]
    fn a_directory_with_too_many_or_too_long_names_is_given_up_and_never_cut() {
        let all = |count: usize, length: usize| {
            let names = (0..count).rev().map(|nth| Ok(format!("{nth:0length$}")));
            sorted(names)
                .map(|names| names.len())
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            sorted(["b", "a"].into_iter().map(|name| Ok(name.to_owned()))).expect("names"),
            ["a", "b"]
        );
        assert_eq!(all(MOST_NAMES, 1), Ok(MOST_NAMES));
        let why = Err("it has more than 1048576 names, or more than 64M of them".to_owned());
        assert_eq!(all(MOST_NAMES + 1, 1), why);
        let most = LONGEST_NAMES.as_usize() / 255;
        assert_eq!((all(most, 255), all(most + 1, 255)), (Ok(most), why));
    }
}
