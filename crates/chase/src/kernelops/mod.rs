//! Operations of the kernel on memory and processes, done for real, timed in batches, and counted.
//!
//! Meant for a process of its own with one thread: it forks, and one operation takes over `SIGSEGV` while it exists.

mod batch;
mod faults;
mod file;
mod maps;
mod process;
mod program;
mod segv;
#[cfg(test)]
mod tests;
mod travel;

use std::io;

use model::kernelops::{Cores, Op};
use model::latency::Access;
use model::{Bytes, PageKind};

use crate::arena::{NotObtained, Want};
use crate::child::Start;
pub use batch::{Batch, Counts, Timed};

/// Why an operation could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// There is no memory of that kind.
    #[error(transparent)]
    Memory(#[from] NotObtained),
    /// Page kinds that this measurement does not know how to fault in one at a time.
    #[error("{0} is not measured here; choose base, thp or a hugetlb kind")]
    Kind(PageKind),
    #[error("{what}: {source}")]
    Refused {
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Sets an operation up in this process; the other CPU is that of a second process, or where a migration goes.
///
/// # Errors
/// [`NotReady`]; nothing is left behind.
pub fn open(op: Op, other_cpu: u32) -> Result<Box<dyn Timed>, NotReady> {
    if let Some(kind) = op.kind().filter(|kind| kind.mthp().is_some()) {
        return Err(NotReady::Kind(kind));
    }
    Ok(match op {
        Op::Segv => Box::new(segv::Segv::open().map_err(refused("a handler for SIGSEGV"))?),
        Op::Pcd { live } => Box::new(process::Crowd::open(live).map_err(refused(CROWD))?),
        Op::Nps { cores } => {
            let partner = (cores == Cores::Cross).then_some(other_cpu);
            Box::new(travel::ping_pong(partner).map_err(refused("a process to talk to"))?)
        }
        Op::Fw => Box::new(process::Forks::open(Start::Fork, 2, None)?),
        Op::FwResident { kind, bytes } => {
            Box::new(process::Forks::open(Start::Fork, 1, Some(&Want::plain(kind, bytes)))?)
        }
        Op::Vfork => Box::new(process::Forks::open(Start::Vfork, 8, None)?),
        Op::Exec => Box::new(process::exec().map_err(refused("a program in memory (memfd)"))?),
        Op::AnonWrite { kind } => Box::new(faults::Touch::open(kind, Access::Write)?),
        Op::ZeroRead { kind } => Box::new(faults::Touch::open(kind, Access::Read)?),
        Op::Cow => Box::new(faults::Cow::open()?),
        Op::FileRead => Box::new(file::FileRead::open().map_err(refused("a file in memory (memfd)"))?),
        Op::Mmap => Box::new(maps::untouched()),
        Op::MmapTouch { kind, bytes } => {
            Box::new(maps::Touched::open(&Want::plain(kind, bytes)).map_err(refused("room for a mapping"))?)
        }
        Op::Migrate => Box::new(travel::migrate(other_cpu).map_err(refused("another CPU"))?),
    })
}

/// A process that does nothing: its stack, its tables and the kernel's records of it. (Seen on Linux 6.18: 118K.)
pub const PROCESS: Bytes = Bytes::kib(160);
/// The process that does an operation, and those that it talks to.
pub const WORKER: Bytes = Bytes::mib(4);

/// Processes that have ended and whose memory the kernel has not given back yet, where one is started after the other: it waits for all CPUs.
pub const CHURN: Bytes = Bytes::mib(24);

/// What an operation takes of memory at the most, pages of pools left out.
pub fn memory(op: Op) -> Bytes {
    let span = |kind: PageKind| match kind.pool() {
        Some(_) => 0,
        None => faults::span(kind).0,
    };
    let own = match op {
        Op::Pcd { live } => PROCESS.0 * u64::from(live),
        Op::FwResident { kind, bytes } | Op::MmapTouch { kind, bytes } if kind.pool().is_none() => bytes.0,
        Op::AnonWrite { kind } | Op::ZeroRead { kind } => span(kind),
        // The pages, and their copies.
        Op::Cow => 2 * span(PageKind::Base),
        Op::FileRead => file::LEN as u64,
        _ => 0,
    };
    let starts = matches!(
        op,
        Op::Pcd { .. } | Op::Fw | Op::FwResident { .. } | Op::Vfork | Op::Exec
    );
    Bytes(own + WORKER.0 + if starts { CHURN.0 } else { 0 })
}

const CROWD: &str =
    "idle processes (the limits are `ulimit -u`, kernel.pid_max, kernel.threads-max and pids.max of the control group)";

fn refused(what: &'static str) -> impl Fn(io::Error) -> NotReady {
    move |source| NotReady::Refused { what, source }
}
