//! nps and migrate: from one process to another, and from one CPU to another.

use std::io;

use super::batch::{Batch, timed};
use crate::child::Child;
use crate::thread::{current_cpu, stay_on};

/// Round trips in a batch: about 100 us.
const ROUND_TRIPS: u64 = 32;
/// Migrations in a batch; even, so that it ends where it began.
const MIGRATIONS: u64 = 8;

/// A byte there and back: the partner runs on that CPU, or where this process does.
pub(super) fn ping_pong(cpu: Option<u32>) -> io::Result<impl FnMut() -> io::Result<Batch>> {
    let (partner_reads, there) = std::io::pipe()?;
    let (back, partner_writes) = std::io::pipe()?;
    let partner = Child::running(|| {
        if let Some(cpu) = cpu {
            stay_on(cpu)?;
        }
        loop {
            pass(&partner_reads, &partner_writes)?;
        }
    })?;
    Ok(move || {
        // It is ended when this goes.
        let _ = &partner;
        timed(ROUND_TRIPS, || {
            for _ in 0..ROUND_TRIPS {
                rustix::io::write(&there, &[1])?;
                if rustix::io::read(&back, &mut [0])? != 1 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        })
    })
}

/// Reads a byte and passes it on.
fn pass(from: impl std::os::fd::AsFd, to: impl std::os::fd::AsFd) -> rustix::io::Result<()> {
    let mut byte = [0];
    match rustix::io::read(from, &mut byte)? {
        0 => Err(rustix::io::Errno::PIPE),
        _ => rustix::io::write(to, &byte).map(drop),
    }
}

/// There and back again.
pub(super) fn migrate(other: u32) -> io::Result<impl FnMut() -> io::Result<Batch>> {
    let cpus = [other, current_cpu()];
    if cpus[0] == cpus[1] {
        return Err(io::Error::other("the other CPU is this one"));
    }
    Ok(move || {
        timed(MIGRATIONS, || {
            for turn in 0..MIGRATIONS as usize {
                let cpu = cpus[turn % 2];
                stay_on(cpu)?;
                if current_cpu() != cpu {
                    return Err(io::Error::other("the kernel left the thread where it was"));
                }
            }
            Ok(())
        })
    })
}
