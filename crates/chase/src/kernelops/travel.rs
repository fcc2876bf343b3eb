//! nps and migrate: from one process to another, and from one CPU to another.

use std::io;
use std::os::fd::OwnedFd;

use rustix::thread::{CpuSet, sched_setaffinity};

use super::batch::{Batch, timed};
use super::timed::Timed;
use crate::child::Child;
use crate::thread::current_cpu;

/// Round trips in a batch: about 100 us.
const ROUND_TRIPS: u64 = 32;
/// Migrations in a batch; even, so that it ends where it began.
const MIGRATIONS: u64 = 8;

/// A byte there and back.
pub(super) struct PingPong {
    there: OwnedFd,
    back: OwnedFd,
    /// Ended when this goes.
    _partner: Child,
}

impl PingPong {
    /// The partner runs on that CPU, or where this process does.
    pub(super) fn open(cpu: Option<u32>) -> io::Result<Self> {
        let (partner_reads, there) = std::io::pipe()?;
        let (back, partner_writes) = std::io::pipe()?;
        let only = cpu.map(only);
        let partner = Child::running(|| {
            if let Some(only) = only {
                sched_setaffinity(None, &only)?;
            }
            loop {
                pass(&partner_reads, &partner_writes)?;
            }
        })?;
        Ok(Self {
            there: there.into(),
            back: back.into(),
            _partner: partner,
        })
    }
}

/// Reads a byte and passes it on.
fn pass(from: impl std::os::fd::AsFd, to: impl std::os::fd::AsFd) -> rustix::io::Result<()> {
    let mut byte = [0];
    match rustix::io::read(from, &mut byte)? {
        0 => Err(rustix::io::Errno::PIPE),
        _ => rustix::io::write(to, &byte).map(drop),
    }
}

impl Timed for PingPong {
    fn batch(&mut self) -> io::Result<Batch> {
        timed(ROUND_TRIPS, || {
            for _ in 0..ROUND_TRIPS {
                rustix::io::write(&self.there, &[1])?;
                if rustix::io::read(&self.back, &mut [0])? != 1 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        })
    }
}

/// There and back again.
pub(super) struct Migrate {
    cpus: [u32; 2],
}

impl Migrate {
    pub(super) fn open(other: u32) -> io::Result<Self> {
        let here = current_cpu();
        if here == other {
            return Err(io::Error::other("the other CPU is this one"));
        }
        Ok(Self { cpus: [other, here] })
    }
}

impl Timed for Migrate {
    fn batch(&mut self) -> io::Result<Batch> {
        let sets = self.cpus.map(only);
        timed(MIGRATIONS, || {
            for turn in 0..MIGRATIONS as usize {
                sched_setaffinity(None, &sets[turn % 2])?;
                if current_cpu() != self.cpus[turn % 2] {
                    return Err(io::Error::other("the kernel left the thread where it was"));
                }
            }
            Ok(())
        })
    }
}

fn only(cpu: u32) -> CpuSet {
    let mut set = CpuSet::new();
    set.set((cpu as usize).min(CpuSet::MAX_CPU - 1));
    set
}
