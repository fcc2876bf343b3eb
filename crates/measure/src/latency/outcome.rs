//! From samples and proofs to the result: points with numbers or reasons, and warnings.

use std::time::Duration;

use model::latency::{Convergence, Point, Stopped};
use model::{Bytes, Estimate, NotMeasured, Warning};

use super::Error;
use super::arenas::Arenas;
use super::plan::Target;
use super::sampling::Samples;
use super::sweep::Sampled;
use crate::visits::bound_in;
use crate::warnings;

/// Above this share of dropped samples the machine was busy with something else.
const BUSY: f64 = 0.2;
/// Two visits to one point that differ by more than this on average were not under the same conditions.
const UNSTEADY: f64 = 0.1;

/// What the shifts gave so far.
#[derive(Default)]
pub(super) struct Outcome {
    points: Vec<Measured>,
    unlocked: Vec<String>,
    /// Why there are no hardware counters.
    pub(super) no_pmu: Option<String>,
    /// Rounds of the longest shift.
    pub(super) rounds: u32,
}

struct Measured {
    target: Target,
    samples: Samples,
    backed: model::latency::Backed,
    reason: Option<NotMeasured>,
}

impl Outcome {
    /// Takes in a shift. The backing is proved again here: pages may have been split or collapsed while they were timed.
    pub(super) fn add(
        &mut self,
        targets: &[Target],
        sampled: Sampled,
        arenas: &mut Arenas,
        no_pmu: Option<String>,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        for (&target, samples) in targets.iter().zip(sampled.samples) {
            // A proof of gigabytes takes its time.
            Error::if_stopped(stop)?;
            let Some(held) = arenas.of(target.kind) else { continue };
            let (backed, reason) = held.prove(target.bytes);
            let reason = reason.or_else(|| no_samples(&samples));
            self.points.push(Measured {
                target,
                samples,
                backed,
                reason,
            });
        }
        self.unlocked.extend(arenas.unlocked().iter().map(ToString::to_string));
        self.no_pmu = self.no_pmu.take().or(no_pmu);
        self.rounds = self.rounds.max(sampled.rounds);
        Ok(())
    }

    /// The core clock over all kept samples, in GHz.
    pub(super) fn core_ghz(&self, ticks_per_ns: f64) -> Option<Estimate> {
        let clocks = self.points.iter().flat_map(|point| &point.samples.clocks);
        let clocks: Vec<f64> = clocks.copied().collect();
        stats::estimate(&clocks).map(|clock| clock.scaled(ticks_per_ns))
    }

    /// The points as they are published.
    pub(super) fn points(&self, ticks_per_ns: f64, private_cache: Option<Bytes>) -> Vec<Point> {
        self.points
            .iter()
            .map(|point| point.publish(ticks_per_ns, private_cache))
            .collect()
    }

    /// What weakens the result.
    pub(super) fn warnings(&self, apart: bool, budget: Duration) -> Vec<Warning> {
        let points = self.points.len();
        let disagreements = self
            .points
            .iter()
            .map(|point| (point.name(), point.samples.disagreement()));
        let open = self.points.iter().filter(|point| point.samples.bound().is_some());
        let measured = || self.points.iter().filter(|point| point.samples.visits() > 0);
        let spent = measured().filter(|point| point.samples.stopped == Some(Stopped::Budget));
        [
            self.busy(),
            warnings::rounds_disagree(disagreements, points, UNSTEADY),
            warnings::not_converged(open.map(Measured::name), points),
            warnings::short_budget(spent.count(), measured().count(), 1, budget),
            self.swappable(),
            apart.then(kinds_apart),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn busy(&self) -> Option<Warning> {
        let dropped: u64 = self.points.iter().map(|point| point.samples.dropped.total()).sum();
        let kept: u64 = self.points.iter().map(|point| point.samples.clocks.len() as u64).sum();
        let share = dropped as f64 / (dropped + kept).max(1) as f64;
        (share > BUSY).then(|| {
            Warning::new("busy-machine", format!("{:.0} % of the samples were disturbed (switched out, or the core clock changed) and dropped; repeat on a quieter machine", share * 100.0))
        })
    }

    fn swappable(&self) -> Option<Warning> {
        (!self.unlocked.is_empty()).then(|| {
            Warning::new(
                "not-locked",
                format!(
                    "{} memory could not be locked (raise `ulimit -l`); if the machine swaps, numbers are wrong",
                    self.unlocked.join(", ")
                ),
            )
        })
    }
}

fn kinds_apart() -> Warning {
    Warning::new(
        "kinds-apart",
        "memory did not suffice for all page kinds at once; they were measured one after the other, so drift looks like a difference (choose a smaller --to)",
    )
}

fn no_samples(samples: &Samples) -> Option<NotMeasured> {
    let dropped = samples.dropped.total();
    match (samples.visits(), dropped) {
        (0, 0) => Some(NotMeasured::TooSmall),
        (0, _) => Some(NotMeasured::Disturbed {
            dropped,
            by_clock: true,
        }),
        _ => None,
    }
}

impl Measured {
    fn name(&self) -> String {
        format!("{} at {}", self.target.kind, self.target.bytes)
    }

    fn publish(&self, ticks_per_ns: f64, private_cache: Option<Bytes>) -> Point {
        let Target {
            kind,
            bytes,
            pattern,
            access,
        } = self.target;
        let samples = &self.samples;
        let bare = Point {
            not_measured: self.reason.as_ref().map(ToString::to_string),
            dropped: samples.dropped,
            ..Point::bare(kind, bytes, pattern, access, self.backed.clone())
        };
        if self.reason.is_some() {
            return bare;
        }
        let in_core = private_cache.is_some_and(|cache| bytes <= cache);
        Point {
            ns: samples.ticks().map(|ticks| ticks.scaled(1.0 / ticks_per_ns)),
            visits: samples.medians().iter().map(|ticks| ticks / ticks_per_ns).collect(),
            bound: samples.bound().map(|ticks| bound_in(ticks, ticks_per_ns)),
            convergence: samples.arrivals.convergence().map(|ticks| Convergence {
                warm_ns: ticks.warm_ns / ticks_per_ns,
                cold_ns: ticks.cold_ns / ticks_per_ns,
                ..ticks
            }),
            cycles: samples.cycles().filter(|_| in_core),
            quiet: samples.quiet(ticks_per_ns).filter(|_| in_core),
            stopped: samples.stopped,
            counters: samples.counters(),
            ..bare
        }
    }
}
