//! What was sampled at one point so far, and whether it is enough. Pure.

use std::time::Duration;

use chase::block::Block;
use chase::counters::Counts;
use model::Estimate;
use model::latency::{Bound, Convergence, Counters, Dropped, Quiet, Stopped};

use super::converge::{Approach, Arrival, CLOSE, Meeting, tail};

/// A warm-up that is so many times as long as fills the caches, and still too short, will not do at any length.
const MOST_BOOST: u32 = 8;
/// Visits without a single undisturbed block, after which a point is given up.
const MOST_EMPTY: u32 = 6;

/// This share of the samples, the shortest ones, is taken to be undisturbed.
const QUIET: f64 = 0.005;
/// Samples within this share of the quiet ones count as quiet, too.
const AS_QUIET: f64 = 0.03;

/// Blocks before and after one whose clock readings tell its clock, too: a core clock holds for longer than the millisecond
/// or two that these take.
const NEARBY: usize = 20;
/// The clock of a block is this quantile of them, or its own reading if that is faster. A neighbour can slow the multiplications
/// of a reading down but not hurry them, and a block beside a slowed reading would look shorter than any step can be.
const FASTEST: f64 = 0.9;

/// What one visit to a point gave.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) approach: Approach,
    /// All blocks, from the first step on.
    pub(super) blocks: Vec<Block>,
    /// Time walked.
    pub(super) walked: Duration,
    /// The same in laps of the ring; endless where no cache keeps a line from lap to lap.
    pub(super) laps: f64,
    /// A counted stretch and its steps, where there is a PMU.
    pub(super) counted: Option<(Counts, u64)>,
}

/// The part of a visit that is kept: the undisturbed blocks of its tail.
#[derive(Clone, Debug)]
struct Kept {
    approach: Approach,
    walked: Duration,
    laps: f64,
    arrival: Arrival,
    ticks: Vec<f64>,
    cycles: Vec<f64>,
}

/// All samples of one point.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    visits: Vec<Kept>,
    clocks: Vec<f64>,
    dropped: Dropped,
    counts: Counts,
    counted_steps: u64,
    stopped: Option<Stopped>,
    course: Course,
    /// Where cold visits were that saw less than a lap, once those no longer count: the truth is no more.
    plateau: Option<f64>,
    empty: u32,
}

/// How a point is visited next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    /// How often the warm-up was doubled, as a factor.
    pub(super) boost: u32,
    /// Visits after a warm-up walk at least so long; zero before the first.
    pub(super) walk: Duration,
    /// Cold visits begin after half of a warm-up: without one they see nothing of what is kept from lap to lap.
    pub(super) after_half: bool,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            boost: 1,
            walk: Duration::ZERO,
            after_half: false,
        }
    }
}

impl Samples {
    /// Takes the undisturbed blocks of a visit in, and counts the others.
    pub(super) fn add(&mut self, visit: &Visit) {
        let kept: Vec<&Block> = visit.blocks.iter().filter(|block| self.keeps(block)).collect();
        let ticks: Vec<f64> = kept.iter().map(|block| block.ticks).collect();
        let clocks: Vec<f64> = kept.iter().map(|block| block.clock()).collect();
        let cycles: Vec<f64> = ticks
            .iter()
            .zip(unhurried(&clocks))
            .map(|(t, clock)| t * clock)
            .collect();
        self.clocks.extend(clocks);
        if let Some((counts, steps)) = visit.counted {
            self.counts.instructions += counts.instructions;
            self.counts.dtlb_misses += counts.dtlb_misses;
            self.counted_steps += steps;
        }
        let Some(arrival) = Arrival::of(&ticks) else {
            self.empty += 1;
            if self.empty >= MOST_EMPTY {
                self.close();
            }
            return;
        };
        self.visits.push(Kept {
            approach: visit.approach,
            walked: visit.walked,
            laps: visit.laps,
            arrival,
            ticks: tail(&ticks).to_vec(),
            cycles: tail(&cycles).to_vec(),
        });
        self.steer(visit);
        if self.is_settled() {
            self.stopped = Some(Stopped::Interval);
        }
    }

    fn keeps(&mut self, block: &Block) -> bool {
        let reason = if block.migrated {
            &mut self.dropped.migrations
        } else if block.switched {
            &mut self.dropped.switches
        } else if block.clock_changed() {
            &mut self.dropped.clock
        } else {
            return true;
        };
        *reason += 1;
        false
    }

    /// Learns from a visit how the next ones are to be. Visits that began otherwise no longer count.
    fn steer(&mut self, visit: &Visit) {
        if !visit.approach.is_cold() {
            self.course.walk = self.course.walk.max(visit.walked);
        }
        let Some(meeting) = self.meeting() else { return };
        let before = self.course;
        // The longest cold visit is flat: visits after a warm-up need not be longer than that.
        let is_short = self.course.walk < self.longest_cold();
        let is_below = self.counting(false).count() > 1 && meeting.is_apart() && self.cold_is_flat();
        let is_too_little = meeting.falls() || (before.after_half && meeting.is_apart());
        if is_too_little && before.boost < MOST_BOOST {
            self.course.boost *= 2;
        } else if is_short && (meeting.rises() || is_below) {
            self.course.walk *= 2;
        } else if is_below && !before.after_half && self.laps(true) < 1.0 {
            self.plateau = Some(meeting.cold);
            self.course.after_half = true;
        }
        if self.course != before {
            let course = self.course;
            self.visits.retain(|visit| visit.follows(course));
        }
    }

