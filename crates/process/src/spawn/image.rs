//! A program with its words and variables, as the kernel takes them: made before there is a child, whose memory is this process's.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, io};

use rustix::fs::{Access, access};

use super::order::Order;
use crate::syscall::Texts;

/// Where programs are looked for without `PATH`, as `execvp` has it.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// The variables of this process, which nothing changes.
static OWN: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// What `execve` takes.
pub(crate) struct Image {
    pub(crate) file: CString,
    pub(crate) words: Texts,
    pub(crate) variables: Texts,
}

impl Image {
    /// # Errors
    /// That there is no such program, or a NUL byte in a text.
    pub(super) fn of(order: &Order<'_>, mark: Option<&(OsString, OsString)>) -> io::Result<Self> {
        let words = Texts::of(order.words.iter().map(|word| word.as_bytes().to_vec()))?;
        let more: Vec<&(OsString, OsString)> = order.env.iter().chain(mark).collect();
        // Of several of one name the last holds. There are few, and those of this process come before them.
        let is_last = |name: &OsString, after: &[&(OsString, OsString)]| !after.iter().any(|(other, _)| other == name);
        let own = match order.shut_in {
            Some(shut_in) => shut_in.environment.iter(),
            None => OWN.get_or_init(|| env::vars_os().collect()).iter(),
        };
        let own = own.filter(|(name, _)| is_last(name, &more));
        let last = more
            .iter()
            .enumerate()
            .filter(|(at, (name, _))| is_last(name, &more[at + 1..]));
        let all = own.chain(last.map(|(_, more)| *more));
        let set: Vec<_> = all
            .filter(|(name, _)| !order.unset.iter().any(|unset| name == unset.as_str()))
            .collect();
        let name = order.words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let path = set
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, path)| path.as_os_str());
        let file = find(name, path)?;
        let pairs = set
            .iter()
            .map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
        Ok(Self {
            file: CString::new(file.into_os_string().into_vec())?,
            words,
            variables: Texts::of(pairs)?,
        })
    }
}

/// Where a program of that name is; a name with a slash is where it is.
///
/// # Errors
/// That there is no file of that name.
pub fn find(name: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = path.unwrap_or(OsStr::new(USUAL_PATH));
    // An empty folder is this one.
    let files = || env::split_paths(path).map(|folder| Path::new(".").join(folder).join(name));
    let is_program = |file: &PathBuf| file.is_file() && access(file.as_path(), Access::EXEC_OK).is_ok();
    let found = files().find(is_program).or_else(|| files().find(|file| file.is_file()));
    found.ok_or(io::ErrorKind::NotFound.into())
}
