//! A worker: a process of its own that sets one operation up, waits for the others, and times it for a while.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use chase::kernelops::{Counts, Timed};
use host::processes::{self, Proof};
use model::kernelops::Op;
use model::{Cause, Reading, Unread};
use rustix::fs::FileType;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

/// The word on the command line that makes a worker; not meant for users.
pub(super) const ASKED: &str = "kernel-operations-worker";
/// What a worker writes when it is set up, and what it receives when all are.
pub(super) const READY: &str = "ready";
pub(super) const GO: &str = "go";
/// Fewer batches are no visit, whatever the slice says.
const LEAST_BATCHES: u32 = 4;

/// A worker's job, as one line on its standard input, a socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) op: Op,
    pub(super) cpu: u32,
    pub(super) other_cpu: u32,
    pub(super) slice: Duration,
    /// Who asks: a worker does not outlive it.
    pub(super) parent: u32,
}

/// What a worker answers, as one line on the same socket: what it took, or why it could not be done.
pub(super) type Answer = Result<Taken, String>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Taken {
    /// Ticks per operation, batch by batch; disturbed batches are left out, here and in the counts.
    pub(super) ticks: Vec<f64>,
    /// Batches that were left out.
    pub(super) dropped: u64,
    /// Operations in the batches that were kept.
    pub(super) operations: u64,
    /// What was counted over them, by the names of the result.
    pub(super) counts: BTreeMap<String, u64>,
    /// What backs the memory, where that matters.
    pub(super) proof: Option<Reading<Proof>>,
}

/// A program that measures operations of the kernel calls this before anything else: if it was started as a worker, it
/// works, and ends with the code returned. A user who types the word has no socket there, and is no worker.
pub fn serve_if_asked() -> Option<ExitCode> {
    let asked = std::env::args_os().nth(1).is_some_and(|word| word == ASKED);
    let on_socket =
        || rustix::fs::fstat(std::io::stdin()).is_ok_and(|file| FileType::from_raw_mode(file.st_mode).is_socket());
    (asked && on_socket()).then(|| {
        if serve().is_some() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(2)
        }
    })
}

/// Does one job; `None` if the parent is gone.
fn serve() -> Option<()> {
    let line = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?);
    let mut told = BufReader::new(&line).lines();
    let job: Job = serde_json::from_str(&told.next()?.ok()?).ok()?;
    set_parent_process_death_signal(Some(Signal::KILL)).ok()?;
    // It may have ended before this worker was tied to it.
    if std::os::unix::process::parent_id() != job.parent {
        return None;
    }
    let answer: Answer = work(&job, || {
        writeln!(&line, "{READY}").ok()?;
        (told.next()?.ok()? == GO).then_some(())
    });
    writeln!(&line, "{}", serde_json::to_string(&answer).ok()?).ok()
}

fn work(job: &Job, others_ready: impl FnOnce() -> Option<()>) -> Result<Taken, String> {
    let _pinned = chase::thread::Pinned::to(Some(job.cpu)).map_err(|why| format!("cannot be pinned: {why}"))?;
    let mut timed = chase::kernelops::open(job.op, job.other_cpu).map_err(|why| why.to_string())?;
    let failed = |why: std::io::Error| format!("{}: {why}", job.op);
    // The first batch warms what it needs up and is not kept.
    timed.batch().map_err(failed)?;
    others_ready().ok_or("no parent said when to begin")?;
    let mut taken = take(timed.as_mut(), job).map_err(failed)?;
    taken.proof = timed.memory().map_err(failed)?.map(prove);
    Ok(taken)
}

fn take(timed: &mut dyn Timed, job: &Job) -> std::io::Result<Taken> {
    let mut taken = Taken::default();
    let mut counts = Counts::default();
    let end = Instant::now() + job.slice;
    let mut batches = 0;
    while batches < LEAST_BATCHES || Instant::now() < end {
        let batch = timed.batch()?;
        batches += 1;
        if job.op.is_alone() && batch.counts.preemptions > 0 {
            taken.dropped += 1;
            continue;
        }
        taken.ticks.push(batch.ticks as f64 / batch.operations as f64);
        taken.operations += batch.operations;
        counts.add(&batch.counts);
    }
    taken.counts = named(&counts);
    Ok(taken)
}

fn named(counts: &Counts) -> BTreeMap<String, u64> {
    let all = [
        ("faults", counts.faults),
        ("signals", counts.signals),
        ("children", counts.children),
        ("switches", counts.switches),
        ("preemptions", counts.preemptions),
        ("pages", counts.pages),
    ];
    all.map(|(name, count)| (name.to_owned(), count)).into()
}

fn prove(memory: std::ops::Range<usize>) -> Reading<Proof> {
    if memory.is_empty() {
        return Reading::Unread(Unread::new(Cause::Absent, "memory", "nothing was mapped"));
    }
    processes::own_range(memory.start, memory.len())
}
