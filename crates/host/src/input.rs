//! Files that are named on the command line: one bounded reader for all of them, which opens no device and waits for no lease.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use model::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_setfl, fstat, fstatfs, openat, openat2};
use rustix::io::Errno;

use crate::parse;

/// How long a named pipe may stay silent. Pipes of a shell (`<(...)`, `/dev/stdin`) have no such limit: their writer runs.
const WRITER_TIMEOUT: Duration = Duration::from_secs(10);
/// A wait for a pipe is looked at this often.
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// How much of a pipe is read at a time: its usual capacity.
const CHUNK: usize = 64 << 10;
/// f_type of pipes without a name (linux/magic.h).
const PIPEFS: u64 = 0x5049_5045;

model::table! {
    /// What a file on the command line is for, which decides how large it may be.
    /// Each with what it is, with its article; the largest file of that kind that is read; and whether it may come through a pipe: what is
    /// written to or started cannot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Input: (&'static str, Bytes, bool) {
        /// A result of an earlier run: `report`. That of `ps PID --vmas` has about 400 bytes for each mapping.
        Result = ("a result", Bytes::mib(256), true),
        /// A plan: `apply`, `verify`.
        Plan = ("a plan", Bytes::mib(16), true),
        /// A captured machine: `--root FILE.tree`.
        Archive = ("a .tree archive", Bytes::mib(256), true),
        /// Arms of a comparison: `--arms-file`.
        Arms = ("a file of arms", Bytes::mib(1), true),
        /// Finished runs of a comparison: `--resume`, which writes to it, too.
        FinishedRuns = ("a file of finished runs", Bytes::mib(256), false),
        /// Goals of a plan: `--for FILE.toml`.
        Goals = ("a file of goals", Bytes::mib(1), true),
        /// Configuration of a server or of a machine: `doctor --file`, `size postgres FILE`.
        Configuration = ("a configuration file", Bytes::mib(4), true),
        /// What a program wrote: `doctor --file FILE.log`.
        Log = ("a log", Bytes::mib(64), true),
        /// A text with metrics: `--metric`, after each run.
        Metrics = ("a text with metrics", Bytes::mib(16), true),
        /// The program that a comparison starts.
        Program = ("a program", Bytes::gib(2), false),
        /// A recipe of one's own, `compare --workload DIR`, or experiments with such ones, `suite --experiments FILE`.
        Recipe = ("a file of recipes or experiments", Bytes::mib(1), false),
        /// A file beside such a recipe.
        RecipeFile = ("a file of a recipe", Bytes::mib(64), false),
    }
}

/// Why a file on the command line was not read. The text leaves the file's name to the caller.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system refused.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is a directory, a device or a socket.
    #[error("it is {what}, expected {expected}")]
    NotAFile {
        what: &'static str,
        /// What would do.
        expected: &'static str,
    },
    /// It is larger than any such file is.
    #[error("it is larger than {limit}, the limit for {what}: check that it is the right file")]
    TooLarge {
        limit: Bytes,
        /// What such a file is, with its article.
        what: &'static str,
    },
    /// Nothing came through a named pipe.
    #[error(
        "nothing was written to this named pipe for {} s: start its writer first, or name a regular file",
        .0.as_secs()
    )]
    Silent(Duration),
    /// A signal came while a pipe was waited for.
    #[error("a signal interrupted reading it")]
    Interrupted,
    #[error("line {0} is not UTF-8 text")]
    NotText(usize),
}

impl Input {
    /// The largest file of that kind that is read.
    pub fn most(self) -> Bytes {
        self.row().1
    }

