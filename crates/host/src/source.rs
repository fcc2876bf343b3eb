//! Where the machine's files come from: the running system, a directory, or an archive.

mod aside;
mod directory;
mod foreign;
mod hugetlb_files;
mod open;
mod patience;
mod pieces;
mod reads;
mod synthetic;
mod walk;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use model::{Bytes, Cause, Reading, Unread};

use crate::input::{Input, InputError};
use crate::parse;
use crate::snapshot::mounts;
use crate::tree::{Tree, TreeError, beside, parent};
use foreign::{Foreign, Question};
use open::LARGEST_FILE;
use patience::Reader;

pub use aside::is_reader;
pub use open::End;
pub use pieces::whole_lines;
pub use reads::Reads;
pub use synthetic::{CPUID, DEV_KVM, HUGETLB_FILES, PAGE_SIZE};

/// Links that a path may lead through, one after the other.
const MOST_LINKS: u32 = 10;

/// A machine to ask. Paths are absolute, as on the machine itself: `/proc/meminfo`.
///
/// Facts that have no file on the machine have one here, under `/hugewise/`, so that an archive can hold them too:
/// see [`CPUID`], [`PAGE_SIZE`], [`DEV_KVM`] and [`HUGETLB_FILES`].
#[derive(Debug)]
pub struct Source {
    name: String,
    root: Arc<Root>,
    /// What was read, from several threads, if it is to be kept.
    log: Option<Arc<Mutex<Reads>>>,
}

#[derive(Debug)]
enum Root {
    Live,
    Directory(OwnedFd),
    Tree(Tree),
}

/// Why a captured machine cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file or directory cannot be read.
    #[error(
        "--root {path} cannot be read: {why} (give a directory with proc/ and sys/ in it, a .tree archive, or a copy of what a terminal showed)"
    )]
    Io {
        path: PathBuf,
        /// The operating system's words.
        why: io::Error,
    },
    /// A directory that holds neither `proc` nor `sys`.
    #[error(
        "--root {path} holds neither proc/ nor sys/ (give the directory that contains them, or a .tree archive; give configuration files alone each with doctor --file)"
    )]
    NotAMachine { path: PathBuf },
    /// The archive is larger than anything `hugewise snapshot` writes, or no file at all.
    #[error("--root {path}: {why}")]
    Archive { path: PathBuf, why: InputError },
    /// The archive's text is wrong.
    #[error(transparent)]
    Garbled(#[from] TreeError),
}

impl Source {
    /// The machine that runs this program.
    pub fn live() -> Self {
        Self::new("this machine", Root::Live)
    }

    fn new(name: &str, root: Root) -> Self {
        Self {
            name: name.to_owned(),
            root: Arc::new(root),
            log: None,
        }
    }

