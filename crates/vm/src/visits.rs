//! Visits of guest pages in turn, timed in core cycles inside the guest: translation probes where we own the page tables.

use std::time::Duration;

use chase::kernel::{MULTIPLY_CYCLES, UNROLL, multiply_bytes};
use chase::tlbwalk::ring_bytes;
use model::guest::GuestPage;

use crate::guest::{Config, Guest, Job, Kernel, Window};
use crate::stats::Stats;
use crate::{Error, Hypervisor, Memory, Ring, payload};

/// A word of the lent memory that takes part in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The guest-virtual address it is visited at.
    pub virt: u64,
    /// Where it is: bytes from the start of the lent memory, a multiple of 8.
    pub offset: u64,
}

/// Steps in a timed block at least, as natively.
const FEWEST_STEPS: u64 = 512;
/// Steps in all timed blocks of one ring: some 100 us.
const STEPS: u64 = 12_000;
/// Blocks that only warm up: entering a guest may have cost it its TLB, and its caches in part.
const WARM: u64 = 3;
/// Turns of the multiplication loop in one reading of the core clock.
const TURNS: u64 = 100;
/// Readings of the core clock in one entry; the least counts.
const READINGS: u64 = 3;
/// A core clock that differs by more than this share between the two ends of a timing has changed in between.
const CLOCK_CHANGE: f64 = 0.01;
/// Beyond this nothing sensible is going on.
const DEADLINE: Duration = Duration::from_secs(60);

/// A guest over lent memory with windows into it, and the loops that time visits.
pub struct Visits<'m> {
    guest: Guest<'m>,
    memory: Memory<'m>,
    ring: Kernel,
    multiply: Kernel,
    overhead: u64,
}

impl<'m> Visits<'m> {
    /// A guest that sees `memory` through `windows` (and at its host addresses through small pages).
    pub fn new(hypervisor: &Hypervisor, memory: Memory<'m>, windows: &'m [Window]) -> Result<Self, Error> {
        let mut guest = Guest::new(
            hypervisor,
            &Config {
                memory: Some(memory),
                page: GuestPage::Size4K,
                levels: hypervisor.levels(),
                fresh: 0,
                tables: None,
                windows,
            },
        )?;
        let idle = guest.load(payload::idle())?;
        let mut visits = Self {
            ring: guest.load(ring_bytes())?,
            multiply: guest.load(multiply_bytes())?,
            overhead: 0,
            guest,
            memory,
        };
        visits.overhead = visits.least(idle, 0, 1, 1000, 0)?;
        Ok(visits)
    }

    /// The least ticks of `blocks` blocks of so many turns, after some that do not count.
    fn least(&mut self, kernel: Kernel, start: u64, turns: u64, blocks: u64, warm: u64) -> Result<u64, Error> {
        let done = self.guest.run(&Job {
            kernel,
            ring: Ring::User,
            start,
            turns,
            blocks: warm + blocks,
            deadline: DEADLINE,
        })?;
        let counted = done.ticks.iter().skip(warm as usize);
        Ok(counted.min().copied().unwrap_or(0).saturating_sub(self.overhead))
    }

    /// Core cycles per tick, right now, inside the guest.
    fn cycles_per_tick(&mut self) -> Result<f64, Error> {
        let ticks = self.least(self.multiply, 3, TURNS, READINGS, 1)?;
        Ok((TURNS * UNROLL * MULTIPLY_CYCLES) as f64 / ticks.max(1) as f64)
    }

    /// Links the nodes, all different, into a ring in this order, and gives the core cycles of a step in the least
    /// disturbed of some blocks of whole laps; `None` if there is no node or the core clock changed meanwhile.
    pub fn cycles(&mut self, nodes: &[Node]) -> Result<Option<f64>, Error> {
        let Some(first) = nodes.first() else { return Ok(None) };
        for (here, next) in nodes.iter().zip(nodes.iter().cycle().skip(1)) {
            self.memory.store_at(here.offset, next.virt);
        }
        let steps = nodes.len() as u64;
        let laps = FEWEST_STEPS.div_ceil(steps);
        let blocks = (STEPS / (laps * steps)).clamp(2, 16);
        let before = self.cycles_per_tick()?;
        let ticks = self.least(self.ring, first.virt, laps * steps, blocks, WARM)?;
        let after = self.cycles_per_tick()?;
        let steady = (before - after).abs() <= CLOCK_CHANGE * before.max(after);
        Ok(steady.then(|| ticks as f64 / (laps * steps) as f64 * (before + after) / 2.0))
    }

    /// What the hypervisor has counted so far.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.guest.stats()
    }
}