    fn may_be_piped(self) -> bool {
        self.row().2
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Archive => "a regular file, a pipe, or a directory with proc/ and sys/ in it",
            _ if self.may_be_piped() => "a regular file or a pipe",
            _ => "a regular file",
        }
    }

    /// Reads a whole file: a regular one, or what comes through a pipe. A signal without a handler ends the program while it
    /// waits for a pipe, one with a handler ends the wait.
    ///
    /// # Errors
    /// See [`InputError`].
    pub fn read(self, path: &Path) -> Result<Vec<u8>, InputError> {
        self.read_within(path, WRITER_TIMEOUT)
    }

    /// The same as text.
    ///
    /// # Errors
    /// See [`InputError`].
    pub fn text(self, path: &Path) -> Result<String, InputError> {
        parse::utf8(self.read(path)?).map_err(InputError::NotText)
    }

    /// The text of a regular file that is open, from its beginning.
    ///
    /// # Errors
    /// See [`InputError`].
    pub fn text_of(self, mut file: &File) -> Result<String, InputError> {
        file.rewind()?;
        parse::utf8(self.whole(file)?).map_err(InputError::NotText)
    }

    /// Text in a folder that another user may change: a regular file of that user's, to which no link leads.
    ///
    /// # Errors
    /// See [`InputError`]; also on kernels without openat2 (before Linux 5.6).
    pub fn text_of_user(self, path: &Path, uid: u32) -> Result<String, InputError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // A device would be opened, but a user without rights can make none.
        let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).map_err(io::Error::from)?;
        let stat = fstat(&file).map_err(io::Error::from)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile || stat.st_uid != uid {
            return Err(InputError::NotAFile {
                what: if stat.st_uid == uid {
                    words(kind)
                } else {
                    "another user's"
                },
                expected: "a regular file of the user that the program runs as",
            });
        }
        parse::utf8(self.whole(&File::from(file))?).map_err(InputError::NotText)
    }

    fn read_within(self, path: &Path, timeout: Duration) -> Result<Vec<u8>, InputError> {
        let (file, kind) = self.open(path)?;
        match kind {
            FileType::Fifo => self.piped(&file, is_named(&file)?.then_some(timeout)),
            _ => self.whole(&file),
        }
    }

    /// The rest of a regular file.
    fn whole(self, file: &File) -> Result<Vec<u8>, InputError> {
        let size = file.metadata()?.len();
        self.check(size)?;
        let mut bytes = Vec::with_capacity(size as usize);
        file.take(self.most().0 + 1).read_to_end(&mut bytes)?;
        self.check(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Opens what is allowed by what it is, not by its name: opening a device may already do something.
    fn open(self, path: &Path) -> Result<(File, FileType), InputError> {
        let open = |path: &Path, flags: OFlags| -> io::Result<OwnedFd> {
            Ok(openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?)
        };
        let place = open(path, OFlags::PATH)?;
        let kind = FileType::from_raw_mode(fstat(&place).map_err(io::Error::from)?.st_mode);
        if kind != FileType::RegularFile && !(kind == FileType::Fifo && self.may_be_piped()) {
            return Err(InputError::NotAFile {
                what: words(kind),
                expected: self.expected(),
            });
        }
        // A description of its own, so that the flags of another's pipe stay as they are.
        let same = format!("/proc/self/fd/{}", place.as_raw_fd());
        let file = open(same.as_ref(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        Ok((File::from(file), kind))
    }

    fn check(self, bytes: u64) -> Result<(), InputError> {
        if bytes <= self.most().0 {
            return Ok(());
        }
        Err(InputError::TooLarge {
            limit: self.most(),
            what: self.row().0,
        })
    }

    /// Until every writer has closed the pipe. The one that has no writer yet waits for one.
    fn piped(self, mut pipe: &File, timeout: Option<Duration>) -> Result<Vec<u8>, InputError> {
        let (mut bytes, mut chunk) = (Vec::new(), vec![0; CHUNK]);
        let mut heard = Instant::now();
        while bytes.len() as u64 <= self.most().0 {
            if !is_ready(pipe)? {
                match timeout {
                    Some(timeout) if heard.elapsed() >= timeout => return Err(InputError::Silent(timeout)),
                    _ => continue,
                }
            }
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            heard = Instant::now();
        }
        self.check(bytes.len() as u64)?;
        Ok(bytes)
    }
}

/// Opens a file that is read piece by piece and may be of any length, such as a trace: a regular file with its length, or a pipe.
///
/// # Errors
/// See [`InputError`].
pub fn stream(path: &Path) -> Result<(File, Option<u64>), InputError> {
    let (file, kind) = Input::Result.open(path)?;
    if kind != FileType::Fifo {
        let length = file.metadata()?.len();
        return Ok((file, Some(length)));
    }
    let is_named = is_named(&file)?;
    let begun = Instant::now();
    // Before there is a writer a pipe seems to be at its end.
    while !is_ready(&file)? {
        if is_named && begun.elapsed() >= WRITER_TIMEOUT {
            return Err(InputError::Silent(WRITER_TIMEOUT));
        }
    }
    fcntl_setfl(&file, OFlags::empty()).map_err(io::Error::from)?;
    Ok((file, None))
}

/// Is there something to read, or its end?
fn is_named(pipe: &File) -> io::Result<bool> {
    Ok(u64::try_from(fstatfs(pipe)?.f_type) != Ok(PIPEFS))
}

fn is_ready(pipe: &File) -> Result<bool, InputError> {
    let period = Timespec {
        tv_sec: 0,
        tv_nsec: POLL_PERIOD.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&period)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Err(InputError::Interrupted),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// What something is that is no regular file, with its article.
pub fn words(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Socket => "a socket",
        FileType::Fifo => "a pipe",
        _ => "no regular file",
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
