//! Errors of the writer, with advice.

use std::io;
use std::path::PathBuf;

use model::{Bytes, Unread};

/// Why a change, its journal or its undoing failed.
#[derive(Debug, thiserror::Error)]
pub enum WriterError {
    /// The state directory cannot be trusted: a user who can write there could decide what root undoes.
    #[error("state directory {path} is not safe: {why} (remove it, or name another with HUGEWISE_STATE_DIR)")]
    Unsafe {
        /// The directory, or the journal in it.
        path: PathBuf,
        /// What makes it unsafe.
        why: String,
    },
    /// The state directory or a journal in it could not be used.
    #[error("cannot {doing} {path}: {source}")]
    State {
        /// What was tried: `create`, `lock`, ...
        doing: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another run holds the lock: for longer than any change takes, or at a moment when two must not be at work.
    #[error(
        "another hugewise run holds {path}{} (wait until it is done, or end it)",
        if *seconds == 0 { String::new() } else { format!(", also after {seconds} s") }
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long this run waited.
        seconds: u64,
    },
    /// Something that must be known before or after a write could not be read.
    #[error(transparent)]
    Unread(#[from] Unread),
    /// The kernel did not take a value.
    #[error("cannot write {value} to {path}: {source}")]
    Write {
        /// The setting's file.
        path: String,
        value: String,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// Why a lease was not given; nothing stays changed then.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// This kernel has no pool of that page size.
    #[error("this kernel has no hugetlb pool of {} pages ({unread}); the sizes it has are in /sys/kernel/mm/hugepages", .page.exact())]
    NoPool {
        /// The page size that was asked for.
        page: Bytes,
        unread: Unread,
    },
    /// This user may not change pools.
    #[error("changing a pool needs root (sudo), or use --no-pool to do without ({source})")]
    NotPermitted { source: WriterError },
    /// This kernel has no switch for that THP size.
    #[error("this kernel has no switch for THP of {} ({unread}); the sizes it has are in /sys/kernel/mm/transparent_hugepage, from Linux 6.8 on", .size.exact())]
    NoSize { size: Bytes, unread: Unread },
    /// This user may not set THP sizes.
    #[error("setting the switch of a THP size needs root (sudo) ({source})")]
    SizeNotPermitted { source: WriterError },
    /// Memory has no room for that many pages.
    #[error(
        "{pages} more pages of {} need {need}, but {available} is available and {left} of it must stay free \
         for everything else (10 % of memory, at least 512M): free memory, or request less",
        .page.exact()
    )]
    Memory {
        page: Bytes,
        /// Pages that the pool would have to gain.
        pages: u64,
        /// Their size together.
        need: Bytes,
        available: Bytes,
        /// What must stay available.
        left: Bytes,
    },
    /// Anything else that went wrong at the writer.
    #[error(transparent)]
    Writer(WriterError),
}

impl WriterError {
    /// Was this user not allowed to?
    pub fn is_denied(&self) -> bool {
        match self {
            Self::State { source, .. } | Self::Write { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ),
            _ => false,
        }
    }

    /// Did the kernel refuse the write on principle (EINVAL), whatever the value?
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::InvalidInput)
    }
}

impl From<WriterError> for LeaseError {
    fn from(source: WriterError) -> Self {
        if source.is_denied() {
            Self::NotPermitted { source }
        } else {
            Self::Writer(source)
        }
    }
}