    /// A captured machine: a directory that holds `proc/` or `sys/`, an archive in the `.tree` format, or a copy of what a terminal showed.
    ///
    /// # Errors
    /// When it cannot be read, holds no machine, or the archive is garbled (file and line are named).
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let io_error = |why| SourceError::Io {
            path: path.to_owned(),
            why,
        };
        let name = path.display().to_string();
        if fs::metadata(path).map_err(io_error)?.is_dir() {
            if !path.join("proc").is_dir() && !path.join("sys").is_dir() {
                return Err(SourceError::NotAMachine { path: path.to_owned() });
            }
            let root = directory::root(path).map_err(io_error)?;
            return Ok(Self::new(&name, Root::Directory(root)));
        }
        let text = Input::Archive.read(path).map_err(|why| SourceError::Archive {
            path: path.to_owned(),
            why,
        })?;
        let tree = Tree::parse(&name, &text)?;
        Ok(Self::from_tree(&name, tree))
    }

    /// A machine from a tree in memory.
    pub fn from_tree(name: &str, tree: Tree) -> Self {
        Self::new(name, Root::Tree(tree))
    }

    /// Is this the machine that runs the program?
    pub fn is_live(&self) -> bool {
        matches!(*self.root, Root::Live)
    }

    /// May a path that a process names be looked up in the machine's own root, where its own is not there? Not by root on the
    /// running machine: the link may since lead elsewhere, and root may read everything.
    pub fn follows_processes(&self) -> bool {
        !(self.is_live() && rustix::process::geteuid().is_root())
    }

    /// Where it came from, for provenance: `this machine` or the path of the capture.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A whole file, of at most 16 MiB.
    pub fn bytes(&self, path: &str) -> Reading<Vec<u8>> {
        self.bytes_within(path, LARGEST_FILE)
    }

    /// A whole file of at most `limit` bytes; a larger one is `Failed`, never cut.
    pub fn bytes_within(&self, path: &str, limit: Bytes) -> Reading<Vec<u8>> {
        let bytes = self.read(path, limit);
        self.note(|reads| reads.files.insert(path.to_owned(), bytes.clone()));
        bytes
    }

    /// The end of a file: its last `limit` bytes, and how many are in front of them. For logs.
    pub fn end(&self, path: &str, limit: Bytes) -> Reading<End> {
        let end = match &*self.root {
            Root::Live => match Foreign::parse(path) {
                Some(foreign) => foreign.end(limit),
                None => from_io(path, open::own_file(path).and_then(|file| open::end(&file, limit))),
            },
            Root::Directory(root) => from_io(
                path,
                open::file_below(root, path).and_then(|file| open::end(&file, limit)),
            ),
            Root::Tree(tree) => tree.bytes(path).map(|bytes| {
                let before = bytes.len().saturating_sub(limit.as_usize());
                End {
                    bytes: bytes[before..].to_vec(),
                    before: before as u64,
                }
            }),
        };
        if let Ok(End { bytes, before: 0 }) = &end {
            self.note(|reads| reads.files.insert(path.to_owned(), Reading::Known(bytes.clone())));
        }
        end.into()
    }

    fn read(&self, path: &str, limit: Bytes) -> Reading<Vec<u8>> {
        let result = match &*self.root {
            Root::Live if path == HUGETLB_FILES => return hugetlb_files(),
            Root::Live => match synthetic::read(path) {
                Some(reading) => return reading,
                None => live(path, limit),
            },
            Root::Directory(root) => from_io(
                path,
                open::file_below(root, path).and_then(|file| open::whole(&file, limit)),
            ),
            Root::Tree(tree) => tree
                .bytes(path)
                .map(|bytes| Some(bytes).filter(|bytes| bytes.len() as u64 <= limit.0)),
        };
        let too_large = || Unread::new(Cause::Failed, path, format!("it is larger than {limit}"));
        result.and_then(|bytes| bytes.ok_or_else(too_large)).into()
    }

    /// A whole file as text; bytes that are not UTF-8 make it garbled.
    pub fn text(&self, path: &str) -> Reading<String> {
        self.bytes(path).and_then(|bytes| {
            parse::utf8(bytes)
                .map_err(|line| Unread::new(Cause::Garbled, format!("{path}:{line}"), "it is not UTF-8 text"))
        })
    }

    /// A file of one line, without the white space around it.
    pub fn line(&self, path: &str) -> Reading<String> {
        self.text(path).map(|text| text.trim().to_owned())
    }

    /// A file that holds one value; `wanted` says in words what it should be.
    pub fn value<T: FromStr>(&self, path: &str, wanted: &str) -> Reading<T> {
        self.line(path)
            .and_then(|line| parse::value(path, 0, "", wanted, &line))
    }

    /// A file that holds one whole number.
    pub fn number(&self, path: &str) -> Reading<u64> {
        self.value(path, "a whole number")
    }

    /// A file that holds 0 or 1 (or N or Y, as module parameters write it).
    pub fn switch(&self, path: &str) -> Reading<bool> {
        self.line(path).and_then(|line| match line.as_str() {
            "0" | "N" => Ok(false),
            "1" | "Y" => Ok(true),
            other => {
                let seen: String = other.chars().take(40).collect();
                let why = format!("`{seen}` is neither 0, 1, N nor Y");
                Err(Unread::new(Cause::Garbled, format!("{path}:1"), why))
            }
        })
    }

    /// The names in a directory, in order; of one with more than a million of them none, and the reason.
    pub fn list(&self, path: &str) -> Reading<Vec<String>> {
        let names = self.names(path);
        self.note(|reads| reads.directories.insert(path.to_owned(), names.clone()));
        names
    }

    fn note<T>(&self, note: impl FnOnce(&mut Reads) -> T) {
        if let Some(log) = &self.log {
            note(&mut log.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Every process, in ascending order.
    pub fn pids(&self) -> Reading<Vec<u32>> {
        self.list("/proc").map(|names| {
            let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
            pids.sort_unstable();
            pids
        })
    }

    fn names(&self, path: &str) -> Reading<Vec<String>> {
        let names = match &*self.root {
            Root::Live => match synthetic::list(path) {
                Some(names) => return Reading::Known(names),
                None => match Foreign::parse(path) {
                    Some(foreign) => foreign.list(),
                    None => from_io(path, fs::read_dir(path).and_then(directory::names)),
                },
            },
            Root::Directory(root) => from_io(path, directory::list(root, path)),
            Root::Tree(tree) => tree.list(path),
        };
        names.into()
    }

    /// Bytes that are allocated to what a link of `/proc/PID/map_files` leads to, such as a segment of shared memory, whichever process
    /// touched them. A capture does not hold it.
    pub fn allocated(&self, path: &str) -> Reading<Bytes> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
        if !self.is_live() {
            return Reading::absent(path);
        }
        // The kernel's own answer: a file system in user space is not asked.
        let told = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::BLOCKS);
        let blocks = from_io(path, told.map_err(Into::into));
        Reading::from(blocks).map(|told| Bytes(told.stx_blocks.saturating_mul(512)))
    }

    /// Everything that `collect` reads of this machine through the source that it is handed. Files that are read in pieces are
    /// not kept.
    pub fn recorded(&self, collect: impl FnOnce(&Self)) -> Reads {
        let log: Arc<Mutex<Reads>> = Arc::default();
        collect(&Self {
            name: self.name.clone(),
            root: Arc::clone(&self.root),
            log: Some(Arc::clone(&log)),
        });
        std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where a symbolic link points to, as written.
    pub fn link(&self, path: &str) -> Reading<String> {
        let target = match &*self.root {
            Root::Live if Foreign::parse(path).is_some() => return Reading::Unread(not_followed(path)),
            Root::Live => fs::read_link(path),
            Root::Directory(root) => directory::target(root, path),
            Root::Tree(tree) => return tree.target(path),
        };
        from_io(path, target.map(|target| target.to_string_lossy().into_owned())).into()
    }

    /// The file that a path stands for where that is a link, such as Debian's /etc/mysql/my.cnf. Links in front of its last name stay.
    pub fn real(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Reading::Known(target) = self.link(&path) else {
                break;
            };
            path = beside(parent(&path), &target);
        }
        path
    }
}

