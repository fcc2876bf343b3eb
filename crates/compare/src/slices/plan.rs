//! How slices of several programs are made.

use std::time::Duration;

use crate::threads::Threads;

/// How slices are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How long one program runs at a time.
    pub slice: Duration,
    /// Whose CPU time its counters are held against.
    pub threads: Threads,
    /// How long a program may take until its counters go up.
    pub patience: Duration,
    /// Slices of each program that do not count, after each of its starts; one at least.
    pub warm_up: u32,
    /// The seed of the order in which programs are started.
    pub seed: u64,
}
