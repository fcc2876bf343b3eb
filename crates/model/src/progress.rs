//! Progress of a running measurement, reported between visits only.

use std::time::Duration;

/// Receives progress between visits, never between two timed samples.
pub trait Progress {
    /// `done` from 0 to 1, the time that is left, and what comes next in a few words.
    fn step(&mut self, done: f64, left: Duration, what: &str);
}

/// Ignores it.
impl Progress for () {
    fn step(&mut self, _: f64, _: Duration, _: &str) {}
}

/// How long the rest of some work takes that goes on as evenly as so far; nothing is known at its very beginning.
pub fn time_left(spent: Duration, done: f64) -> Duration {
    if done > 0.0 {
        spent.mul_f64((1.0 - done).max(0.0) / done)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::time_left;

    #[test]
    fn what_is_left_takes_as_long_as_what_is_done() {
        let spent = Duration::from_secs(3);
        assert_eq!(time_left(spent, 0.25), Duration::from_secs(9));
        assert_eq!(time_left(spent, 0.0), Duration::ZERO);
        assert_eq!(time_left(spent, 1.5), Duration::ZERO);
    }
}
