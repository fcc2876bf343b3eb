//! A file on its way: written under a temporary name beside its target, and renamed over it once it is whole.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use super::place::Place;
use super::{Access, Existing};

/// The longest part of a target's name in a temporary name, which has 255 bytes at most.
const LONGEST: usize = 200;
const ENDING: &[u8] = b".hugewise";
/// Names that are tried before giving up.
const TRIES: usize = 16;
/// Where Linux keeps a file's access list.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// A temporary file, locked as long as its writer lives.
pub(super) struct Draft<'a> {
    temporary: Temporary<'a>,
    pub(super) file: File,
}

/// Its name, of which nothing is left once the draft is published.
struct Temporary<'a> {
    place: &'a Place,
    name: OsString,
}

impl<'a> Draft<'a> {
    /// A new file with the owner and mode that it is to have, before it holds anything.
    pub(super) fn begin(place: &'a Place, access: Access) -> io::Result<Self> {
        let old = place.entry()?;
        let old = old.filter(|old| access == Access::Usual && FileType::from_raw_mode(old.st_mode).is_file());
        let is_private = access == Access::Private || old.is_some();
        let mode = if is_private { 0o600 } else { 0o666 };
        for _ in 0..TRIES {
            let Some(draft) = Self::create(place, mode)? else {
                continue;
            };
            if let Some(old) = &old {
                draft.resemble(old)?;
            }
            return Ok(draft);
        }
        Err(Errno::EXIST.into())
    }

    /// `None` if the name was taken, or a sweep was faster than our lock.
    fn create(place: &'a Place, mode: u32) -> io::Result<Option<Self>> {
        let name = temporary(&place.name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&place.directory, &name, flags, Mode::from_raw_mode(mode)) {
            Err(Errno::EXIST) => return Ok(None),
            file => File::from(file?),
        };
        // Without locks, as on some network file systems, no sweep takes it for left over either.
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Ok(None);
        }
        let ours = rustix::fs::fstat(&file)?;
        let named = rustix::fs::statat(&place.directory, &name, AtFlags::SYMLINK_NOFOLLOW);
        let is_named = named.is_ok_and(|named| (named.st_ino, named.st_dev) == (ours.st_ino, ours.st_dev));
        let temporary = Temporary { place, name };
        Ok(is_named.then_some(Self { temporary, file }))
    }

    /// Owner, mode and access list of the file that it will replace. Where the group cannot be kept, it gets no rights.
    fn resemble(&self, old: &Stat) -> io::Result<()> {
        let file = &self.file;
        let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let whole = rustix::fs::fchown(file, Some(uid), Some(gid));
        let keeps_group = whole.is_ok() || rustix::fs::fchown(file, None, Some(gid)).is_ok();
        // That of the directory, which the old file need not have.
        match rustix::fs::fremovexattr(file, ACCESS_LIST) {
            Err(Errno::NODATA | Errno::NOTSUP) => {}
            removed => removed?,
        }
        let mode = old.st_mode & if keeps_group { 0o777 } else { 0o707 };
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
        if keeps_group {
            copy_access_list(self.temporary.place, file)?;
        }
        Ok(())
    }

    /// Gives it the target's name once all of it is on disk.
    pub(super) fn publish(self, existing: Existing) -> io::Result<File> {
        self.sync()?;
        self.rename(existing)?;
        sync_directory(self.temporary.place)?;
        Ok(self.file)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        where_supported(self.file.sync_all())
    }

    pub(super) fn rename(&self, existing: Existing) -> io::Result<()> {
        let Temporary { place, name: draft } = &self.temporary;
        let (directory, name) = (&place.directory, &place.name);
        if existing == Existing::Replace {
            return Ok(rustix::fs::renameat(directory, draft, directory, name)?);
        }
        match rustix::fs::renameat_with(directory, draft, directory, name, RenameFlags::NOREPLACE) {
            // The draft's own name goes with it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                Ok(rustix::fs::linkat(directory, draft, directory, name, AtFlags::empty())?)
            }
            renamed => Ok(renamed?),
        }
    }

    /// What a kill leaves of it: the file stays, and its lock is free.
    #[cfg(test)]
    pub(super) fn abandon(self) {
        std::mem::forget(self.temporary);
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // What stays is empty or half, under a name that the next write removes.
        let _ = rustix::fs::unlinkat(&self.place.directory, &self.name, AtFlags::empty());
    }
}

