//! Has a point converged? Evidence of one visit (its trend), and of two approaches (where they meet). Pure.

/// The state in which a visit begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approach {
    /// After a parallel warm-up, `boost` times as long as fills the caches: the walk begins at or below its converged time.
    Warm { boost: u32 },
    /// With empty caches: the walk begins above its converged time.
    Cold,
    /// With empty caches, then after half of the warm-up: does its length still matter?
    Half { boost: u32 },
}

impl Approach {
    /// From empty caches?
    pub(super) fn is_cold(self) -> bool {
        !matches!(self, Self::Warm { .. })
    }
}

/// Two times that differ by no more than this share are the same for the stop rule.
pub(super) const CLOSE: f64 = 0.01;
/// Both approaches have met when they differ by no more than this share. The interval holds both, so this is a limit of
/// what is reported as a number at all, and no error that goes unseen.
pub(super) const MEET: f64 = 0.05;
/// A trend over the last half of a visit that is known to be smaller than this share is none.
const FLAT: f64 = 0.02;
/// Consecutive stretches of a quarter of a visit whose spread shows how well its median is known.
const STRETCHES: usize = 8;
/// Blocks of such a stretch, at least.
const LEAST_STRETCH: usize = 2;
/// Standard errors that a difference may have by chance.
const CHANCE: f64 = 2.5;
/// A trend is the change over one quarter of a visit.
const QUARTERS: f64 = 4.0;

/// The part of a visit that is reported: its last half.
pub(super) fn tail<T>(blocks: &[T]) -> &[T] {
    &blocks[blocks.len() / 2..]
}

/// How the last quarter of a visit differs from the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// As a share; negative where the time of a step falls.
    pub(super) change: f64,
    pub(super) error: f64,
}

impl Trend {
    /// `None` for a visit that is too short.
    pub(super) fn of(ticks: &[f64]) -> Option<Self> {
        let late = tail(ticks);
        let (third, fourth) = late.split_at(late.len() / 2);
        let ((before, error_before), (after, error_after)) = (level(third)?, level(fourth)?);
        Some(Self {
            change: after / before - 1.0,
            error: (error_before.powi(2) + error_after.powi(2)).sqrt() / before,
        })
    }

    /// Is any trend known to be negligible?
    pub(super) fn is_flat(&self) -> bool {
        self.change.abs() + 2.0 * self.error <= FLAT
    }

    /// The largest fall that it may be.
    fn fall(&self) -> f64 {
        2.0 * self.error - self.change
    }

    /// The largest rise that it may be, if it goes on as in this quarter of a visit for `times` as long as the visit.
    pub(super) fn rise(&self, times: f64) -> f64 {
        (self.change + 2.0 * self.error).max(0.0) * QUARTERS * times
    }
}

/// Median of a stretch of time, and its standard error by the spread of its parts.
fn level(ticks: &[f64]) -> Option<(f64, f64)> {
    if ticks.len() < STRETCHES * LEAST_STRETCH {
        return None;
    }
    let parts: Vec<f64> = ticks
        .chunks(ticks.len().div_ceil(STRETCHES))
        .filter_map(stats::median)
        .collect();
    let median = stats::median(ticks).filter(|&median| median > 0.0)?;
    Some((median, deviation(&parts) / (parts.len() as f64).sqrt()))
}

/// Standard deviation; 0 of fewer than two.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// May a visit end, or is it to go on twice as long? `warm`: where visits after a warm-up arrived, for a cold one, which ends
/// where those are, or when it is known not to get there even if it goes on falling as now until it is `times` as long.
pub(super) fn is_done(ticks: &[f64], warm: Option<f64>, times: f64) -> bool {
    let Some(trend) = Trend::of(ticks) else { return false };
    let Some(warm) = warm else { return trend.is_flat() };
    let Some(here) = stats::median(tail(ticks)) else {
        return false;
    };
    let gap = here / warm - 1.0;
    gap <= CLOSE || trend.fall() * QUARTERS * times < gap
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    /// Median of its tail.
    pub(super) level: f64,
    pub(super) error: f64,
    /// The change over its tail; `None` for a visit that is too short.
    pub(super) trend: Option<Trend>,
}

impl Arrival {
    /// Where the undisturbed blocks of a visit arrive; `None` without any.
    pub(super) fn of(ticks: &[f64]) -> Option<Self> {
        let late = tail(ticks);
        Some(Self {
            level: stats::median(late)?,
            error: level(late).map_or(0.0, |(_, error)| error),
            trend: Trend::of(ticks),
        })
    }
}

/// What the visits of both approaches say together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Meeting {
    /// Where visits after a warm-up arrive: the truth is no less, unless they fall.
    pub(super) warm: f64,
    /// Where cold visits arrive: the truth is no more.
    pub(super) cold: f64,
    /// Standard error of their difference as a share of `warm`.
    pub(super) error: f64,
    /// Standard errors of both, in ticks.
    errors: [f64; 2],
    /// Change over the tail of visits after a warm-up, with its standard error.
    pub(super) drift: Trend,
}

impl Meeting {
    /// `None` until there is a visit of each approach.
    pub(super) fn of(warm: &[Arrival], cold: &[Arrival]) -> Option<Self> {
        let levels = |of: &[Arrival]| of.iter().map(|arrival| arrival.level).collect::<Vec<_>>();
        let (warm_levels, cold_levels) = (levels(warm), levels(cold));
        let (at_warm, at_cold) = (stats::median(&warm_levels)?, stats::median(&cold_levels)?);
        let own = [warm, cold].map(|visits| {
            let errors = visits.iter().map(|arrival| arrival.error.powi(2)).sum::<f64>();
            errors.sqrt() / visits.len() as f64
        });
        let between = deviation(&warm_levels).max(deviation(&cold_levels));
        let errors = [0, 1].map(|side| own[side].max(between / ([warm, cold][side].len() as f64).sqrt()));
        let within = warm.iter().chain(cold).map(|arrival| arrival.error).fold(0.0, f64::max);
        let spread = between.max(within) / at_warm;
        let error = spread * (1.0 / warm.len() as f64 + 1.0 / cold.len() as f64).sqrt();
        Some(Self {
            warm: at_warm,
            cold: at_cold,
            error,
            errors,
            drift: drift(warm),
        })
    }

