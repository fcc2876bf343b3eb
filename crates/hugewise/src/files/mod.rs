//! Files that results are kept in: a new one appears whole under its name, or what was there stays as it was.
//!
//! A write goes to a new file beside the target, which is synced and then renamed over it. A kill at any moment leaves the
//! old content or the new, and at most a temporary file `.NAME.<16 hex digits>.hugewise`, which the next write of the same
//! file removes. What is no regular file (a terminal, a pipe, `/dev/null`) is written straight. Settings of the machine are
//! `settings`'s, whose `sink/rooted.rs` says why it has a way of its own.

mod draft;
mod place;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::FileType;

use draft::Draft;
use place::{Found, Place};

/// Bytes that are written at a time.
const BUFFER: usize = 64 << 10;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Those that the umask allows; a file that is replaced keeps its owner and mode.
    Usual,
    /// Its owner alone, from the first byte, whatever is replaced.
    Private,
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Replace,
    /// It stays, and the write fails.
    Refuse,
}

/// Where a result goes; it could be written when this was made.
#[derive(Debug)]
pub(crate) struct Target(To);

#[derive(Debug)]
enum To {
    /// A regular file, or a name that is free.
    Whole(Place, Access),
    /// Anything else.
    Stream(File),
}

impl Target {
    /// Finds the target and proves that it can be written, without changing it.
    ///
    /// A symbolic link stands for what it points to, unless another user could have planted it: the rules are those of
    /// the kernel's `protected_symlinks` and `protected_regular`, and for root they hold in every directory that others
    /// may write.
    ///
    /// # Errors
    /// If it is a directory, cannot be written, or may have been planted.
    pub(crate) fn open(path: &Path, access: Access) -> io::Result<Self> {
        let place = match place::find(path)? {
            (place, Found::Stream) => return Ok(Self(To::Stream(place.stream()?))),
            (place, Found::Nothing) => place,
            (place, Found::File) => {
                place.open_existing()?;
                place
            }
        };
        // Dropped at once: it shows that a file can be made there.
        Draft::begin(&place, access).map_err(|error| beside(&error))?;
        Ok(Self(To::Whole(place, access)))
    }

    /// How the file begins that is there; nothing of what is no regular one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn beginning(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let To::Whole(place, _) = &self.0
            && place.entry()?.is_some()
        {
            place.open_to_read()?.take(most).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Writes all of it. Of a regular file the handle is given back, at its end.
    ///
    /// # Errors
    /// If it could not be written; a regular file is then as it was.
    pub(crate) fn put(&mut self, bytes: &[u8], existing: Existing) -> io::Result<Option<File>> {
        self.put_by(existing, |out| out.write_all(bytes))
    }

    /// The same of what writes itself, piece by piece; the file keeps its old content until all of it is there.
    ///
    /// # Errors
    /// As [`Target::put`], and what `write` answers.
    pub(crate) fn put_by(
        &mut self,
        existing: Existing,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Option<File>> {
        match &mut self.0 {
            To::Whole(place, access) => replace(place, write, *access, existing).map(Some),
            To::Stream(file) => buffered(file, write).map(|()| None),
        }
    }
}

/// A file that lines are added to: the one that is there, or a new one. It is opened once, for all that is read from it and written to it; a
/// link stands for what it points to by the same rules as for a [`Target`].
///
/// # Errors
/// If there is none (or one, where it is to be new), it is no regular file, cannot be written, or may have been planted.
pub(crate) fn log(path: &Path, existing: Existing) -> io::Result<File> {
    opened(path, existing).map_err(|error| not_a_file(path).unwrap_or(error))
}

/// Why something is no place for a log; `None` of a file, and of nothing.
fn not_a_file(path: &Path) -> Option<io::Error> {
    let kind = FileType::from_raw_mode(path.metadata().ok()?.mode());
    let what = host::input::words(kind);
    (kind != FileType::RegularFile).then(|| io::Error::other(format!("it is {what}, expected a regular file")))
}

fn opened(path: &Path, existing: Existing) -> io::Result<File> {
    match (place::find(path)?, existing) {
        ((place, Found::File), Existing::Replace) => place.open_to_add(),
        ((_, Found::File), Existing::Refuse) => Err(io::ErrorKind::AlreadyExists.into()),
        ((_, Found::Nothing), Existing::Replace) => Err(io::ErrorKind::NotFound.into()),
        ((place, Found::Nothing), Existing::Refuse) => place.create(),
        ((_, Found::Stream), _) => Err(io::Error::other("it is not a regular file")),
    }
}

/// Whether a file of that name is there already.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The one way to a file's new content.
fn replace(
    place: &Place,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    access: Access,
    existing: Existing,
) -> io::Result<File> {
    draft::sweep(place);
    let draft = Draft::begin(place, access).map_err(|error| beside(&error))?;
    buffered(&draft.file, write)?;
    draft.publish(existing)
}

fn buffered(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write(&mut out)?;
    out.flush()
}

/// A refusal of the directory, in words that name the cause.
fn beside(error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => io::Error::new(
            error.kind(),
            format!("no new file can be made in its directory, and files are replaced whole: {error}"),
        ),
        kind => io::Error::new(kind, error.to_string()),
    }
}

#[cfg(test)]
mod tests;
