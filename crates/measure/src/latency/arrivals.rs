//! Where the visits to one point arrived, from both approaches, and how the next one is to be made. Pure.

use std::time::Duration;

use model::latency::{Bound, Convergence};

use super::converge::{Approach, Arrival, CLOSE, Meeting};

/// A warm-up so many times as long as fills the caches that is still too short would be too short at any length.
const MOST_BOOST: u32 = 8;
/// The part of a visit that is kept: the undisturbed blocks of its tail.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) approach: Approach,
    pub(super) walked: Duration,
    pub(super) laps: f64,
    pub(super) arrival: Arrival,
    pub(super) ticks: Vec<f64>,
    pub(super) cycles: Vec<f64>,
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

/// The visits to a point that count, and what they teach.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    pub(super) visits: Vec<Kept>,
    pub(super) course: Course,
    /// Where cold visits were that saw less than a lap, once those no longer count: the truth is no more.
    plateau: Option<f64>,
}

impl Arrivals {
    /// Takes a visit in and learns from it how to make the next ones. Visits that began otherwise no longer count.
    pub(super) fn add(&mut self, visit: Kept) {
        if !visit.approach.is_cold() {
            self.course.walk = self.course.walk.max(visit.walked);
        }
        self.visits.push(visit);
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

    /// Where visits of one approach arrived; of cold ones only the longest, since the others are known to have been on their way.
    fn levels(&self, cold: bool) -> Vec<Arrival> {
        self.counting(cold).map(|visit| visit.arrival).collect()
    }

    fn counting(&self, cold: bool) -> impl Iterator<Item = &Kept> {
        let longest = self.longest_cold();
        let counts = move |visit: &&Kept| visit.approach.is_cold() == cold && (!cold || 2 * visit.walked > longest);
        self.visits.iter().filter(counts)
    }

    /// Time walked in visits of one approach.
    pub(super) fn walked(&self, cold: bool) -> Duration {
        self.counting(cold).map(|visit| visit.walked).sum()
    }

    pub(super) fn longest_cold(&self) -> Duration {
        let cold = self.visits.iter().filter(|visit| visit.approach.is_cold());
        cold.map(|visit| visit.walked).max().unwrap_or_default()
    }

    /// Where visits after a warm-up arrive.
    pub(super) fn warm_level(&self) -> Option<f64> {
        let levels: Vec<f64> = self.levels(false).iter().map(|arrival| arrival.level).collect();
        stats::median(&levels)
    }

    /// What both approaches say together; `None` until there is a visit of each.
    pub(super) fn meeting(&self) -> Option<Meeting> {
        Meeting::of(&self.levels(false), &self.levels(true))
    }

    /// Did both approaches arrive at the same time?
    pub(super) fn is_met(&self) -> bool {
        self.meeting().is_some_and(|meeting| meeting.is_met())
    }

    /// Where visits would be after a whole lap, at most, if they are parts of one and cold visits saw no whole one either:
    /// then nothing came from above.
    pub(super) fn later(&self, meeting: &Meeting) -> f64 {
        let laps = self.laps(false);
        match self.plateau {
            Some(plateau) if laps < 1.0 => plateau.min(meeting.warm * (1.0 + meeting.drift.rise(1.0 / laps))),
            _ => 0.0,
        }
    }

    /// Samples of all visits after a warm-up, and of the cold ones if those are no slower; in order of time.
    pub(super) fn converged<'a>(&'a self, of: impl Fn(&'a Kept) -> &'a Vec<f64>) -> Vec<Vec<f64>> {
        let cold_too = self.meeting().is_some_and(|meeting| meeting.gap().abs() <= CLOSE);
        let longest = self.longest_cold();
        let counts = |visit: &&Kept| !visit.approach.is_cold() || (cold_too && 2 * visit.walked > longest);
        self.visits
            .iter()
            .filter(counts)
            .map(|visit| of(visit).clone())
            .collect()
    }

    /// Between which ticks a step lies that has not converged; `None` of nothing.
    pub(super) fn bound(&self) -> Option<Bound> {
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
