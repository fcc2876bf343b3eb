//! The one trait through which `settings` reads and writes the machine, and the live machine behind it.

mod mounting;
mod rooted;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use model::{Cause, Unread};
use rustix::fs::OFlags;

use crate::error::WriterError;
use crate::place::{Place, State};
use rooted::Rooted;

/// Where the machine is read and written: the live one, or a made one in tests.
///
/// Errors keep the kernel's own reason (`EINVAL`: refused on principle, `EACCES`: not for this user).
pub trait Sink: Send + Sync {
    /// The text of the file at `path`.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Writes `value` to the setting at `path`, which must exist.
    fn write(&self, path: &Path, value: &str) -> io::Result<()>;
    fn look(&self, place: &Place) -> io::Result<State>;
    /// Makes a place that is as `from` says be as `to` says; what is on disk is durable when this returns, and never there by half.
    /// A file that is not as `from` says at the very last is left as it is.
    fn put(&self, place: &Place, from: &State, to: &State) -> io::Result<()>;
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

    fn look(&self, place: &Place) -> io::Result<State> {
        let root = || Rooted::open(Path::new("/"));
        match place {
            Place::Setting(path) => self.read(Path::new(path)).map(|text| State::setting(&text)),
            Place::File(path) | Place::Directory(path) => root()?.look(path),
            Place::Mount(at) => mounting::look(at),
        }
    }

    fn put(&self, place: &Place, from: &State, to: &State) -> io::Result<()> {
        let root = Rooted::open(Path::new("/"))?;
        match (place, to) {
            (Place::Setting(path), State::Text(value)) => self.write(Path::new(path), value),
            (Place::Mount(at), State::Mounted(options)) => mounting::mount(&root, at, options),
            (Place::Mount(at), State::Absent) => mounting::unmount(&root, at),
            (Place::File(path), State::File(file)) => root.put_file(path, from, file),
            (Place::File(path), State::Absent) => root.remove_file(path, from),
            (Place::Directory(path), State::Directory) => root.make_directory(path),
            (Place::Directory(path), State::Absent) => root.remove_directory(path),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{place} cannot become: {to}"),
            )),
        }
    }
}

/// The text of a file, or why there is none.
pub(crate) fn text(sink: &dyn Sink, path: impl AsRef<Path>) -> Result<String, Unread> {
    let path = path.as_ref();
    sink.read(path)
        .map_err(|error| Unread::of_io(path.display().to_string(), &error))
}

/// The value of a place, or why it could not be read.
pub(crate) fn look(sink: &dyn Sink, place: &Place) -> Result<State, Unread> {
    sink.look(place).map_err(|error| Unread::of_io(place.path(), &error))
}

/// Writes a setting, or says which value was refused where.
pub(crate) fn write(sink: &dyn Sink, path: &str, value: String) -> Result<(), WriterError> {
    let (path, written) = (path.to_owned(), sink.write(Path::new(path), &value));
    written.map_err(|source| WriterError::Write { path, value, source })
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