    /// Do both approaches arrive alike as far as chance allows to say?
    fn is_alike(&self) -> bool {
        self.meeting().is_some_and(|meeting| !meeting.is_apart())
    }

    /// Laps of the longest visit of an approach.
    fn laps(&self, cold: bool) -> f64 {
        self.counting(cold).map(|visit| visit.laps).fold(0.0, f64::max)
    }

    /// The last cold visit stopped falling; if it is above the others, it is those that have not arrived.
    fn cold_is_flat(&self) -> bool {
        let last = self.counting(true).last();
        last.is_some_and(|visit| visit.arrival.trend.is_some_and(|trend| trend.is_flat()))
    }

    /// Would a longer cold visit arrive nearer to the others?
    pub(super) fn may_go_on_cold(&self) -> bool {
        !self.cold_is_flat() && self.meeting().is_some_and(|meeting| meeting.gap() > CLOSE)
    }

    /// How it is visited next.
    pub(super) fn course(&self) -> Course {
        self.course
    }

    /// Where visits of one approach arrived; of cold ones only the longest, since the others are known to have been on their way.
    fn arrivals(&self, cold: bool) -> Vec<Arrival> {
        self.counting(cold).map(|visit| visit.arrival).collect()
    }

    fn counting(&self, cold: bool) -> impl Iterator<Item = &Kept> {
        let of = move |visit: &&Kept| visit.approach.is_cold() == cold;
        let longest = self
            .visits
            .iter()
            .filter(of)
            .map(|visit| visit.walked)
            .max()
            .unwrap_or_default();
        self.visits
            .iter()
            .filter(of)
            .filter(move |visit| !cold || 2 * visit.walked > longest)
    }

    /// Time walked in visits of one approach.
    pub(super) fn walked(&self, cold: bool) -> Duration {
        self.counting(cold).map(|visit| visit.walked).sum()
    }

    /// The longest cold visit.
    pub(super) fn longest_cold(&self) -> Duration {
        self.counting(true).map(|visit| visit.walked).max().unwrap_or_default()
    }

    /// Where visits after a warm-up arrive.
    pub(super) fn warm_level(&self) -> Option<f64> {
        let levels: Vec<f64> = self.arrivals(false).iter().map(|arrival| arrival.level).collect();
        stats::median(&levels)
    }

    /// What both approaches say together; `None` until there is a visit of each.
    pub(super) fn meeting(&self) -> Option<Meeting> {
        Meeting::of(&self.arrivals(false), &self.arrivals(true))
    }

    /// Did both approaches arrive at the same time?
    pub(super) fn is_met(&self) -> bool {
        self.meeting().is_some_and(|meeting| meeting.is_met())
    }

    fn is_settled(&self) -> bool {
        let medians = stats::medians(&self.converged(|visit| &visit.ticks));
        stats::is_enough(&medians, CLOSE) && self.ticks().is_some_and(|estimate| estimate.relative_error() <= CLOSE)
    }

    /// Its budget is spent.
    pub(super) fn close(&mut self) {
        self.stopped.get_or_insert(Stopped::Budget);
    }

    /// Is nothing more to be sampled here?
    pub(super) fn is_closed(&self) -> bool {
        self.stopped.is_some()
    }

    /// Why sampling ended.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    /// Ticks of the time stamp counter per step; `None` where it has not converged.
    pub(super) fn ticks(&self) -> Option<Estimate> {
        let meeting = self.meeting().filter(Meeting::is_met)?;
        let estimate = stats::of_visits(&self.converged(|visit| &visit.ticks))?;
        // Between both approaches lies the truth, whatever the spread of either.
        let (warm, cold) = meeting.arrivals();
        Some(Estimate {
            low: estimate.low.min(warm).min(cold),
            high: estimate.high.max(warm).max(cold).max(self.later(&meeting)),
            ..estimate
        })
    }

    /// Where visits would be after a whole lap, at most, if they are parts of one and cold visits saw no whole one either:
    /// then nothing came from above.
    fn later(&self, meeting: &Meeting) -> f64 {
        let laps = self.laps(false);
        match self.plateau {
            Some(plateau) if laps < 1.0 => plateau.min(meeting.warm * (1.0 + meeting.drift.rise(1.0 / laps))),
            _ => 0.0,
        }
    }

    /// Core cycles per step; `None` where it has not converged.
    pub(super) fn cycles(&self) -> Option<Estimate> {
        self.meeting().filter(Meeting::is_met)?;
        stats::of_visits(&self.converged(|visit| &visit.cycles))
    }

