//! One timed block: a stretch of a chase, with what could have disturbed it.

use model::latency::Access;

use crate::clock::{CoreClock, ticks};
use crate::kernel::UNROLL;
use crate::ring::{Rings, Slot};
use crate::thread;

/// What one timed stretch gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Ticks of the time stamp counter per step.
    pub ticks: f64,
    /// Core cycles per tick just before and just after.
    pub clock: [f64; 2],
    /// The thread was switched out involuntarily during the block.
    pub switched: bool,
    /// It ended on another CPU than it began.
    pub migrated: bool,
}

/// A core clock that differs by more than this share between the two ends of a block has changed in between.
const CLOCK_CHANGE: f64 = 0.01;

/// Steps that are walked before those that are timed, as a share of them: the calls and clock readings between two blocks took
/// lines out of L1, and a ring that fills it exactly would show that.
const RUN_UP: u64 = 16;

/// Steps of the run-up; none where blocks are so short that the ring lies in memory anyway.
fn run_up(steps: u64) -> Option<u64> {
    let steps = steps / RUN_UP / UNROLL * UNROLL;
    (steps > 0).then_some(steps)
}

impl Block {
    /// Times `steps` (a multiple of [`crate::kernel::UNROLL`]) along the ring in that slot.
    pub fn time(rings: &mut Rings, slot: Slot, access: Access, steps: u64, clock: &CoreClock) -> Self {
        let switches = thread::involuntary_switches();
        let cpu = thread::current_cpu();
        let run_up = run_up(steps);
        // A ring in memory is reported in ns; the longer a reading takes, the more of its cache lines others take away.
        let read = || match run_up {
            Some(_) => clock.fine_cycles_per_tick(),
            None => clock.cycles_per_tick(),
        };
        let before = read();
        if let Some(steps) = run_up {
            rings.walk(slot, access, steps);
        }
        let start = ticks();
        rings.walk(slot, access, steps);
        let passed = (ticks() - start).saturating_sub(clock.overhead);
        let after = read();
        Self {
            ticks: passed as f64 / steps as f64,
            clock: [before, after],
            switched: thread::involuntary_switches() != switches,
            migrated: thread::current_cpu() != cpu,
        }
    }

    /// Did the core clock change during the block?
    pub fn clock_changed(&self) -> bool {
        let [before, after] = self.clock;
        (before - after).abs() > CLOCK_CHANGE * before.max(after)
    }

    /// Is it of no use: switched out, migrated, or under a core clock that changed?
    pub fn is_disturbed(&self) -> bool {
        self.switched || self.migrated || self.clock_changed()
    }

    /// Core cycles per tick, the mean of both ends.
    pub fn clock(&self) -> f64 {
        (self.clock[0] + self.clock[1]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, run_up};

    #[test]
    fn short_blocks_have_no_run_up() {
        assert_eq!([100, 255, 256, 10_000].map(run_up), [None, None, Some(16), Some(624)]);
    }

    #[test]
    fn a_changed_clock_is_noticed() {
        let block = Block {
            ticks: 2.0,
            clock: [1.5, 1.49],
            switched: false,
            migrated: false,
        };
        assert!(!block.clock_changed());
        assert!((block.clock() - 1.495).abs() < 1e-9);
        assert!(
            Block {
                clock: [1.5, 1.4],
                ..block
            }
            .clock_changed()
        );
    }
}
