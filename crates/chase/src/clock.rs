//! Two clocks: the time stamp counter for nanoseconds, and a chain of multiplications for core cycles.

use std::time::Instant;

use crate::kernel::{self, MULTIPLY_CYCLES, UNROLL};

/// The time stamp counter, read after everything before it is done and before anything after it begins.
#[inline]
pub fn ticks() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 CPU has both instructions; where an operating system forbids RDTSC nothing could be timed.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// The time stamp counter held against the system's monotonic clock since some start.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    ticks: u64,
    instant: Instant,
}

impl Calibration {
    /// Begins now.
    pub fn start() -> Self {
        // The closest of a few pairs: an interrupt between the two readings would shift the whole calibration.
        let pair = || {
            let before = ticks();
            let instant = Instant::now();
            (ticks() - before, Self { ticks: before, instant })
        };
        (0..16)
            .map(|_| pair())
            .min_by_key(|(gap, _)| *gap)
            .map_or_else(|| pair().1, |(_, pair)| pair)
    }

    /// Ticks per nanosecond from the start until now; waits until 10 ms have passed, below which it would be coarse.
    pub fn ticks_per_ns(&self) -> f64 {
        while self.instant.elapsed().as_millis() < 10 {
            std::hint::spin_loop();
        }
        let now = Self::start();
        (now.ticks - self.ticks) as f64 / (now.instant - self.instant).as_nanos() as f64
    }
}

/// Turns of the multiplication loop in one quick reading of the core clock: some 5,000 cycles, so that reading the counter
/// costs under 1 % of it and is subtracted. The counter of some CPUs goes on by 20 to 40 ticks at once, 1 % of such a reading.
const TURNS: u64 = 100;
/// The same in a fine reading: some 15,000 cycles, told to 0.3 %.
const FINE_TURNS: u64 = 300;

/// Measures how many core cycles pass per tick of the time stamp counter, right now.
#[derive(Clone, Copy, Debug)]
pub struct CoreClock {
    overhead: u64,
}

impl CoreClock {
    /// Finds out what reading the counter costs.
    pub fn new() -> Self {
        let gap = || {
            let start = ticks();
            ticks() - start
        };
        Self {
            overhead: (0..1000).map(|_| gap()).min().unwrap_or(0),
        }
    }

    /// Ticks that pass between two readings of the counter with nothing in between.
    pub fn overhead(&self) -> u64 {
        self.overhead
    }

    /// Core cycles per tick over the next two microseconds, within some 1 %.
    #[inline]
    pub fn cycles_per_tick(&self) -> f64 {
        self.over(TURNS)
    }

    /// The same over the next five microseconds, within some 0.3 %.
    #[inline]
    pub fn fine_cycles_per_tick(&self) -> f64 {
        self.over(FINE_TURNS)
    }

    #[inline]
    fn over(&self, turns: u64) -> f64 {
        let start = ticks();
        std::hint::black_box(kernel::multiply(turns));
        let passed = (ticks() - start).saturating_sub(self.overhead).max(1);
        (turns * UNROLL * MULTIPLY_CYCLES) as f64 / passed as f64
    }
}

impl Default for CoreClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{Calibration, CoreClock, ticks};

    #[test]
    fn the_counter_runs_at_a_believable_rate_and_forward() {
        let calibration = Calibration::start();
        let before = ticks();
        let rate = calibration.ticks_per_ns();
        assert!(ticks() > before);
        assert!((0.1..10.0).contains(&rate), "{rate} GHz");
    }

    #[test]
    fn the_core_clock_is_of_the_order_of_the_counter() {
        let clock = CoreClock::new();
        let fastest = (0..100).map(|_| clock.cycles_per_tick()).fold(0.0, f64::max);
        assert!((0.1..10.0).contains(&fastest), "{fastest}");
    }
}
