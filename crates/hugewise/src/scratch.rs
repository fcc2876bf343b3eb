//! A directory for the files of one workload, gone with the command: at its end, or by the guardian if it is killed.
//!
//! A server that root starts runs as a user of its own, who cannot enter root's own directories, so that root's is in /var/cache. Of it one folder
//! belongs to that user, and nothing is written there by root. It is locked as long as the command lives: what is not locked was left behind.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use host::Source;
use host::writers::changed_only_by;
use process::rights::{User, unused};
use rustix::fs::{FlockOperation, Mode, OFlags, StatVfsMountFlags, flock, open, statvfs};

use crate::trusted::{Use, own_directory};

/// So many commands may run the same workload at once.
const MOST: u32 = 64;
/// Where root's are: no other user writes there, and all may enter.
const OF_ROOT: &str = "/var/cache/hugewise";
/// What still writes into it has been killed by then.
const TRIES: u32 = 40;
const TRY_PERIOD: Duration = Duration::from_millis(50);
/// The folder that the workload's user may write to; the others in it are root's.
const WORK: &str = "work";
/// Accounts, for programs that insist on one.
const ACCOUNTS: &str = "passwd";

/// The directory; it goes with this.
#[derive(Debug)]
pub(crate) struct Scratch {
    outer: PathBuf,
    /// Where the workload writes.
    pub(crate) path: PathBuf,
    /// As whom the workload runs, if not as the user of this program.
    pub(crate) user: Option<User>,
    /// Held as long as this lives.
    _lock: OwnedFd,
}

impl Scratch {
    /// A new and empty one, for this user alone, or for an unused one. The name is the same each time unless another command has
    /// it, so that command lines with it stay the same.
    ///
    /// # Errors
    /// If none can be made, or there is no such user.
    pub(crate) fn take(name: &str, is_shut_in: bool) -> anyhow::Result<Self> {
        let parent = parent().context("what a workload writes has to be somewhere")?;
        sweep();
        for number in 1..=MOST {
            let ending = match number {
                1 => String::new(),
                number => format!("-{number}"),
            };
            let outer = parent.join(format!("{name}{ending}"));
            match make(&outer, is_shut_in) {
                Ok(Some(lock)) => return Self::within(outer, lock, is_shut_in),
                Ok(None) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("{}: no directory can be made", outer.display()));
                }
            }
        }
        bail!("{}: {MOST} directories for `{name}` are in use", parent.display());
    }

    /// One with the LD_PRELOAD library, which programs of every user may load and none can change.
    ///
    /// # Errors
    /// If it cannot be made, or nothing can be loaded from there.
    pub(crate) fn with_library(bytes: &[u8]) -> anyhow::Result<Self> {
        let scratch = Self::take("preload", false)?;
        let library = scratch.library();
        fs::write(&library, bytes)?;
        fs::set_permissions(&library, Permissions::from_mode(0o755))?;
        fs::set_permissions(&scratch.outer, Permissions::from_mode(0o711))?;
        if statvfs(&library)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            bail!("{} is mounted noexec", library.display());
        }
        // The loader takes these for ends of names and for variables.
        if library.to_string_lossy().contains([':', ' ', '$']) {
            bail!("{}: LD_PRELOAD cannot name it", library.display());
        }
        Ok(scratch)
    }

    /// The file of the library in it.
    pub(crate) fn library(&self) -> PathBuf {
        self.outer.join("libhugewise_preload.so")
    }

    fn within(outer: PathBuf, lock: OwnedFd, is_shut_in: bool) -> anyhow::Result<Self> {
        let mut scratch = Self {
            path: outer.join(WORK),
            outer,
            user: None,
            _lock: lock,
        };
        DirBuilder::new().mode(0o700).create(&scratch.path)?;
        if is_shut_in {
            scratch.give_to_nobody_else()?;
        }
        Ok(scratch)
    }

    /// To a user that neither this machine nor another workload has.
    fn give_to_nobody_else(&mut self) -> anyhow::Result<()> {
        let parent = self.outer.parent().unwrap_or(&self.outer);
        // Two commands at once would choose the same user.
        let _lock = locked(parent, FlockOperation::LockExclusive)?;
        let entries = fs::read_dir(parent)?.flatten();
        let given = entries.filter_map(|entry| Some(fs::symlink_metadata(entry.path().join(WORK)).ok()?.uid()));
        let given: Vec<u32> = given.collect();
        let user = unused(&Source::live(), &|uid| given.contains(&uid)).map_err(anyhow::Error::msg)?;
        lchown(&self.path, Some(user.uid), Some(user.gid))?;
        let User { uid, gid } = user;
        let mut accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        accounts += &format!("hugewise-{uid}:x:{uid}:{gid}::{}:/bin/false\n", self.path.display());
        fs::write(self.accounts(), accounts)?;
        fs::set_permissions(self.accounts(), Permissions::from_mode(0o644))?;
        self.user = Some(user);
        Ok(())
    }

    /// The machine's accounts, and that of the workload's user.
    pub(crate) fn accounts(&self) -> PathBuf {
        self.outer.join(ACCOUNTS)
    }

    /// A copy of root's own files that the workload's user can read.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn with_files(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let copy = self.outer.join("files");
        copy_for_all(folder, &copy).with_context(|| format!("{}: its files cannot be copied", copy.display()))?;
        Ok(copy)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.outer);
    }
}

