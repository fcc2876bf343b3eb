//! Files and directories below a root: no symbolic link is followed, and nothing is ever there by half.
//!
//! Results have another way to a file's new content (`files` of the program), because the two ask for opposite things. A result
//! goes where a user points, through links, and several writers may be at work, so its draft has a random name and a lock. A
//! setting goes below a root through no link at all, with the mode, owner and attributes that the plan says, under a lock that
//! the caller holds; its draft has a fixed name, so that the next command removes what a kill left. What they share is four system calls.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use crate::place::{FileState, State};

/// Where Linux keeps a file's access list.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// Longer files are no settings.
const LONGEST: u64 = 1 << 20;

/// An open root; every path is looked up below it (openat2, Linux 5.6).
pub(super) struct Rooted(OwnedFd);

impl Rooted {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, root, flags, Mode::empty())?))
    }

    /// What stands at a path; a link, a device or a file that is no text is something else.
    pub(super) fn look(&self, path: &str) -> io::Result<State> {
        let found = match self.find(path, OFlags::PATH | OFlags::NOFOLLOW) {
            Ok(found) => rustix::fs::fstat(&found)?,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(State::Absent),
            Err(Errno::LOOP) => return Ok(State::Other("reached through a symbolic link".to_owned())),
            Err(error) => return Err(error.into()),
        };
        match FileType::from_raw_mode(found.st_mode) {
            // Replacing it would leave the other names with the old content.
            FileType::RegularFile if found.st_nlink > 1 => Ok(State::Other(format!(
                "a file with {} names (hard links)",
                found.st_nlink
            ))),
            FileType::RegularFile => self.read(path, &found),
            FileType::Directory => Ok(State::Directory),
            FileType::Symlink => Ok(State::Other("a symbolic link".to_owned())),
            other => Ok(State::Other(format!("a {other:?}").to_lowercase())),
        }
    }

    fn read(&self, path: &str, found: &Stat) -> io::Result<State> {
        let file = File::from(self.find(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST {
            return Ok(State::Other("a file of more than 1 MiB".to_owned()));
        }
        let file = |text| FileState {
            text,
            mode: found.st_mode & 0o7777,
            uid: found.st_uid,
            gid: found.st_gid,
        };
        let other = State::Other("a file that is not UTF-8 text".to_owned());
        Ok(String::from_utf8(bytes).map_or(other, |text| State::File(file(text))))
    }

    /// Puts a whole file in the place of what is there, if that is as `from` says: written beside it, synced, and exchanged with it. Extended
    /// attributes, and so access lists and security labels, stay those of the file that it replaces; a new file has no access list of
    /// its directory's.
    pub(super) fn put_file(&self, path: &str, from: &State, file: &FileState) -> io::Result<()> {
        if !matches!(from, State::Absent | State::File(_)) {
            return Err(io::Error::other(format!("there is {from}, which is not written over")));
        }
        let (directory, name) = self.parent(path)?;
        let draft = draft(name);
        remove(&directory, &draft, AtFlags::empty())?;
        let old = self.find(path, OFlags::RDONLY | OFlags::NONBLOCK);
        let put = write_draft(&directory, &draft, file, old.ok().as_ref())
            .and_then(|()| self.exchange(&directory, name, path, from));
        // What was there, or what was to be.
        remove(&directory, &draft, AtFlags::empty())?;
        put?;
        sync(directory)
    }

    /// Gives the draft its name. What others have put there meanwhile comes back, however short before.
    fn exchange(&self, directory: &OwnedFd, name: &str, path: &str, from: &State) -> io::Result<()> {
        let draft = draft(name);
        let swap = || rustix::fs::renameat_with(directory, &draft, directory, name, RenameFlags::EXCHANGE);
        if *from == State::Absent {
            return match rustix::fs::renameat_with(directory, &draft, directory, name, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS) => self.rename_if(directory, name, path, from),
                Err(Errno::EXIST) => Err(changed()),
                renamed => Ok(renamed?),
            };
        }
        match swap() {
            Err(Errno::INVAL | Errno::NOSYS) => return self.rename_if(directory, name, path, from),
            Err(Errno::NOENT) => return Err(changed()),
            swapped => swapped?,
        }
        let beside = path.strip_suffix(name).unwrap_or_default();
        if self.look(&format!("{beside}{draft}"))? == *from {
            return Ok(());
        }
        swap()?;
        Err(changed())
    }

    /// Where names cannot be exchanged it is looked at right before.
    fn rename_if(&self, directory: &OwnedFd, name: &str, path: &str, from: &State) -> io::Result<()> {
        match self.look(path)? == *from {
            true => Ok(rustix::fs::renameat(directory, draft(name), directory, name)?),
            false => Err(changed()),
        }
    }

    /// Removes a file that is as `from` says, and what a writer that was killed left beside it.
    pub(super) fn remove_file(&self, path: &str, from: &State) -> io::Result<()> {
        let (directory, name) = match self.parent(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            parent => parent?,
        };
        let draft = draft(name);
        remove(&directory, &draft, AtFlags::empty())?;
        // Out of the way first, so that what is looked at is what is removed.
        match rustix::fs::renameat(&directory, name, &directory, &draft) {
            Err(Errno::NOENT) => return sync(directory),
            renamed => renamed?,
        }
        let beside = path.strip_suffix(name).unwrap_or_default();
        if self.look(&format!("{beside}{draft}"))? != *from {
            rustix::fs::renameat_with(&directory, &draft, &directory, name, RenameFlags::NOREPLACE)?;
            return Err(changed());
        }
        remove(&directory, &draft, AtFlags::empty())?;
        sync(directory)
    }

    pub(super) fn make_directory(&self, path: &str) -> io::Result<()> {
        let (directory, name) = self.parent(path)?;
        rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755))?;
        // Whatever the umask is: services must be able to look in.
        let made = self.find(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        rustix::fs::fchmod(&made, Mode::from_raw_mode(0o755))?;
        sync(directory)
    }

    /// Removes a directory, if it is empty.
    pub(super) fn remove_directory(&self, path: &str) -> io::Result<()> {
        let (directory, name) = self.parent(path)?;
        remove(&directory, name, AtFlags::REMOVEDIR)?;
        sync(directory)
    }

    /// Opens a path below the root.
    pub(super) fn find(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let below = path.trim_start_matches('/');
        let below = if below.is_empty() { "." } else { below };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.0, below, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// The directory that holds a path, and the name in it.
    fn parent<'a>(&self, path: &'a str) -> io::Result<(OwnedFd, &'a str)> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.find(directory, OFlags::RDONLY | OFlags::DIRECTORY)?, name))
    }
}

