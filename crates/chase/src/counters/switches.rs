//! Context switches of a task and of all that descends from it, as records that the kernel writes per CPU. They need no privilege at
//! `perf_event_paranoid` up to 2, as the event counts nothing and leaves out the kernel.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag};
use rustix::time::{ClockId, clock_gettime};

use super::rings::Ring;
use super::{double, word};
use crate::syscall::checked;
use crate::thread::cpu_time;

/// `PERF_EVENT_IOC_SET_OUTPUT` of `linux/perf_event.h`: `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// `PERF_RECORD_*` of `linux/perf_event.h`.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const SWITCH: u32 = 14;
/// `PERF_RECORD_MISC_*`, whose meaning depends on the record.
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// What ends every record: process and thread, time, as asked for by the flags of [`builder`]. The CPU is that of the ring.
const TAIL: usize = 16;

/// One thing that a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, on the clock of [`now`].
    pub at: u64,
    pub cpu: u32,
    pub pid: u32,
    pub tid: u32,
    pub what: What,
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It got the CPU.
    In,
    /// It left the CPU.
    Out {
        /// Could it have gone on?
        preempted: bool,
    },
    Fork,
    /// It got a CPU that is not the one that it had before; of recorders of moves only.
    Moved,
    Exit,
    Name(String),
    /// So many records of this CPU before this one found no room.
    Lost(u64),
    /// Moves came faster than `kernel.perf_event_max_sample_rate`, and some that follow are not recorded.
    Throttled,
}

/// Nanoseconds of CLOCK_MONOTONIC, which the records carry.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// What of a task is recorded beside its start, name and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    Switches,
    /// The first switch on each CPU that it moves to. The kernel's own part has to be permitted.
    Moves,
}

/// What the events of some tasks came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Nanoseconds of their time on each CPU; those without are left out.
    pub cpu: BTreeMap<u32, u64>,
    /// Their moves, if those are recorded.
    pub moves: Option<u64>,
    /// Records that found no room.
    pub lost: u64,
}

/// The records of some tasks.
pub struct Switches {
    what: Recorded,
    rings: Vec<Ring>,
    /// Events that write into those rings beside the rings' own, and of which CPU.
    others: Vec<(u32, Counter)>,
    /// From when on every switch of the tasks is recorded. A task whose first record since is that it left a CPU had it all the time.
    pub began: u64,
    /// The CPU time of the thread that made this, until then. Opening the first event takes a millisecond of it.
    pub used_before: Duration,
    reported_lost: u64,
}

impl Switches {
    /// Records a task, 0 for the calling one, on these CPUs, and all that it starts from here on.
    ///
    /// # Errors
    /// The kernel's: not permitted, no free descriptor, or ENOMEM if this user may lock no more memory.
    pub fn of(tid: i32, cpus: &[u32], what: Recorded) -> io::Result<Self> {
        let mut switches = Self::opened(cpus, what, |cpu| builder(tid, cpu, what))?;
        let rings = switches.rings.iter_mut().filter(|ring| !ring.is_kept);
        let events = rings.map(|ring| &mut *ring.sampler);
        for event in events.chain(switches.others.iter_mut().map(|(_, event)| event)) {
            event.enable()?;
        }
        (switches.began, switches.used_before) = (now(), cpu_time());
        Ok(switches)
    }

    /// Records the moves of the calling task, and of all that it starts, from when it executes a program.
    ///
    /// # Errors
    /// As of [`Switches::of`].
    pub fn moves_from_exec(cpus: &[u32]) -> io::Result<Self> {
        let event = |cpu| {
            let mut builder = builder(0, cpu, Recorded::Moves);
            builder.enable_on_exec(true);
            builder
        };
        Self::opened(cpus, Recorded::Moves, event)
    }

    /// With an event for each CPU, none of them enabled.
    fn opened(cpus: &[u32], what: Recorded, event: impl Fn(u32) -> Builder<'static>) -> io::Result<Self> {
        let ring = |&cpu: &u32| {
            let open = || event(cpu).build();
            match what {
                Recorded::Switches => Ring::large(cpu, open),
                Recorded::Moves => Ring::small(cpu, open),
            }
        };
        let rings = cpus.iter().map(ring).collect::<io::Result<Vec<_>>>()?;
        let kept = rings.iter().filter(|ring| ring.is_kept);
        let others = kept.map(|ring| writer(ring, &event(ring.cpu)));
        Ok(Self {
            what,
            others: others.collect::<io::Result<_>>()?,
            rings,
            began: now(),
            used_before: cpu_time(),
            reported_lost: 0,
        })
    }

