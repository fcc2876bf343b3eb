//! What the operating system's errors say about a file of a machine.

use std::io;

use model::{Cause, Unread};

/// What was read, or why it was not.
pub(super) fn from_io<T>(path: &str, result: io::Result<T>) -> Result<T, Unread> {
    result.map_err(|error| unread(path, &error))
}

/// Why a file was not read.
pub(super) fn unread(path: &str, error: &io::Error) -> Unread {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unread::new(Cause::Absent, path, ""),
        io::ErrorKind::PermissionDenied => Unread::new(Cause::Denied, path, ""),
        // A process that ends between two reads answers ESRCH.
        _ if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            Unread::new(Cause::Absent, path, "the process has ended")
        }
        _ => Unread::new(Cause::Failed, path, error.to_string()),
    }
}
