//! Memory that the kernel writes records of one CPU into. One ring for each CPU is kept for records of moves, which are few, from program to
//! program: to map and free one took the kernel some 25 us, against 2 us for an event that writes into one that is there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, Sampler};

/// Bytes of one CPU's records: what root may have, what `kernel.perf_event_mlock_kb` leaves to others as shipped, and what is left
/// beside other recordings of the same user.
const SIZES: [usize; 4] = [4 << 20, 512 << 10, 128 << 10, 32 << 10];

thread_local! {
    /// Kept rings that no event writes into.
    static FREE: RefCell<Vec<Ring>> = const { RefCell::new(Vec::new()) };
    /// CPUs of which one is kept. There is no second: a program beside the first maps its own, which takes no descriptor more.
    static KEPT: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
}

/// The ring of a CPU, with the event that it was mapped for.
pub(super) struct Ring {
    pub(super) cpu: u32,
    pub(super) sampler: Sampler,
    /// Its own event records nothing, and others write into it.
    pub(super) is_kept: bool,
    size: usize,
}

impl Ring {
    /// The largest that this user may have, for an event of its own.
    pub(super) fn large(cpu: u32, open: impl Fn() -> io::Result<Counter>) -> io::Result<Self> {
        Self::mapped(cpu, &SIZES, open)
    }

    /// One for moves: the kept one of that CPU, if it is free, or one for an event of its own.
    pub(super) fn small(cpu: u32, open: impl Fn() -> io::Result<Counter>) -> io::Result<Self> {
        let kept = FREE.with_borrow_mut(|free| {
            let place = free.iter().position(|ring| ring.cpu == cpu)?;
            Some(free.swap_remove(place))
        });
        kept.map_or_else(|| Self::mapped(cpu, &SIZES[2..], open), Ok)
    }

    /// A new one to be kept. The kernel lets only events of the same clock share a ring, and rewrites its own code whenever the first
    /// event of moves is opened or the last one closed: its own is one that records nothing, so that neither happens.
    fn silent(cpu: u32) -> io::Result<Self> {
        let open = || {
            let mut builder = Builder::new(Software::CPU_MIGRATIONS);
            builder.one_cpu(cpu as usize).clockid(Clock::MONOTONIC).build()
        };
        let ring = Self::mapped(cpu, &SIZES[2..], open)?;
        Ok(Self { is_kept: true, ..ring })
    }

    /// Gives a kept one back, once no event writes into it. What was not read is dropped.
    pub(super) fn give_back(mut self) {
        if self.is_kept {
            while self.sampler.next_record().is_some() {}
            // At the end of the thread it is unmapped instead.
            let _ = FREE.try_with(|free| free.borrow_mut().push(self));
        }
    }

    /// The share of it that so many bytes are; of a large one, of what others may have.
    pub(super) fn share(&self, bytes: usize) -> f64 {
        bytes as f64 / self.size.min(SIZES[1]) as f64
    }

    fn mapped(cpu: u32, sizes: &[usize], open: impl Fn() -> io::Result<Counter>) -> io::Result<Self> {
        let mut refused = io::Error::from_raw_os_error(libc::ENOMEM);
        for &size in sizes {
            match open()?.sampled(size) {
                Ok(sampler) => {
                    return Ok(Self {
                        cpu,
                        sampler,
                        is_kept: false,
                        size,
                    });
                }
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

/// Has a ring for moves on each of these CPUs at hand, for the program that starts next.
pub fn prepare(cpus: &[u32]) {
    let new = KEPT.with_borrow_mut(|kept| cpus.iter().copied().filter(|&cpu| kept.insert(cpu)).collect::<Vec<_>>());
    let rings = new.into_iter().filter_map(|cpu| Ring::silent(cpu).ok());
    rings.for_each(Ring::give_back);
}

/// How many kept ones are free.
#[cfg(test)]
pub(super) fn free() -> usize {
    FREE.with_borrow(Vec::len)
}