    /// Samples of all visits after a warm-up, and of the cold ones if those are no slower; in order of time.
    fn converged<'a>(&'a self, of: impl Fn(&'a Kept) -> &'a Vec<f64>) -> Vec<Vec<f64>> {
        let cold_too = self.meeting().is_some_and(|meeting| meeting.gap().abs() <= CLOSE);
        let longest = self.longest_cold();
        let counts = |visit: &&Kept| !visit.approach.is_cold() || (cold_too && 2 * visit.walked > longest);
        self.visits
            .iter()
            .filter(counts)
            .map(|visit| of(visit).clone())
            .collect()
    }

    /// Between which ticks a step lies that has not converged; `None` where it has, or nothing was sampled.
    pub(super) fn bound(&self) -> Option<Bound> {
        if self.ticks().is_some() {
            return None;
        }
        let (low, high) = match self.meeting() {
            Some(meeting) => meeting.ends(),
            None => (self.warm_level(), None),
        };
        // Within a lap, only two warm-ups of different length that arrive alike say that a longer one changes nothing.
        let is_low = self.laps(false) >= 1.0 || (self.course.after_half && self.is_alike());
        let (low, high) = (low.filter(|&low| is_low && low > 0.0), self.plateau.or(high));
        (low.is_some() || high.is_some()).then_some(Bound { low, high })
    }

    /// What shows that it has converged, or that it has not; in ticks.
    pub(super) fn convergence(&self) -> Option<Convergence> {
        let meeting = self.meeting()?;
        let [warm, cold] = [false, true].map(|cold| self.counting(cold).count() as u64);
        Some(Convergence {
            converged: meeting.is_met(),
            warm_ns: meeting.warm,
            cold_ns: meeting.cold,
            warm_visits: warm,
            cold_visits: cold,
            warm_ms: self.course.walk.as_secs_f64() * 1e3,
            cold_ms: self.longest_cold().as_secs_f64() * 1e3,
        })
    }

    /// What a step costs while nobody disturbs; `ticks_per_ns` as of the time stamp counter.
    pub(super) fn quiet(&self, ticks_per_ns: f64) -> Option<Quiet> {
        let all = |of: fn(&Kept) -> &Vec<f64>| self.visits.iter().flat_map(of).copied().collect::<Vec<f64>>();
        let every = all(|visit| &visit.cycles);
        let ticks = stats::quantile(&stats::sorted(&all(|visit| &visit.ticks)), QUIET)?;
        let cycles = stats::quantile(&stats::sorted(&every), QUIET)?;
        let alike = every.iter().filter(|&&other| other <= cycles * (1.0 + AS_QUIET));
        Some(Quiet {
            ns: ticks / ticks_per_ns,
            cycles,
            share: alike.count() as f64 / every.len() as f64,
        })
    }

    /// Core cycles per tick, sample by sample.
    pub(super) fn clocks(&self) -> &[f64] {
        &self.clocks
    }

    /// Samples that were thrown away.
    pub(super) fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Ticks per step in the median, visit by visit in order of time; none where it has not converged.
    pub(super) fn medians(&self) -> Vec<f64> {
        let converged = self.is_met().then(|| self.converged(|visit| &visit.ticks));
        stats::medians(&converged.unwrap_or_default())
    }

    /// Visits that gave samples.
    pub(super) fn visits(&self) -> usize {
        self.visits.len()
    }

    /// How far two visits to this point differ on average, as a share.
    pub(super) fn disagreement(&self) -> f64 {
        let medians = stats::medians(&self.converged(|visit| &visit.ticks));
        stats::disagreement(&medians).unwrap_or(0.0)
    }

    /// Hardware counters per step.
    pub(super) fn counters(&self) -> Option<Counters> {
        let steps = self.counted_steps as f64;
        (self.counted_steps > 0 && self.counts.instructions > 0).then(|| Counters {
            instructions: self.counts.instructions as f64 / steps,
            dtlb_misses: self.counts.dtlb_misses as f64 / steps,
            walk_cycles: None,
            miss_rate: self.counts.dtlb_misses as f64 / self.counts.instructions as f64,
        })
    }
}

impl Kept {
    /// Was it made as visits of its approach are to be made now?
    fn follows(&self, course: Course) -> bool {
        let Course { boost, after_half, .. } = course;
        let is_long = self.walked >= course.walk;
        match self.approach {
            Approach::Cold => !after_half,
            Approach::Half { boost: mine } => after_half && is_long && mine == boost,
            Approach::Warm { boost: mine } => is_long && mine == boost,
        }
    }
}

/// The clock of each block, by its reading and those nearby.
fn unhurried(readings: &[f64]) -> impl Iterator<Item = f64> + '_ {
    (0..readings.len()).map(|at| {
        let nearby = &readings[at.saturating_sub(NEARBY)..readings.len().min(at + NEARBY + 1)];
        stats::quantile(&stats::sorted(nearby), FASTEST).map_or(readings[at], |fastest| fastest.max(readings[at]))
    })
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