/// The name under which a file is written before it gets its own; no program reads it, all want another ending.
fn draft(name: &str) -> String {
    format!(".{name}.hugewise")
}

fn write_draft(directory: &OwnedFd, draft: &str, file: &FileState, old: Option<&OwnedFd>) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut out = File::from(rustix::fs::openat(directory, draft, flags, Mode::from_raw_mode(0o600))?);
    // A directory's default access list would let others read what the old file kept from them.
    drop_access_list(&out)?;
    out.write_all(file.text.as_bytes())?;
    if let Some(old) = old {
        copy_attributes(old, &out)?;
    }
    let (uid, gid) = (Uid::from_raw(file.uid), Gid::from_raw(file.gid));
    rustix::fs::fchown(&out, Some(uid), Some(gid))?;
    rustix::fs::fchmod(&out, Mode::from_raw_mode(file.mode))?;
    out.sync_all()
}

/// Removes the access list that a new file has from its directory.
fn drop_access_list(file: &File) -> io::Result<()> {
    match rustix::fs::fremovexattr(file, ACCESS_LIST) {
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Others were faster.
fn changed() -> io::Error {
    io::Error::other("others changed it at the same moment; it was left as they made it")
}

/// A file system without extended attributes has none to copy.
fn copy_attributes(old: &OwnedFd, new: &File) -> io::Result<()> {
    let mut names = vec![0; 64 << 10];
    let length = match rustix::fs::flistxattr(old, &mut names[..]) {
        Err(Errno::NOTSUP) => return Ok(()),
        length => length?,
    };
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::fgetxattr(old, name, &mut value[..])?;
        rustix::fs::fsetxattr(new, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// Removes a name, if it is there.
fn remove(directory: &OwnedFd, name: &str, flags: AtFlags) -> io::Result<()> {
    match rustix::fs::unlinkat(directory, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// Makes names in a directory durable.
fn sync(directory: OwnedFd) -> io::Result<()> {
    File::from(directory).sync_all()
}

#[cfg(test)]
mod tests;
