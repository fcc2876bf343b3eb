//! The one trait through which `tune` reads and writes the machine, and the live machine behind it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use model::{Cause, Unread};
use rustix::fs::OFlags;

/// Where settings are read and written: the live kernel, or a made one in tests.
///
/// A write is one value to one existing file, as the kernel's files want it; errors keep the kernel's own reason
/// (`EINVAL`: refused on principle, `EACCES`: not for this user).
pub trait Sink: Send + Sync {
    /// The text of the file at `path`.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Writes `value` to the file at `path`, which must exist.
    fn write(&self, path: &Path, value: &str) -> io::Result<()>;
}

/// The machine this program runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveSink;

impl Sink for LiveSink {
    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn write(&self, path: &Path, value: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        file.write_all(value.as_bytes())
    }
}

/// The text of a file, or why there is none.
pub(crate) fn text(sink: &dyn Sink, path: impl AsRef<Path>) -> Result<String, Unread> {
    let path = path.as_ref();
    sink.read(path).map_err(|error| {
        let cause = match error.kind() {
            io::ErrorKind::NotFound => Cause::Absent,
            io::ErrorKind::PermissionDenied => Cause::Denied,
            _ => Cause::Failed,
        };
        Unread::new(cause, path.display().to_string(), error.to_string())
    })
}

/// The number that is the whole text of a file.
pub(crate) fn number(sink: &dyn Sink, path: impl AsRef<Path>) -> Result<u64, Unread> {
    let path = path.as_ref();
    let text = text(sink, path)?;
    text.trim().parse().map_err(|_| {
        let why = format!("wanted a whole number, found `{}`", text.trim());
        Unread::new(Cause::Garbled, format!("{}:1", path.display()), why)
    })
}