/// Removes what killed writers of the same file left. Of those that live, the lock is held.
pub(super) fn sweep(place: &Place) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::openat(&place.directory, ".", flags, Mode::empty()) else {
        return;
    };
    let Ok(entries) = Dir::read_from(&directory) else {
        return;
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    for name in names.filter(|name| is_temporary(name.to_bytes(), &place.name)) {
        let name = OsStr::from_bytes(name.to_bytes());
        if is_left_over(place, name) {
            let _ = rustix::fs::unlinkat(&place.directory, name, AtFlags::empty());
        }
    }
}

/// Is it a file of ours whose writer is gone?
fn is_left_over(place: &Place, name: &OsStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // Root's may belong to the owner of the file that they were to replace.
    let user = rustix::process::geteuid();
    let is_ours = |stat: Stat| {
        FileType::from_raw_mode(stat.st_mode).is_file() && (stat.st_uid == user.as_raw() || user.is_root())
    };
    // Looked at before it is opened: opening a device or a pipe of others may do something.
    let named = rustix::fs::statat(&place.directory, name, AtFlags::SYMLINK_NOFOLLOW);
    if !named.is_ok_and(is_ours) {
        return false;
    }
    let Ok(file) = rustix::fs::openat(&place.directory, name, flags, Mode::empty()) else {
        return false;
    };
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// `.NAME.<16 hex digits>.hugewise`, which no program takes for a file of its own.
fn temporary(name: &OsStr) -> OsString {
    let chance = RandomState::new().build_hasher().finish();
    let digits = format!(".{chance:016x}");
    OsString::from_vec([b".", stem(name), digits.as_bytes(), ENDING].concat())
}

fn stem(name: &OsStr) -> &[u8] {
    &name.as_bytes()[..name.len().min(LONGEST)]
}

/// Is it a temporary name of that file?
pub(super) fn is_temporary(name: &[u8], of: &OsStr) -> bool {
    let digits = name
        .strip_prefix(b".")
        .and_then(|name| name.strip_prefix(stem(of)))
        .and_then(|name| name.strip_prefix(b"."))
        .and_then(|name| name.strip_suffix(ENDING));
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// A mode alone would give the group the rights that the list gives others.
fn copy_access_list(place: &Place, file: &File) -> io::Result<()> {
    let mut list = vec![0; 64 << 10];
    let Ok(old) = place.open_existing() else { return Ok(()) };
    match rustix::fs::fgetxattr(&old, ACCESS_LIST, &mut list[..]) {
        Ok(length) => Ok(rustix::fs::fsetxattr(
            file,
            ACCESS_LIST,
            &list[..length],
            XattrFlags::empty(),
        )?),
        Err(_) => Ok(()),
    }
}

/// Makes the new name durable. A directory that may be written but not read cannot be synced by this user.
fn sync_directory(place: &Place) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(&place.directory, ".", flags, Mode::empty()) {
        Err(Errno::ACCESS | Errno::PERM) => Ok(()),
        directory => where_supported(File::from(directory?).sync_all()),
    }
}

/// Some file systems have nothing to sync.
fn where_supported(synced: io::Result<()>) -> io::Result<()> {
    let unsupported = [Errno::INVAL, Errno::NOTSUP].map(|errno| Some(errno.raw_os_error()));
    match synced {
        Err(error) if unsupported.contains(&error.raw_os_error()) => Ok(()),
        synced => synced,
    }
}
