//! Memory that the kernel writes records of one CPU into. A ring for records of moves, which are few, is kept from program to program:
//! to map and free one takes the kernel longer than all else that recording a short program takes.

use std::cell::RefCell;
use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, Sampler};

/// Bytes of one CPU's records: what root may have, what `kernel.perf_event_mlock_kb` leaves to others as shipped, and what is left
/// beside other recordings of the same user.
const SIZES: [usize; 4] = [4 << 20, 512 << 10, 128 << 10, 32 << 10];

thread_local! {
    /// Those that no event writes into.
    static FREE: RefCell<Vec<Ring>> = const { RefCell::new(Vec::new()) };
}

/// The ring of a CPU, with the event that it was mapped for.
pub(super) struct Ring {
    pub(super) cpu: u32,
    pub(super) sampler: Sampler,
    size: usize,
}

impl Ring {
    /// The largest that this user may have, for an event of its own.
    pub(super) fn of(cpu: u32, open: impl Fn() -> io::Result<Counter>) -> io::Result<Self> {
        Self::mapped(cpu, &SIZES, open)
    }

    /// A kept one for events of moves on that CPU, or a new one. Its own event records nothing.
    pub(super) fn kept(cpu: u32) -> io::Result<Self> {
        let kept = FREE.with_borrow_mut(|free| {
            let place = free.iter().position(|ring| ring.cpu == cpu)?;
            Some(free.swap_remove(place))
        });
        let silent = || {
            let mut builder = Builder::new(Software::DUMMY);
            // The kernel lets only events of the same clock share a ring.
            builder.one_cpu(cpu as usize).clockid(Clock::MONOTONIC).build()
        };
        kept.map_or_else(|| Self::mapped(cpu, &SIZES[2..], silent), Ok)
    }

    /// Keeps it for the next program, once no event writes into it. What was not read is dropped.
    pub(super) fn keep(mut self) {
        while self.sampler.next_record().is_some() {}
        // At the end of the thread it is unmapped instead.
        let _ = FREE.try_with(|free| free.borrow_mut().push(self));
    }

    /// The share of it that so many bytes are; of a large one, of what others may have.
    pub(super) fn share(&self, bytes: usize) -> f64 {
        bytes as f64 / self.size.min(SIZES[1]) as f64
    }

    fn mapped(cpu: u32, sizes: &[usize], open: impl Fn() -> io::Result<Counter>) -> io::Result<Self> {
        let mut refused = io::Error::from_raw_os_error(libc::ENOMEM);
        for &size in sizes {
            match open()?.sampled(size) {
                Ok(sampler) => return Ok(Self { cpu, sampler, size }),
                Err(error) => refused = error,
            }
        }
        // The kernel answers EPERM to too much locked memory, as it does to an event that is not permitted at all.
        Err(match refused.raw_os_error() {
            Some(libc::EPERM) => io::Error::from_raw_os_error(libc::ENOMEM),
            _ => refused,
        })
    }
}

#[cfg(test)]
pub(super) fn kept() -> usize {
    FREE.with_borrow(Vec::len)
}

#[cfg(test)]
pub(super) fn take_all() {
    FREE.take();
}

/// Has rings for moves on these CPUs at hand, so that a program that starts next finds them.
pub fn prepare(cpus: &[u32]) {
    let rings: Vec<Ring> = cpus.iter().filter_map(|&cpu| Ring::kept(cpu).ok()).collect();
    rings.into_iter().for_each(Ring::keep);
}