    /// How far the cold approach lies above the warm one, as a share.
    pub(super) fn gap(&self) -> f64 {
        self.cold / self.warm - 1.0
    }

    /// Where both arrive, each moved outwards by two of its standard errors.
    pub(super) fn arrivals(&self) -> (f64, f64) {
        let [warm, cold] = self.errors.map(|error| 2.0 * error);
        let outwards = if self.gap() > 0.0 { 1.0 } else { -1.0 };
        (self.warm - outwards * warm, self.cold + outwards * cold)
    }

    /// Which times the truth lies between if they do not meet, with what chance may add; visits that fall give no lower end.
    pub(super) fn ends(&self) -> (Option<f64>, Option<f64>) {
        let chance = CHANCE * self.error * self.warm;
        let low = (!self.falls()).then_some(self.warm - chance);
        (low, Some(self.cold.max(self.warm) + chance))
    }

    /// Is the cold approach above the other by more than chance may be?
    pub(super) fn is_apart(&self) -> bool {
        self.gap() > CLOSE.max(CHANCE * self.error)
    }

    /// Do both arrive at the same time, as far as their spread shows? One that reaches down to no time at all shows nothing.
    pub(super) fn is_met(&self) -> bool {
        let (warm, cold) = self.arrivals();
        let is_known = warm > 0.0 && cold > 0.0;
        is_known && self.gap() <= MEET.max(CHANCE * self.error) && !self.rises() && !self.falls()
    }

    /// Visits after a warm-up are still on their way up: they are too short.
    pub(super) fn rises(&self) -> bool {
        self.drift.change > FLAT && self.drift.change > CHANCE * self.drift.error
    }

    /// They are still on their way down: the warm-up is too short.
    pub(super) fn falls(&self) -> bool {
        -self.drift.change > FLAT && -self.drift.change > CHANCE * self.drift.error
    }
}

/// The mean change over all visits; its error by their spread, or by a lone visit's own.
fn drift(warm: &[Arrival]) -> Trend {
    let trends: Vec<Trend> = warm.iter().filter_map(|arrival| arrival.trend).collect();
    let changes: Vec<f64> = trends.iter().map(|trend| trend.change).collect();
    let n = changes.len().max(1) as f64;
    let own = trends.iter().map(|trend| trend.error.powi(2)).sum::<f64>().sqrt() / n;
    Trend {
        change: changes.iter().sum::<f64>() / n,
        error: own.max(deviation(&changes) / n.sqrt()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Meeting, Trend, is_done};

    /// Falls from `above` the truth of 100 by a factor e in each `pace` blocks, beside some noise.
    fn falling(above: f64, pace: f64, blocks: usize) -> Vec<f64> {
        let value = |n: usize| 100.0 * (1.0 + above * (-(n as f64) / pace).exp()) + (n * 7 % 5) as f64 * 0.2;
        (0..blocks).map(value).collect()
    }

    fn arrivals(levels: &[f64], change: f64) -> Vec<Arrival> {
        let trend = Some(Trend { change, error: 0.001 });
        levels
            .iter()
            .map(|&level| Arrival {
                level,
                error: 0.0,
                trend,
            })
            .collect()
    }

    #[test]
    fn a_visit_that_still_falls_is_not_done_and_one_that_arrived_is() {
        assert!(!is_done(&falling(0.5, 200.0, 400), None, 1.0));
        assert!(is_done(&falling(0.5, 200.0, 3000), None, 1.0));
        assert!(!is_done(&falling(0.0, 1.0, 20), None, 1.0), "too short to tell");
    }

    #[test]
    fn a_slow_fall_that_looks_flat_is_not_done_while_it_has_far_to_go_at_that_pace() {
        let slow = falling(0.3, 12_000.0, 800);
        assert!(Trend::of(&slow).is_some_and(|trend| trend.is_flat()));
        assert!(!is_done(&slow, Some(100.0), 20.0));
        assert!(is_done(&slow, Some(100.0), 1.0), "it will not get there");
        assert!(is_done(&falling(0.3, 100.0, 1000), Some(100.4), 4.0));
        // Flat for good above where warm visits arrived: those are too short, and this one need not go on.
        assert!(is_done(&falling(0.0, 1.0, 1000), Some(80.0), 4.0));
    }

    #[test]
    fn approaches_meet_or_say_why_not() {
        let met = |warm: &[f64], cold: &[f64], change| {
            Meeting::of(&arrivals(warm, change), &arrivals(cold, 0.0)).map(|meeting| meeting.is_met())
        };
        assert_eq!(met(&[100.0, 101.0], &[102.0], 0.0), Some(true));
        assert_eq!(met(&[100.0, 101.0], &[120.0], 0.0), Some(false));
        assert_eq!(met(&[100.0, 101.0], &[102.0], 0.04), Some(false), "still rises");
        assert_eq!(met(&[100.0, 101.0], &[102.0], -0.04), Some(false), "still falls");
        assert_eq!(
            met(&[100.0, 130.0, 90.0, 110.0], &[125.0], 0.0),
            Some(true),
            "by their spread"
        );
        assert_eq!(met(&[100.0], &[], 0.0), None);
    }
}
