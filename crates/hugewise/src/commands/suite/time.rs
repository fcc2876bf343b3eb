//! How the time of all experiments is shared. Pure but for the clock.

use std::time::{Duration, Instant};

/// The time that is left, and what it is for.
#[derive(Debug)]
pub(super) struct Time {
    until: Option<Instant>,
    /// The usual times of the experiments that have not begun.
    usual: Duration,
}

impl Time {
    /// Without a limit each experiment takes its usual time.
    pub(super) fn of(limit: Option<Duration>, usual: impl Iterator<Item = Duration>) -> Self {
        Self {
            until: limit.map(|limit| Instant::now() + limit),
            usual: usual.sum(),
        }
    }

    /// The share of the next experiment: of what is left, by its usual time; `None` if nothing is left.
    pub(super) fn share(&mut self, usual: Duration) -> Option<Duration> {
        let before = self.usual;
        self.usual = before.saturating_sub(usual);
        let Some(until) = self.until else { return Some(usual) };
        let left = until.saturating_duration_since(Instant::now());
        let share = usual.as_secs_f64() / before.as_secs_f64().max(f64::MIN_POSITIVE);
        Some(left.mul_f64(share.min(1.0))).filter(|share| !share.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::Time;
    use std::time::Duration;

    #[test]
    fn each_has_its_share_and_the_last_has_all_that_is_left() {
        let minutes = |number: u64| Duration::from_secs(60 * number);
        let usual = [minutes(10), minutes(30)];
        let mut free = Time::of(None, usual.into_iter());
        assert_eq!(usual.map(|usual| free.share(usual)), usual.map(Some));
        let mut time = Time::of(Some(minutes(20)), usual.into_iter());
        let first = time.share(minutes(10)).expect("time").as_secs_f64();
        assert!((first - 300.0).abs() < 30.0, "{first}");
        // Nothing was spent, so that all is left.
        let second = time.share(minutes(30)).expect("time").as_secs_f64();
        assert!((second - 1200.0).abs() < 30.0, "{second}");
        let mut over = Time::of(Some(Duration::ZERO), usual.into_iter());
        assert_eq!(over.share(minutes(10)), None);
    }
}
