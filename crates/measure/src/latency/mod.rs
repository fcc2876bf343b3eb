//! Latency by working set and page kind: which points, in which order, until when, on proved memory.

mod arenas;
mod arrivals;
mod converge;
#[cfg(test)]
mod lap_tests;
mod outcome;
pub mod paired;
mod plan;
mod sampling;
#[cfg(test)]
mod simulated_tests;
mod spec;
mod sweep;
#[cfg(test)]
mod sweep_tests;
mod visit;

use std::time::{Duration, Instant};

use model::latency::Latency;
use model::{Bytes, PageKind, Warning};

pub use plan::sizes;
pub use spec::Spec;

use crate::Error;
use arenas::Arenas;
use model::{Progress, time_left};
use outcome::Outcome;
use plan::Target;
use sweep::Sweep;
use visit::{Caches, Live};

/// Memory that is taken beside working sets: what clears the last-level cache before a cold approach.
pub fn clearing(spec: &Spec) -> Bytes {
    Caches::of(spec).clearing()
}

/// Time to sample each unit of weight of the points if no budget is given: a curve of 35 points of one kind aims at 10 s;
/// warm-ups can exceed that. A point has the same time alone and among others, however long set-up takes.
const TIME_PER_WEIGHT: Duration = Duration::from_millis(37);
/// The least time that is taken if no budget is given: small working sets converge at once, but their visits are to be spread.
const LEAST_BUDGET: Duration = Duration::from_secs(1);

/// Measures all points of the spec. Points whose backing was not obtained come back without a number and with the reason.
///
/// # Errors
/// [`Error`]; everything is released in each case.
pub fn run(
    spec: &Spec,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<(Latency, Vec<Warning>), Error> {
    let begun = Instant::now();
    let points = plan::points(spec);
    if points.is_empty() {
        return Err(Error::Spec("give at least one page kind, size and pattern".to_owned()));
    }
    let usual = LEAST_BUDGET.max(TIME_PER_WEIGHT.mul_f64(points.iter().map(Target::weight).sum()));
    let budget = spec.budget.unwrap_or(usual);
    let pinned = chase::thread::Pinned::to(spec.cpu).map_err(Error::Pin)?;
    let calibration = chase::clock::Calibration::start();
    must_have_room(spec)?;
    let shifts = plan::shifts(spec);
    let job = Job {
        spec,
        points,
        budget,
        pinned,
        begun,
        shifts: shifts.len(),
    };
    let mut outcome = Outcome::default();
    for (done, kinds) in shifts.iter().enumerate() {
        job.shift(done, kinds, &mut outcome, progress, stop)?;
    }
    let mut warnings = outcome.warnings(shifts.len() > 1, budget);
    warnings.sort();
    let ticks_per_ns = calibration.ticks_per_ns();
    let latency = Latency {
        points: outcome.points(ticks_per_ns, spec.private_cache),
        no_pmu: outcome.no_pmu.clone(),
        tsc_ghz: ticks_per_ns,
        core_ghz: outcome.core_ghz(ticks_per_ns),
        cpu: job.pinned.cpu,
        rounds: outcome.rounds,
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok((latency, warnings))
}

/// The largest working set goes beside what clears the caches. A fifth of memory is left for everyone else, or the machine would begin
/// to reclaim and swap while it is timed.
fn must_have_room(spec: &Spec) -> Result<(), Error> {
    let own = spec.kinds.iter().map(|kind| plan::own(spec, *kind).0).max();
    let needed = Bytes(clearing(spec).0 + own.unwrap_or(0));
    let available = Bytes(spec.available.0 / 5 * 4);
    if needed > available {
        return Err(Error::Spec(format!(
            "working sets, and what clears the last-level cache between them, take {needed} of memory, and {available} may be taken without harm; choose smaller working sets (--to)"
        )));
    }
    Ok(())
}

/// A measurement under way, in shifts: the kinds that are measured together.
struct Job<'a> {
    spec: &'a Spec,
    points: Vec<Target>,
    budget: Duration,
    pinned: chase::thread::Pinned,
    begun: Instant,
    shifts: usize,
}

impl Job<'_> {
    /// Takes memory for these kinds and samples their points.
    fn shift(
        &self,
        done: usize,
        kinds: &[PageKind],
        outcome: &mut Outcome,
        progress: &mut dyn Progress,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let mut arenas = self.take(done, kinds, progress, stop)?;
        let mine = self.points.iter().filter(|point| kinds.contains(&point.kind));
        let mine: Vec<Target> = mine.copied().collect();
        let mut live = Live::new(&mut arenas, &mine, self.spec, stop);
        let end = self.budget.mul_f64((done + 1) as f64 / self.shifts as f64);
        let sweep = Sweep {
            points: &mine,
            budget: match self.spec.budget {
                Some(_) => end.saturating_sub(self.begun.elapsed()).max(self.least()),
                None => self.least(),
            },
            seed: self.spec.seed,
        };
        let sampled = sweep.run(&mut live, progress, stop)?;
        let no_pmu = live.no_pmu();
        outcome.add(&mine, sampled, &mut arenas, no_pmu, stop)
    }

    /// However long set-up takes, a third of the time that was given goes to sampling, and all of it if none was given.
    fn least(&self) -> Duration {
        self.budget / self.shifts as u32 / if self.spec.budget.is_some() { 3 } else { 1 }
    }

    fn take(
        &self,
        done: usize,
        kinds: &[PageKind],
        progress: &mut dyn Progress,
        stop: &dyn Fn() -> bool,
    ) -> Result<Arenas, Error> {
        let largest = self.spec.sizes.iter().copied().max().unwrap_or_default();
        let whole = Bytes(largest.0.saturating_mul(kinds.len() as u64));
        let taking = Instant::now();
        let arenas = Arenas::take(self.spec, kinds, &self.pinned, &mut |taken| {
            let share = taken.0 as f64 / whole.0.max(1) as f64;
            let left = time_left(taking.elapsed(), share) + self.least();
            let left = left.max(self.budget.saturating_sub(self.begun.elapsed()));
            let what = format!("taking memory: {taken} of {whole}");
            progress.step(done as f64 / self.shifts as f64, left, &what);
            !stop()
        });
        Error::if_stopped(stop).map(|()| arenas)
    }
}