/// What was read, or why it was not.
fn from_io<T>(path: &str, result: io::Result<T>) -> Result<T, Unread> {
    result.map_err(|error| Unread::of_io(path, &error))
}

/// Nothing needs the links of processes, and following them would need the care that their files get.
fn not_followed(path: &str) -> Unread {
    Unread::new(Cause::Failed, path, "links below the root of a process are not read")
}

/// [`HUGETLB_FILES`] of the running machine.
fn hugetlb_files() -> Reading<Vec<u8>> {
    let machine = Source::live();
    mounts::all(&machine).and_then(|mounts| {
        let pids = machine.pids().into_result().unwrap_or_default();
        let of_pools = mounts.into_iter().filter(|mount| mount.kind == "hugetlbfs");
        let question = Question::HugetlbFiles(of_pools.map(|mount| mount.target).collect(), pids);
        let (mut head, text) = aside::ask(&question, None, HUGETLB_FILES)?;
        head.unread.take().map_or(Ok(text), Err)
    })
}

/// A file of the running machine: the kernel's, one that a process names, or one of the machine's own configuration.
fn live(path: &str, limit: Bytes) -> Result<Option<Vec<u8>>, Unread> {
    if let Some(foreign) = Foreign::parse(path) {
        return foreign.bytes(limit);
    }
    if waits_for_a_process(path) {
        let read = |(path, limit): (String, Bytes)| open::kernel_file(&path).and_then(|file| open::whole(&file, limit));
        let question = (path.to_owned(), limit);
        let answer = READER.with(|reader| reader.within(patience::MEMORY, question, read));
        let failed = |why| Unread::new(Cause::Failed, path, why);
        return answer.map_err(failed).and_then(|read| from_io(path, read));
    }
    let is_the_kernel_s = path.starts_with("/proc/") || path.starts_with("/sys/");
    let file = if is_the_kernel_s {
        open::kernel_file(path)
    } else {
        open::own_file(path)
    };
    from_io(path, file.and_then(|file| open::whole(&file, limit)))
}

/// Reads what needs the memory lock of a process, or its pages, which it can make wait for good.
type MemoryReader = Reader<(String, Bytes), io::Result<Option<Vec<u8>>>>;
thread_local! {
    static READER: MemoryReader = const { Reader::new() };
}

fn waits_for_a_process(path: &str) -> bool {
    const FILES: [&str; 6] = ["cmdline", "environ", "maps", "smaps", "smaps_rollup", "numa_maps"];
    let name = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/'));
    name.is_some_and(|(_, name)| FILES.contains(&name))
}
