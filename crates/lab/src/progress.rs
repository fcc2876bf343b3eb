//! How a running measurement tells how far it is, between samples only.

use std::time::Duration;

/// Told about progress between visits, never between two timed samples.
pub trait Progress {
    /// `done` from 0 to 1, the time that is left, and what comes next in a few words.
    fn step(&mut self, done: f64, left: Duration, what: &str);
}

/// Nobody wants to know.
impl Progress for () {
    fn step(&mut self, _: f64, _: Duration, _: &str) {}
}
