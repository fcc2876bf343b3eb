//! What kind of program it is, from its file: which techniques reach its memory depends on that.

pub(crate) mod elf;
pub(crate) mod memory;
pub mod threads;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use host::{Input, InputError};

use crate::elf::Elf;
pub use crate::glibc::Glibc;
pub use crate::memory::{Allocator, Database, Memory};
use crate::switches;

/// Scripts that name scripts as their interpreters: the kernel's own limit.
const DEPTH: usize = 5;
/// The name of the tunable: a static program of glibc 2.35 or later has the list of all of them. Whether its malloc is glibc's own, a trial shows.
const TUNABLE: &[u8] = b"glibc.malloc.hugetlb";

/// A program, as far as its file shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file; of a script the interpreter's.
    pub path: PathBuf,
    pub memory: Memory,
    /// The version of glibc that loads it; `None` where it has another C library or none, or that does not say.
    pub glibc: Option<Glibc>,
}

/// Why a program could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error("{0}: there is no such program (write a path, or a name that is on PATH)")]
    Nowhere(String),
    /// Its file cannot be read.
    #[error("{path}: {error}")]
    Unreadable { path: String, error: InputError },
}

impl Program {
    /// The same with the libraries that are loaded in front of it, as `LD_PRELOAD` lists them: an allocator among them replaces
    /// glibc's.
    fn behind(self, libraries: Option<&OsStr>) -> Self {
        let list = libraries.unwrap_or_default().to_string_lossy();
        let mut names = list
            .split([':', ' '])
            .map(|path| path.rsplit('/').next().unwrap_or(path));
        let allocator = names.find_map(Allocator::of_library);
        match (self.memory, allocator) {
            (Memory::Glibc, Some(allocator)) => Self {
                memory: Memory::Allocator(allocator),
                ..self
            },
            _ => self,
        }
    }
}

/// Looks at the program that a command starts: behind `su`, launchers and shells at one with switches of its own. `given` looks up
/// the variables that it will have.
///
/// # Errors
/// If there is no such program or its file cannot be read.
pub(crate) fn of_command(words: &[OsString], given: &dyn Fn(&str) -> Option<OsString>) -> Result<Program, LookError> {
    let first = words.first().map_or(OsStr::new(""), OsString::as_os_str);
    let path = given("PATH");
    let path = path.as_deref();
    let program = match switches::known(words) {
        None => look(first, path)?,
        // Behind a launcher it may be on another PATH.
        Some((known, word)) => Program {
            memory: known.memory(),
            ..look(&word, path).or_else(|_| look(first, path))?
        },
    };
    Ok(program.behind(given("LD_PRELOAD").as_deref()))
}

/// Looks at a program by the name or path that would start it.
///
/// # Errors
/// If there is no such program or its file cannot be read.
pub fn look(name: &OsStr, path: Option<&OsStr>) -> Result<Program, LookError> {
    let mut found = find(name, path)?;
    for _ in 0..DEPTH {
        let bytes = Input::Program.read(&found).map_err(|error| LookError::Unreadable {
            path: found.display().to_string(),
            error,
        })?;
        match interpreter(&bytes) {
            Some(interpreter) => found = find(&interpreter, path)?,
            None => {
                let elf = Elf::read(&bytes);
                let is_static_glibc = || bytes.windows(TUNABLE.len()).any(|text| text == TUNABLE);
                return Ok(Program {
                    memory: memory(&found, elf.as_ref(), is_static_glibc),
                    glibc: elf.and_then(|elf| Glibc::of_loader(elf.loader.as_deref()?)),
                    path: found,
                });
            }
        }
    }
    Err(LookError::Nowhere(name.to_string_lossy().into_owned()))
}

/// May a command start a Java virtual machine, though its program is none? What starts others may, and a command that names it.
pub(crate) fn may_start_java(words: &[OsString], path: Option<&OsStr>) -> bool {
    words.iter().any(|word| word.to_string_lossy().contains("java")) || may_start_another(words, path)
}

/// Is a command there to start another program? A script and a shell are, and what takes a command as its arguments.
pub(crate) fn may_start_another(words: &[OsString], path: Option<&OsStr>) -> bool {
    let first = words.first().map_or(OsStr::new(""), OsString::as_os_str);
    let is_script = |file: PathBuf| {
        let is_shell = file.as_os_str().as_bytes().ends_with(b"sh");
        is_shell
            || Input::Program
                .read(&file)
                .is_ok_and(|bytes| interpreter(&bytes).is_some())
    };
    first.to_str().is_some_and(switches::is_launcher) || find(first, path).is_ok_and(is_script)
}

