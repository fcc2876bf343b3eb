//! A program with its words and variables, as the kernel takes them: made before there is a child, whose memory is this process's.

use std::collections::BTreeMap;
use std::ffi::{CString, NulError, OsStr, OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{env, io, ptr};

use rustix::fs::{Access, access};

use super::order::Order;

/// Where programs are looked for without `PATH`, as `execvp` has it.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// What `execve` takes.
pub(crate) struct Image {
    pub(crate) file: CString,
    pub(crate) words: Texts,
    pub(crate) variables: Texts,
}

/// Texts, and where they are, with a null at the end.
pub(crate) struct Texts {
    _texts: Vec<CString>,
    places: Vec<*const c_char>,
}

impl Image {
    /// # Errors
    /// That there is no such program, or a NUL byte in a text.
    pub(super) fn of(order: &Order<'_>, mark: Option<(OsString, OsString)>) -> io::Result<Self> {
        let own = order.env.iter().cloned().chain(mark);
        let mut set: BTreeMap<OsString, OsString> = env::vars_os().chain(own).collect();
        set.retain(|name, _| !order.unset.iter().any(|unset| name == unset.as_str()));
        let words = Texts::of(order.words.iter().map(|word| word.as_bytes().to_owned()))?;
        let name = order.words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let file = file(name, set.get(OsStr::new("PATH")))?;
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

impl Texts {
    fn of(texts: impl Iterator<Item = Vec<u8>>) -> Result<Self, NulError> {
        let texts: Vec<CString> = texts.map(CString::new).collect::<Result<_, _>>()?;
        let places = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]);
        Ok(Self {
            places: places.collect(),
            _texts: texts,
        })
    }

    /// Each points to a text that lives as long as this, and the last is null.
    pub(crate) fn places(&self) -> &[*const c_char] {
        &self.places
    }
}

/// Where a program of that name is; a name with a slash is where it is.
fn file(name: &OsStr, path: Option<&OsString>) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = path.map_or(OsStr::new(USUAL_PATH), OsString::as_os_str);
    // An empty folder is this one.
    let files = || env::split_paths(path).map(|folder| Path::new(".").join(folder).join(name));
    let is_program = |file: &PathBuf| file.is_file() && access(file.as_path(), Access::EXEC_OK).is_ok();
    let found = files().find(is_program).or_else(|| files().find(|file| file.is_file()));
    found.ok_or(io::ErrorKind::NotFound.into())
}
