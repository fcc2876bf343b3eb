//! A file of JSON lines in the state directory, each on disk before what it announces is done.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use host::source::whole_lines;
use model::{Cause, Unread};
use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::error::WriterError;
use crate::state_dir::{StateDir, check_owner, not_safe, private, state};

/// A plan's files and those that they replace have at most 1 MiB each; a larger file is not one of ours.
const LARGEST: u64 = 64 << 20;

/// Places in a torn line at which a whole record is looked for.
const MOST_TRIES: usize = 1000;

/// A file that is open for more lines.
#[derive(Debug)]
pub(crate) struct LineFile {
    path: PathBuf,
    file: File,
}

impl LineFile {
    /// A new file with its first line, on disk when this returns. Call under the lock.
    pub(crate) fn create(dir: &StateDir, name: &str, first: &impl Serialize) -> Result<Self, WriterError> {
        let path = dir.0.join(name);
        let file = private().create_new(true).open(&path).map_err(state("create", &path))?;
        let mut lines = Self { path, file };
        lines.add(first)?;
        dir.sync()?;
        Ok(lines)
    }

    /// Opens a file, ready for lines after its last whole one, and reads it. Call under the lock.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<u8>), WriterError> {
        let mut file = private().append(true).open(path).map_err(state("open", path))?;
        let bytes = read_bounded(&mut file, path)?;
        let path = path.to_owned();
        let whole = whole_lines(&bytes);
        if whole < bytes.len() {
            file.set_len(whole as u64)
                .map_err(state("cut the torn end of", &path))?;
        }
        Ok((Self { path, file }, bytes))
    }

    /// Reads a file without opening it for more; `None` if it is gone. Needs no lock.
    pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, WriterError> {
        let mut options = File::options();
        options.read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => read_bounded(&mut file.map_err(state("open", path))?, path).map(Some),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, and returns when it is on disk. Of one that could not be written whole nothing stays, so that the next one is whole.
    pub(crate) fn add(&mut self, line: &impl Serialize) -> Result<(), WriterError> {
        let mut line = serde_json::to_vec(line).map_err(|error| state("write", &self.path)(error.into()))?;
        line.push(b'\n');
        let end = self.file.metadata().map_err(state("look at", &self.path))?.len();
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Where this fails too, the reader knows a torn line when it meets one.
            let _ = self.file.set_len(end);
            let _ = self.file.seek(SeekFrom::Start(end));
        }
        written.map_err(state("write", &self.path))
    }

    /// A line of it that does not follow from those before.
    pub(crate) fn garbled(&self, why: &str) -> WriterError {
        Unread::new(Cause::Garbled, self.path.display().to_string(), why).into()
    }

    pub(crate) fn remove(&self, dir: &StateDir) -> Result<(), WriterError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(state("remove", &self.path)(error)),
            _ => dir.sync(),
        }
    }
}

/// Reads one of our own files; others are refused.
fn read_bounded(file: &mut File, path: &Path) -> Result<Vec<u8>, WriterError> {
    let meta = file.metadata().map_err(state("look at", path))?;
    check_owner(path, &meta)?;
    if !meta.is_file() || meta.len() > LARGEST {
        return Err(not_safe(path, "it is too large for a journal, or not a file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(state("read", path))?;
    Ok(bytes)
}

/// Enters the record of each whole line, by the line's number from 0; an error names the line. A last line without its end was cut off before
/// what it announces was done.
pub(crate) fn each_record<T: DeserializeOwned>(
    bytes: &[u8],
    place: &str,
    mut enter: impl FnMut(usize, T) -> Result<(), String>,
) -> Result<(), Unread> {
    let lines = bytes[..whole_lines(bytes)].split_inclusive(|&byte| byte == b'\n');
    for (n, line) in lines.enumerate() {
        let record = record(line).map_err(|error| error.to_string());
        let entered = record.and_then(|record| record.map_or(Ok(()), |record| enter(n, record)));
        entered.map_err(|why| Unread::new(Cause::Garbled, format!("{place}:{}", n + 1), why))?;
    }
    Ok(())
}

/// The record in a line; `None` for the beginning of one that a full disk tore before its change was made. A whole record may have been
/// written behind such a beginning.
fn record<T: DeserializeOwned>(line: &[u8]) -> Result<Option<T>, serde_json::Error> {
    let error = match serde_json::from_slice(line) {
        Ok(record) => return Ok(Some(record)),
        Err(error) => error,
    };
    let is_torn = |bytes: &[u8]| serde_json::from_slice::<IgnoredAny>(bytes).is_err_and(|error| error.is_eof());
    if is_torn(line.strip_suffix(b"\n").unwrap_or(line)) {
        return Ok(None);
    }
    let starts =
        (1..line.len()).filter(|&at| line[at..].starts_with(b"{\"") || line[at..].starts_with(b"\"complete\""));
    let mut whole = starts.take(MOST_TRIES).filter(|&at| is_torn(&line[..at]));
    let found = whole.find_map(|at| serde_json::from_slice(&line[at..]).ok());
    found.map(Some).ok_or(error)
}
