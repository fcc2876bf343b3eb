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
/// The same for each half of a fine reading: some 10,000 cycles, exact to 0.4 %.
const FINE_TURNS: u64 = 200;
/// A floating-point multiplication takes a whole number of cycles; farther off, the clock changed while it was found out.
const WHOLE: f64 = 0.05;
/// Stretches of both kinds by which that is found out: a millisecond.
const PAIRS: u32 = 200;

/// Measures how many core cycles pass per tick of the time stamp counter, right now.
#[derive(Clone, Copy, Debug)]
pub struct CoreClock {
    /// Ticks that pass between two readings of the counter with nothing in between.
    pub(crate) overhead: u64,
    /// Cycles of a floating-point multiplication: 3 to 5; `None` if that is unknown.
    float_cycles: Option<u64>,
}

impl CoreClock {
    /// Finds out what reading the counter costs.
    pub fn new() -> Self {
        let gap = || {
            let start = ticks();
            ticks() - start
        };
        let clock = Self {
            overhead: (0..1000).map(|_| gap()).min().unwrap_or(0),
            float_cycles: None,
        };
        Self {
            float_cycles: clock.float_cycles(),
            ..clock
        }
    }

    /// How many cycles a floating-point multiplication takes, by the shortest of many stretches of both kinds in turn: a
    /// burst of contention that slows all of one kind for that long looks like a slower CPU.
    fn float_cycles(&self) -> Option<u64> {
        let (mut integer, mut float) = (0.0_f64, u64::MAX);
        for _ in 0..PAIRS {
            integer = integer.max(self.over(FINE_TURNS));
            float = float.min(self.passed(|| kernel::multiply_float(FINE_TURNS)));
        }
        let cycles = integer * float as f64 / (FINE_TURNS * UNROLL) as f64;
        ((cycles - cycles.round()).abs() < WHOLE).then_some(cycles.round() as u64)
    }

    /// Core cycles per tick over the next two microseconds, within some 1 %.
    #[inline]
    pub fn cycles_per_tick(&self) -> f64 {
        self.over(TURNS)
    }

    /// The same over the next five, within some 0.4 %: the faster of two chains on different ports of the core, since an
    /// SMT sibling on it slows a chain whose ports it uses, and speeds up none.
    #[inline]
    pub fn fine_cycles_per_tick(&self) -> f64 {
        let float = self.float_cycles.map_or(0.0, |cycles| {
            let passed = self.passed(|| kernel::multiply_float(FINE_TURNS));
            (FINE_TURNS * UNROLL * cycles) as f64 / passed as f64
        });
        self.over(FINE_TURNS).max(float)
    }

    #[inline]
    fn over(&self, turns: u64) -> f64 {
        let passed = self.passed(|| {
            std::hint::black_box(kernel::multiply(turns));
        });
        (turns * UNROLL * MULTIPLY_CYCLES) as f64 / passed as f64
    }

    /// Ticks that a stretch takes, one at least.
    #[inline]
    fn passed(&self, stretch: impl FnOnce()) -> u64 {
        let start = ticks();
        stretch();
        (ticks() - start).saturating_sub(self.overhead).max(1)
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
        for read in [CoreClock::cycles_per_tick, CoreClock::fine_cycles_per_tick] {
            let fastest = (0..100).map(|_| read(&clock)).fold(0.0, f64::max);
            assert!((0.1..10.0).contains(&fastest), "{fastest}");
        }
    }

    #[test]
    fn a_floating_point_multiplication_takes_as_long_as_on_any_core_or_is_not_told() {
        // `uops.info`: 3 to 5 on every x86-64 core since 2008.
        let known = CoreClock::new().float_cycles;
        assert!(known.is_none_or(|cycles| (3..=5).contains(&cycles)), "{known:?}");
    }
}
