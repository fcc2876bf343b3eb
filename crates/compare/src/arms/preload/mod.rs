//! libhugewise_preload.so from this side: it is carried along, put in front of a program, and asked what it did.
//!
//! The library is in the program's own file. A comparison puts it into a file that every user can load, for as long as it is needed: the
//! loader complains into the program's output where it cannot, as after a change of user, or once descriptors are closed. Where there
//! is no such place it is in a memfd. Children reach the page of counts, and that memfd, through inherited descriptors, or if they closed
//! those, through this process's `/proc/PID/fd`.

mod layout;
mod report;

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod library_tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use preload_abi::{BYTES, VARIABLE, WORDS};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{Errno, FdFlags};

use super::variables::added;
pub use layout::{Layout, Rule};
pub use report::{Report, Tally};

/// Built by this crate's build script; empty for targets that it does not know.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libhugewise_preload.so"));

/// Programs count on low numbers of descriptors: those that they inherit from here begin at this one.
const LEAST_FD: i32 = 500;

/// For a target that the library does not know.
const NOT_BUILT: &str = "this build has no preload library, which is there for glibc (build for a *-linux-gnu target, \
                         or choose another technique)";

/// The library's bytes, for a file; none for targets that it does not know.
pub fn library() -> Option<&'static [u8]> {
    Some(LIBRARY).filter(|library| !library.is_empty())
}

/// A program's environment with the LD_PRELOAD library, and its counts. Keep it until the program has ended: while it lives, children of
/// this process inherit two descriptors that the library is found by.
#[derive(Debug)]
pub struct Armed {
    /// What to set in the program's environment.
    pub env: Vec<(OsString, OsString)>,
    /// The descriptors that it needs.
    pub inherited: Vec<RawFd>,
    page: OwnedFd,
    /// What LD_PRELOAD is to name.
    names: OsString,
    /// The library's file, where it is in memory.
    _in_memory: Option<OwnedFd>,
}

impl Armed {
    /// Orders and counts for one run of a program: every process of it adds to the same counts. The library is in that file, or
    /// else in memory. `given` is what the program would find in a variable without the library.
    ///
    /// # Errors
    /// If this build has no library, or no memory file can be made.
    pub fn new(file: Option<&Path>, layout: &Layout, given: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let library = library().ok_or(NOT_BUILT)?;
        let (names, in_memory) = match file {
            Some(file) => (file.into(), None),
            None => library_in_memory(library).map(|(names, file)| (names, Some(file)))?,
        };
        // The standard library seeds its hash maps from the kernel.
        let nonce = RandomState::new().build_hasher().finish();
        let words = layout.words(nonce);
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW;
        let file = memory_file("hugewise-preload-counts", &bytes_of(&words), seals);
        let page = file.map_err(|error| not_made("a page for the preload library's counts", &error))?;
        let (own, fd) = (std::process::id(), page.as_raw_fd());
        // Behind those that are preloaded anyway, so that their memory calls go through it as well.
        let behind = |name: &str, own: &OsStr| (name.into(), added(given(name), ":", own));
        let env = vec![
            behind("LD_PRELOAD", &names),
            // A program with AddressSanitizer ends where its runtime is not the first library.
            behind("ASAN_OPTIONS", OsStr::new("verify_asan_link_order=0")),
            (VARIABLE.into(), format!("{fd}:{nonce}:/proc/{own}/fd/{fd}").into()),
        ];
        Ok(Self {
            env,
            inherited: in_memory.iter().chain([&page]).map(AsRawFd::as_raw_fd).collect(),
            page,
            names,
            _in_memory: in_memory,
        })
    }

    /// What was counted so far, in all processes of the program.
    ///
    /// # Errors
    /// If the page of counts cannot be read.
    pub fn report(&self) -> Result<Report, String> {
        let mut bytes = [0; BYTES];
        let read = rustix::io::pread(&self.page, &mut bytes[..], 0);
        let read = read.map_err(io::Error::from).and_then(|read| match read {
            BYTES => Ok(Report::of(&words_of(&bytes))),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        });
        read.map_err(|error| format!("the preload library's counts cannot be read: {error}"))
    }

    /// Did the loader complain into the program's errors that it cannot load the library?
    pub(crate) fn is_complained_of(&self, errors: &str) -> bool {
        let names = self.names.to_string_lossy();
        let mut lines = errors.lines().filter(|line| line.contains("cannot be preloaded"));
        lines.any(|line| names.split(':').any(|name| line.contains(name)))
    }
}

/// The library in memory, and what LD_PRELOAD is to name.
fn library_in_memory(library: &[u8]) -> Result<(OsString, OwnedFd), String> {
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    let file = memory_file("libhugewise_preload.so", library, seals);
    let file = file.map_err(|error| not_made("a file for the preload library", &error))?;
    // By two names: the loader takes the second for the first again, and either can be out of a program's reach.
    let (own, fd) = (std::process::id(), file.as_raw_fd());
    Ok((format!("/proc/self/fd/{fd}:/proc/{own}/fd/{fd}").into(), file))
}

fn not_made(what: &str, error: &io::Error) -> String {
    format!(
        "{what} cannot be made: {error} (a seccomp profile that forbids memfd_create, or too many open files; choose another technique)"
    )
}

/// A sealed file in memory, inherited by children under a high number.
fn memory_file(name: &str, content: &[u8], seals: SealFlags) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL);
    // Kernels before 6.3 know nothing of that seal.
    let file = made.or_else(|error| match error {
        Errno::INVAL => rustix::fs::memfd_create(name, flags),
        other => Err(other),
    })?;
    let mut file = File::from(file);
    file.write_all(content)?;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    let high = rustix::io::fcntl_dupfd_cloexec(&file, LEAST_FD);
    // Where fewer descriptors are allowed, any number has to do.
    let high = high.or_else(|_| rustix::io::fcntl_dupfd_cloexec(&file, 3))?;
    rustix::io::fcntl_setfd(&high, FdFlags::empty())?;
    Ok(high)
}

fn bytes_of(words: &[u64; WORDS]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn words_of(bytes: &[u8; BYTES]) -> [u64; WORDS] {
    let (chunks, _) = bytes.as_chunks();
    std::array::from_fn(|word| u64::from_ne_bytes(chunks[word]))
}