    /// Records another task, and all that it starts from here on.
    ///
    /// # Errors
    /// As of [`Switches::of`]; a task that has ended is no error.
    pub fn add(&mut self, tid: i32) -> io::Result<()> {
        for ring in &self.rings {
            match writer(ring, &builder(tid, ring.cpu, self.what)) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
                added => {
                    let (cpu, mut event) = added?;
                    event.enable()?;
                    self.others.push((cpu, event));
                }
            }
        }
        self.began = now();
        Ok(())
    }

    /// Takes what was recorded since the last call: in order for each CPU, not between CPUs. Gives the share of a ring that was
    /// full, of the fullest one.
    pub fn drain(&mut self, records: &mut Vec<Record>) -> f64 {
        let (mut fullest, before) = (0.0_f64, records.len());
        for ring in &mut self.rings {
            let mut bytes = 0;
            while let Some(record) = ring.sampler.next_record() {
                bytes += record.len() + 8;
                records.extend(parse(record.ty(), record.misc(), &record.to_contiguous(), ring.cpu));
            }
            fullest = fullest.max(ring.share(bytes));
        }
        self.reported_lost += records[before..].iter().map(Record::lost).sum::<u64>();
        fullest
    }

    /// How many records found no room so far. The kernel reports those after the last record only since Linux 6.0.
    pub fn lost(&mut self) -> u64 {
        self.totals().lost
    }

    /// What the events came to so far. An event of one CPU runs when its task does, so that its time is the task's on that CPU.
    pub fn totals(&mut self) -> Totals {
        let rings = self.rings.iter_mut().filter(|ring| !ring.is_kept);
        let own = rings.map(|ring| (ring.cpu, &mut *ring.sampler));
        let others = self.others.iter_mut().map(|(cpu, event)| (*cpu, event));
        let mut totals = Totals::default();
        for (cpu, event) in own.chain(others) {
            let Ok(read) = event.read_full() else { continue };
            totals.lost += read.lost().unwrap_or(0);
            if self.what == Recorded::Moves {
                *totals.moves.get_or_insert(0) += read.count();
            }
            let time = read.time_running().unwrap_or_default();
            if !time.is_zero() {
                *totals.cpu.entry(cpu).or_default() += time.as_nanos() as u64;
            }
        }
        totals.lost = totals.lost.max(self.reported_lost);
        totals
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        // Nothing writes into the rings from here on.
        self.others.clear();
        self.rings.drain(..).for_each(Ring::give_back);
    }
}

impl Record {
    fn lost(&self) -> u64 {
        match self.what {
            What::Lost(count) => count,
            _ => 0,
        }
    }
}

/// A task's event that writes into a ring that is there.
fn writer(ring: &Ring, event: &Builder<'_>) -> io::Result<(u32, Counter)> {
    let counter = event.build()?;
    // SAFETY: both descriptors are open, and the call takes no pointer.
    checked(unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, ring.sampler.as_raw_fd()) }.into())?;
    Ok((ring.cpu, counter))
}

/// An event that records on one CPU. The flags order what ends each record.
fn builder(tid: i32, cpu: u32, what: Recorded) -> Builder<'static> {
    let mut builder = match what {
        // It counts nothing.
        Recorded::Switches => Builder::new(Software::DUMMY),
        Recorded::Moves => Builder::new(Software::CPU_MIGRATIONS),
    };
    match what {
        Recorded::Switches => builder.context_switch(true),
        Recorded::Moves => builder.sample_period(1).include_kernel(),
    };
    builder
        .observe_pid(tid)
        .one_cpu(cpu as usize)
        .inherit(true)
        .task(true)
        .comm(true)
        .sample_id_all(true)
        .sample(SampleFlag::TID | SampleFlag::TIME)
        .read_format(ReadFormat::LOST | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
        .clockid(Clock::MONOTONIC);
    builder
}

/// A record of a CPU without its header; `None` of a kind that was not asked for, or that is too short.
fn parse(kind: u32, misc: u16, bytes: &[u8], cpu: u32) -> Option<Record> {
    let body = bytes.len().checked_sub(TAIL)?;
    let tail = |at| word(bytes, body + at);
    let what = match kind {
        SWITCH if misc & SWITCH_OUT == 0 => What::In,
        SWITCH => What::Out {
            preempted: misc & SWITCH_OUT_PREEMPT != 0,
        },
        SAMPLE => What::Moved,
        THROTTLE => What::Throttled,
        FORK => What::Fork,
        EXIT => What::Exit,
        COMM => What::Name(text(bytes.get(8..body)?)),
        LOST => What::Lost(double(bytes, 8)?),
        _ => return None,
    };
    // A fork is recorded by the parent, so that its tail is not about the new thread.
    let [pid, tid] = match what {
        What::Fork | What::Exit => [word(bytes, 0)?, word(bytes, 8)?],
        _ => [tail(0)?, tail(4)?],
    };
    Some(Record {
        at: double(bytes, body + 8)?,
        cpu,
        pid,
        tid,
        what,
    })
}

/// Up to the first zero.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
#[path = "switches_tests.rs"]
mod tests;
