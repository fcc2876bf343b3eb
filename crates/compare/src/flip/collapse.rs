//! Collapses one PMD range of a process after another, within a budget of its time.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use host::Source;
use host::processes::{
    self,
    areas::{Area, counted_within},
};
use model::Unread;
use model::collapse::{Collapse, Pieces, Refused};

use super::live::{Live, PATIENT};
use super::pieces::{PAGE, Span};
use super::target::Target;
use model::{Progress, time_left};

#[derive(Clone, Debug)]
pub struct Spec {
    pub pid: u32,
    pub span: Span,
    /// Leave pieces alone of which less than this share (0 to 1) is in memory.
    pub used: f64,
    /// How much of the time may go into it; `None`: all.
    pub budget: Option<Budget>,
}

impl Spec {
    /// The PMD ranges that are meant.
    ///
    /// # Errors
    /// [`Error::Nothing`].
    pub(super) fn pieces(&self, areas: &[Area]) -> Result<Vec<u64>, Error> {
        let pieces = self.span.pieces(areas);
        if pieces.is_empty() {
            let (pid, span) = (self.pid, self.span.clone());
            return Err(Error::Nothing { pid, span });
        }
        Ok(pieces)
    }
}

/// A share of the time: the process waits for its memory while a piece is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Milliseconds of each second, 1 to 1000.
    pub ms_per_second: u32,
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_suffix("ms/s")
            .and_then(|number| number.parse().ok())
            .filter(|ms| (1..=1000).contains(ms))
            .map(|ms_per_second| Self { ms_per_second })
            .ok_or_else(|| {
                format!("`{text}` is no budget (write milliseconds of each second, 1 to 1000, such as 50ms/s)")
            })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms/s", self.ms_per_second)
    }
}

impl Budget {
    /// How long to rest after so much work.
    fn rest(self, worked: Duration) -> Duration {
        worked.mul_f64(1000.0 / f64::from(self.ms_per_second) - 1.0)
    }
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process cannot be reached.
    #[error("process {pid} cannot be reached: {source}{}", hint(source))]
    Process {
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Its mappings cannot be read.
    #[error("the mappings of the process cannot be read: {0}")]
    Mappings(#[from] Unread),
    /// The kernel does not allow it at all.
    #[error(
        "the kernel does not let you collapse memory of process {pid}: {source}; it takes CAP_SYS_NICE and the right to trace it (root has both)"
    )]
    NotAllowed {
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Nothing of that kind is there.
    #[error("process {pid} has no {span} memory in which a whole {} page fits", PAGE)]
    Nothing { pid: u32, span: Span },
}

/// Times a piece is tried again where the kernel says that it was only busy.
pub(super) const RETRIES: u32 = 3;
/// Pause before it is tried again: pages under I/O or on their way between lists are free soon.
pub(super) const RETRY_PERIOD: Duration = Duration::from_millis(2);

/// Collapses the memory of the process, and proves by its smaps what that changed.
///
/// # Errors
/// [`Error`]; pieces that the kernel refuses are no error but counted with their reasons.
pub fn run(spec: &Spec, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<Collapse, Error> {
    let pid = spec.pid;
    let mut live = Live::open(pid).map_err(|source| Error::Process { pid, source })?;
    let source = Source::live();
    let name = processes::one_within(&source, pid, PATIENT).into_result()?.name;
    let before = counted_within(&source, pid, PATIENT).into_result()?;
    let pieces = spec.pieces(&before)?;
    let done = work(spec, &pieces, &mut live, progress, stop)?;
    let after = counted_within(&source, pid, PATIENT).into_result()?;
    let ms: Vec<f64> = done.took.iter().map(|took| took.as_secs_f64() * 1e3).collect();
    Ok(Collapse {
        pid,
        name,
        range: spec.span.to_string(),
        page: PAGE,
        before: spec.span.backing(&before),
        after: spec.span.backing(&after),
        pieces: done.pieces,
        refused: done.refused(),
        ms: stats::estimate(&ms),
        seconds: live.now().as_secs_f64(),
        stopped: done.pieces.left > 0,
    })
}

/// What to do about a process that cannot be reached.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => " (it has ended, or never was)",
        io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => " (run with sudo)",
        io::ErrorKind::PermissionDenied => {
            ", though this user is root: a container, a security module or Yama forbids it"
        }
        _ => "",
    }
}

