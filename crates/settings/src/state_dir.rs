//! The directory that holds the journals and the lock: only its owner may write there, or another user could decide what root undoes.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use host::writers::{self, changed_only_by};
use rustix::fs::OFlags;

use crate::error::WriterError;

/// Longer than any change takes: the slowest is growing a pool of 1 GiB pages, which may move a lot of memory about.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Of all changes.
const LOCK: &str = "lock";

/// The state directory's path; nothing is touched before it is needed.
#[derive(Debug)]
pub(crate) struct StateDir(pub(crate) PathBuf);

/// Held while values are read, changed and written, so that two runs never work on the same value at once.
/// The system lets it go when the process ends, however it ends.
pub(crate) struct Lock(#[allow(dead_code, reason = "closing the file gives the lock up")] File);

impl StateDir {
    /// Makes the directory, for this user alone, unless it is there.
    pub(crate) fn create(&self) -> Result<(), WriterError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(state("create", &self.0))?;
        self.check()
    }

    /// Is it there, and safe to believe? An ordinary user may look past root's directory: only root can give back what
    /// is recorded in it.
    pub(crate) fn is_there(&self) -> Result<bool, WriterError> {
        match self.check() {
            Ok(()) => Ok(true),
            Err(WriterError::State { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(_) if !rustix::process::geteuid().is_root() && self.owner() == Some(0) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The journals in it, oldest name first.
    pub(crate) fn journals(&self) -> Result<Vec<PathBuf>, WriterError> {
        let names = fs::read_dir(&self.0).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut paths: Vec<PathBuf> = names
            .map_err(state("list", &self.0))?
            .into_iter()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"))
            .collect();
        paths.sort();
        Ok(paths)
    }

    pub(crate) fn lock(&self) -> Result<Lock, WriterError> {
        self.lock_within(LOCK, TIMEOUT)
    }

    /// The lock at once, or not at all.
    pub(crate) fn try_lock(&self) -> Result<Lock, WriterError> {
        self.claim(LOCK)
    }

    /// Likewise one of another name.
    pub(crate) fn claim(&self, name: &str) -> Result<Lock, WriterError> {
        self.lock_within(name, Duration::ZERO)
    }

    fn lock_within(&self, name: &str, patience: Duration) -> Result<Lock, WriterError> {
        let path = self.0.join(name);
        let file = private()
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(state("open", &path))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(TryLockError::Error(source)) => return Err(state("lock", &path)(source)),
                // Polled, because a lock that blocks could not be left by Ctrl-C: handlers restart system calls.
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    let seconds = patience.as_secs();
                    return Err(WriterError::Busy { path, seconds });
                }
            }
        }
    }

    /// Makes new and removed names durable.
    pub(crate) fn sync(&self) -> Result<(), WriterError> {
        File::open(&self.0)
            .and_then(|dir| dir.sync_all())
            .map_err(state("sync", &self.0))
    }

    /// Is it a directory that only this user may write to?
    pub(crate) fn check(&self) -> Result<(), WriterError> {
        let meta = fs::symlink_metadata(&self.0).map_err(state("look at", &self.0))?;
        if !meta.is_dir() {
            return Err(not_safe(&self.0, "it is not a directory"));
        }
        check_owner(&self.0, &meta)?;
        // Who may rename a directory above could put another in its place, or hide what is to be undone.
        let own = rustix::process::geteuid().as_raw();
        changed_only_by(&self.0, &[own])
            .map(drop)
            .map_err(|why| not_safe(&self.0, why))
    }

    fn owner(&self) -> Option<u32> {
        fs::symlink_metadata(&self.0).ok().map(|meta| meta.uid())
    }
}

/// Refuses what another user owns or may write.
pub(crate) fn check_owner(path: &Path, meta: &Metadata) -> Result<(), WriterError> {
    let own = rustix::process::geteuid().as_raw();
    let why = match writers::other(path, meta, &[own]) {
        Some(other) => format!("it {other}"),
        // Root can write everything, but what is root's is not this user's.
        None if meta.uid() != own => writers::Other::Owner(meta.uid()).to_string(),
        None => return Ok(()),
    };
    Err(not_safe(path, why))
}

/// How files in the directory are opened: for this user alone, and never through a symbolic link.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Says what was tried on which file when the system refuses.
pub(crate) fn state(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriterError {
    let path = path.to_owned();
    move |source| WriterError::State { doing, path, source }
}

/// Says what makes the directory, or the journal in it, one that cannot be trusted.
pub(crate) fn not_safe(path: &Path, why: impl Into<String>) -> WriterError {
    let (path, why) = (path.to_owned(), why.into());
    WriterError::Unsafe { path, why }
}

#[cfg(test)]
mod tests {
    use super::StateDir;
    use crate::error::WriterError;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_new_directory_is_for_this_user_alone() {
        let temp = tempfile::tempdir().expect("tempdir");
        let dir = StateDir(temp.path().join("a/b"));
        assert!(!dir.is_there().expect("absent"));
        dir.create().expect("created");
        assert!(dir.is_there().expect("there"));
        let mode = fs::metadata(&dir.0).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let temp = tempfile::tempdir().expect("tempdir");
        for mode in [0o777, 0o707, 0o1777] {
            fs::set_permissions(temp.path(), Permissions::from_mode(mode)).expect("chmod");
            let error = StateDir(temp.path().to_owned()).is_there().expect_err("refused");
            assert!(matches!(error, WriterError::Unsafe { .. }), "{error}");
        }
    }

    #[test]
    fn a_directory_right_below_a_sticky_one_such_as_tmp_is_taken() {
        let temp = tempfile::tempdir().expect("tempdir");
        let dir = StateDir(temp.path().join("state"));
        dir.create().expect("created");
        fs::set_permissions(temp.path(), Permissions::from_mode(0o1777)).expect("chmod");
        assert!(dir.is_there().expect("safe"));
    }

    #[test]
    fn a_directory_below_one_that_others_may_write_is_refused() {
        let temp = tempfile::tempdir().expect("tempdir");
        let dir = StateDir(temp.path().join("above/state"));
        dir.create().expect("created");
        fs::set_permissions(temp.path().join("above"), Permissions::from_mode(0o777)).expect("chmod");
        let error = dir.is_there().expect_err("refused");
        assert!(
            error.to_string().contains("above may be changed by other users"),
            "{error}"
        );
    }

    #[test]
    fn a_link_or_a_file_is_refused() {
        let temp = tempfile::tempdir().expect("tempdir");
        let link = temp.path().join("link");
        symlink(temp.path(), &link).expect("symlink");
        let file = temp.path().join("file");
        fs::write(&file, "").expect("file");
        for path in [link, file] {
            let error = StateDir(path).is_there().expect_err("refused");
            assert!(matches!(error, WriterError::Unsafe { .. }), "{error}");
        }
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn another_users_directory_is_refused() {
        if !rustix::process::geteuid().is_root() {
            testing::skipped("giving a directory to another user needs root");
            return;
        }
        let temp = tempfile::tempdir().expect("tempdir");
        chown(temp.path(), Some(65534), None).expect("chown");
        let error = StateDir(temp.path().to_owned()).create().expect_err("refused");
        assert!(error.to_string().contains("belongs to user 65534"), "{error}");
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let temp = tempfile::tempdir().expect("tempdir");
        let dir = StateDir(temp.path().to_owned());
        let lock = dir.lock().expect("first");
        let second_has_it = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _lock = dir.lock().expect("second");
                second_has_it.store(true, Ordering::SeqCst);
            });
            thread::sleep(Duration::from_millis(30));
            assert!(!second_has_it.load(Ordering::SeqCst));
            drop(lock);
        });
        assert!(second_has_it.load(Ordering::SeqCst));
    }
}