/// The file that a name stands for, which may be a script.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, LookError> {
    let found = process::find(name, path).ok().filter(|file| file.is_file());
    found.ok_or_else(|| LookError::Nowhere(name.to_string_lossy().into_owned()))
}

/// The program behind `#!`; of `env` the one that it looks for.
fn interpreter(bytes: &[u8]) -> Option<OsString> {
    let line = bytes.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let program = words.next()?;
    let is_env = program == b"env" || program.ends_with(b"/env");
    let wanted = if is_env {
        words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))
    } else {
        None
    };
    Some(OsStr::from_bytes(wanted.unwrap_or(program)).to_owned())
}

fn memory(path: &Path, elf: Option<&Elf>, is_static_glibc: impl Fn() -> bool) -> Memory {
    let Some(elf) = elf else {
        return Memory::Static;
    };
    let is_java = path
        .canonicalize()
        .is_ok_and(|real| real.file_name() == Some(OsStr::new("java")));
    let needs = |beginning: &str| elf.needed.iter().any(|library| library.starts_with(beginning));
    if is_java || needs("libjli.so") || needs("libjvm.so") {
        return Memory::Jvm;
    }
    match elf.loader.as_deref() {
        // One that is linked for any address names a loader, too, and no C library.
        _ if elf.has_go_note && !needs("libc.") => Memory::Go,
        None if is_static_glibc() => Memory::StaticGlibc,
        None => Memory::Static,
        Some(loader) if !loader.contains("/ld-linux") && !loader.contains("/ld64") => Memory::OtherLibc,
        Some(_) => {
            let allocator = elf.needed.iter().find_map(|name| Allocator::of_library(name));
            allocator.map_or(Memory::Glibc, Memory::Allocator)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Allocator, LookError, Memory, interpreter, look, may_start_another, may_start_java};
    use std::ffi::{OsStr, OsString};

    #[test]
    fn scripts_are_their_interpreters() {
        let of = |text: &str| interpreter(text.as_bytes()).map(|name| name.to_string_lossy().into_owned());
        assert_eq!(of("#!/bin/sh\necho"), Some("/bin/sh".to_owned()));
        assert_eq!(of("#! /usr/bin/env -S A=b python3 -u\n"), Some("python3".to_owned()));
        assert_eq!(of("#!/usr/bin/perl -w"), Some("/usr/bin/perl".to_owned()));
        assert_eq!(of("\u{7f}ELF"), None);
    }

    #[test]
    fn a_shell_or_a_command_that_names_java_may_start_it() {
        let own = std::env::current_exe().expect("a path").display().to_string();
        let may = |words: &[&str]| may_start_java(&words.iter().map(OsString::from).collect::<Vec<_>>(), None);
        assert!(may(&[&own, "-N", "0", "/usr/lib/jvm/bin/java"]) && may(&["/bin/sh", "start"]));
        assert!(!may(&[&own, "-N", "0"]) && may(&["/usr/bin/numactl", "-N0", "./catalina.sh", "run"]));
        let another = |words: &[&str]| may_start_another(&words.iter().map(OsString::from).collect::<Vec<_>>(), None);
        assert!(another(&["/usr/local/bin/gosu", "app", "./app"]) && another(&["/bin/sh", "-c", "./app"]));
        assert!(!another(&[&own, "/usr/lib/jvm/bin/java"]));
    }

    #[test]
    fn this_test_is_a_program_with_glibc_and_a_missing_one_is_named() {
        let own = std::env::current_exe().expect("a path");
        let program = look(own.as_os_str(), None).expect("readable");
        assert_eq!((&program.path, program.memory), (&own, Memory::Glibc));
        let behind = |list: &str| program.clone().behind(Some(OsStr::new(list))).memory;
        assert_eq!(
            behind("/usr/lib/libx.so:/usr/lib/libjemalloc.so.2"),
            Memory::Allocator(Allocator::Jemalloc)
        );
        assert_eq!(
            behind("libtcmalloc_minimal.so.4"),
            Memory::Allocator(Allocator::Tcmalloc)
        );
        assert_eq!(behind(""), Memory::Glibc);
        let error = look(OsStr::new("no-such-program"), Some(OsStr::new("/bin"))).expect_err("nowhere");
        assert!(matches!(error, LookError::Nowhere(name) if name == "no-such-program"));
    }
}