/// What became of the pieces.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) pieces: Pieces,
    pub(super) took: Vec<Duration>,
    pub(super) errors: BTreeMap<i32, u64>,
}

impl Done {
    pub(super) fn refused(&self) -> Vec<Refused> {
        self.refused_by(meaning)
    }

    /// By the name and the meaning of each error.
    pub(super) fn refused_by(&self, meaning: fn(i32) -> (String, &'static str)) -> Vec<Refused> {
        let refused = self.errors.iter().map(|(&errno, &pieces)| {
            let (error, meaning) = meaning(errno);
            Refused {
                error,
                meaning: meaning.to_owned(),
                pieces,
            }
        });
        refused.collect()
    }
}

/// Goes through the pieces.
pub(super) fn work(
    spec: &Spec,
    pieces: &[u64],
    target: &mut dyn Target,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<Done, Error> {
    let mut done = Done::default();
    for (number, &at) in pieces.iter().enumerate() {
        if stop() {
            done.pieces.left = (pieces.len() - number) as u64;
            break;
        }
        let share = number as f64 / pieces.len() as f64;
        let left = time_left(target.now(), share);
        progress.step(share, left, &format!("{number} of {} pieces", pieces.len()));
        // Where the pagemap could not be read, the kernel decides.
        if target.used(at).is_ok_and(|used| used < spec.used) {
            done.pieces.sparse += 1;
            continue;
        }
        let began = target.now();
        match patiently(target, at) {
            Ok(()) => {
                done.pieces.large += 1;
                done.took.push(target.now() - began);
            }
            Err(error) => refuse(&mut done, spec.pid, error)?,
        }
        if let Some(budget) = spec.budget {
            let worked = target.now() - began;
            target.pause(budget.rest(worked));
        }
    }
    Ok(done)
}

/// Tries a piece again while the kernel is only busy with it.
fn patiently(target: &mut dyn Target, at: u64) -> io::Result<()> {
    for _ in 0..RETRIES {
        match target.collapse(at) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                target.pause(RETRY_PERIOD);
            }
            ended => return ended,
        }
    }
    target.collapse(at)
}

/// Counts a refused piece; what holds for the whole process ends the run.
pub(super) fn refuse(done: &mut Done, pid: u32, source: io::Error) -> Result<(), Error> {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Err(Error::NotAllowed { pid, source }),
        Some(libc::ESRCH) => Err(Error::Process { pid, source }),
        errno => {
            done.pieces.refused += 1;
            *done.errors.entry(errno.unwrap_or_default()).or_default() += 1;
            Ok(())
        }
    }
}

/// The name of an error, and what the kernel means by it here (mm/khugepaged.c, madvise_collapse_errno).
pub(crate) fn meaning(errno: i32) -> (String, &'static str) {
    let (name, meaning) = match errno {
        libc::ENOMEM => (
            "ENOMEM",
            "no free memory in one piece of that size: free memory, or `echo 1 > /proc/sys/vm/compact_memory`, and try again",
        ),
        libc::EBUSY => (
            "EBUSY",
            "the memory control group is at its limit: raise it, or collapse less",
        ),
        libc::EAGAIN => (
            "EAGAIN",
            "pages were in use by the kernel (I/O, pinned, or being moved) each time: try again later",
        ),
        libc::EINVAL => (
            "EINVAL",
            "huge pages are not allowed here: nohugepage advice, PR_SET_THP_DISABLE, memory that is shared or empty, or a file system without large folios",
        ),
        libc::ENOSYS => ("ENOSYS", "this kernel cannot do it: it takes Linux 6.1"),
        libc::EPERM | libc::EACCES => (
            if errno == libc::EPERM { "EPERM" } else { "EACCES" },
            "it takes CAP_SYS_NICE and the right to trace the process (root has both)",
        ),
        _ => return (io::Error::from_raw_os_error(errno).to_string(), "unexpected here"),
    };
    (name.to_owned(), meaning)
}
