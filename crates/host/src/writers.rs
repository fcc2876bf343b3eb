//! Who else can write a file or a directory: asked of all that is run, applied or believed because of where it lies.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FsWord, getxattr_query, major, minor, statfs};

use crate::{Accounts, Source, mountinfo};

/// Where Linux keeps a file's access list.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// FUSE_SUPER_MAGIC (statfs(2)).
const FUSE: FsWord = 0x6573_5546;

/// A user other than those that were named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// The owner, who can always let itself write.
    Owner(u32),
    /// Everyone.
    All,
    /// Whom the access list names.
    List,
    /// Members of the group.
    Group(u32),
    /// The user whose process is the file system.
    FileSystem(u32),
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(user) => write!(f, "belongs to user {user}"),
            Self::All => f.write_str("may be changed by other users (expected a mode without o+w)"),
            Self::List => f.write_str("may be changed by other users (an access list gives w: `getfacl` shows it)"),
            Self::Group(group) => write!(
                f,
                "may be changed by other users (mode g+w, and group {group} may have other members: `chmod g-w`)"
            ),
            Self::FileSystem(user) => write!(f, "lies in a file system of a process of user {user}"),
        }
    }
}

/// The path without links, if only root and these users can change it: neither the file, nor a directory above it.
///
/// # Errors
/// In words: who else could, and where.
pub fn changed_only_by(path: &Path, users: &[u32]) -> Result<PathBuf, String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let real = path.canonicalize().map_err(|error| failed(path, error))?;
    for (above, part) in real.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(part).map_err(|error| failed(part, error))?;
        let other = other(part, &metadata, users);
        // In a sticky directory, such as /tmp, others cannot rename what belongs to another.
        let is_harmless = |other: &Other| {
            above > 0 && metadata.mode() & 0o1000 != 0 && matches!(other, Other::All | Other::List | Other::Group(_))
        };
        if let Some(other) = other.filter(|other| !is_harmless(other)) {
            return Err(format!("{} {other}", part.display()));
        }
    }
    Ok(real)
}

/// Who but root and these users can write what stands at a path, of which this is known.
pub fn other(path: &Path, metadata: &Metadata, users: &[u32]) -> Option<Other> {
    let (owner, mode) = (metadata.uid(), metadata.mode());
    let is_one = |user: u32| user == 0 || users.contains(&user);
    if !is_one(owner) {
        return Some(Other::Owner(owner));
    }
    if mode & 0o002 != 0 {
        return Some(Other::All);
    }
    // Beside an access list these bits are the most that any of its entries gives: without them none gives it.
    if mode & 0o020 != 0 {
        if getxattr_query(path, ACCESS_LIST).is_ok_and(|length| length > 0) {
            return Some(Other::List);
        }
        if !is_private(&Source::live(), metadata.gid(), owner) {
            return Some(Other::Group(metadata.gid()));
        }
    }
    let is_fuse = statfs(path).is_ok_and(|about| about.f_type == FUSE);
    let server = is_fuse.then(|| server(&Source::live(), metadata.dev())).flatten();
    server.filter(|user| !is_one(*user)).map(Other::FileSystem)
}

/// Is it a user's own group, without any other member? One that is not in the files of this machine may have some.
fn is_private(source: &Source, group: u32, owner: u32) -> bool {
    let accounts = Accounts::read(source).into_result().unwrap_or_default();
    if owner == 0 || accounts.has_others {
        return false;
    }
    let is_own = |name: &String| {
        accounts
            .users
            .iter()
            .any(|user| user.uid == owner && user.name == *name)
    };
    let mut members = accounts.users.iter().filter(|user| user.gid == Some(group));
    let listed = accounts.groups.iter().filter(|own| own.gid == group);
    accounts.user(owner).is_some()
        && members.all(|user| user.uid == owner)
        && listed.flat_map(|own| &own.members).all(is_own)
}

/// Whose process is the file system of a device.
fn server(source: &Source, device: u64) -> Option<u32> {
    let device = format!("{}:{}", major(device), minor(device));
    let mounts = source.text(mountinfo::OWN).into_result().ok()?;
    let mount = mountinfo::lines(&mounts).find(|mount| mount.device == device)?;
    let mut options = mount.options();
    options.find_map(|option| option.strip_prefix("user_id=")?.parse().ok())
}