/// Removes what commands of this user left that were killed.
pub(crate) fn sweep() {
    let entries = place().ok().and_then(|place| fs::read_dir(place).ok());
    for entry in entries.into_iter().flatten().flatten() {
        // While it is held, no other sweep and no new command takes it.
        if let Ok(_lock) = lock(&entry.path()) {
            remove(&entry.path());
        }
    }
}

/// The directory that holds them, made if it is not there.
fn parent() -> anyhow::Result<PathBuf> {
    let place = place()?;
    DirBuilder::new().recursive(true).mode(0o711).create(&place)?;
    // Whatever the umask is: a server without rights passes through.
    fs::set_permissions(&place, Permissions::from_mode(0o711))?;
    changed_only_by(&place, &[own()]).map_err(anyhow::Error::msg)
}

fn place() -> anyhow::Result<PathBuf> {
    match own() {
        0 => Ok(PathBuf::from(OF_ROOT)),
        _ => Ok(own_directory(Use::Cache)?.join("work")),
    }
}

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a directory and locks it; `None` if the name is taken.
fn make(path: &Path, is_shared: bool) -> io::Result<Option<OwnedFd>> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    }
    // A sweep of another command may have been faster.
    let Ok(lock) = lock(path) else { return Ok(None) };
    if is_shared {
        fs::set_permissions(path, Permissions::from_mode(0o711))?;
    }
    Ok(Some(lock))
}

fn lock(path: &Path) -> io::Result<OwnedFd> {
    locked(path, FlockOperation::NonBlockingLockExclusive)
}

fn locked(path: &Path, how: FlockOperation) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty())?;
    flock(&directory, how)?;
    Ok(directory)
}

/// A copy of a tree, of which nothing is secret, into a directory that only this user can change.
fn copy_for_all(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().create(to)?;
    fs::set_permissions(to, Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, copy) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_for_all(&entry.path(), &copy)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, copy)?;
        } else {
            fs::copy(entry.path(), &copy)?;
            let mode = if entry.metadata()?.mode() & 0o100 == 0 {
                0o644
            } else {
                0o755
            };
            fs::set_permissions(&copy, Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// What cannot be removed now is removed by a later sweep.
fn remove(path: &Path) {
    for _ in 0..TRIES {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(TRY_PERIOD),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scratch, lock, sweep};

    #[test]
    fn it_is_gone_with_its_command_and_what_a_killed_one_left_is_swept() {
        let name = format!("test{}", std::process::id());
        let first = Scratch::take(&name, false).expect("a directory");
        let second = Scratch::take(&name, false).expect("another");
        assert_ne!(first.path, second.path);
        std::fs::write(first.path.join("file"), "text").expect("written");
        sweep();
        assert!(first.path.join("file").exists(), "a command that lives keeps it");
        let [one, two] = [&first, &second].map(|scratch| scratch.outer.clone());
        drop(first);
        assert!(!one.exists() && two.exists());
        // As a kill leaves it: there, and not locked.
        let Scratch { outer, .. } = &second;
        let left = outer.with_file_name(format!("{}-left", outer.file_name().expect("a name").to_string_lossy()));
        std::fs::create_dir_all(left.join("work/data")).expect("made");
        sweep();
        assert!(!left.exists() && two.exists());
        drop(second);
        assert!(lock(&two).is_err() && !two.exists());
    }
}
