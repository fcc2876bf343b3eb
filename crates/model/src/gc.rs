//! What a log of a JVM's garbage collector says: how often it collected, how long it paused, and what CPU time that took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Collections of one run of a JVM, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GcLog {
    /// The collector, as the JVM names it; absent if the log does not say.
    pub collector: Option<String>,
    /// Collections, concurrent cycles among them.
    pub collections: u64,
    /// Pauses of the program.
    pub pauses: u64,
    /// Seconds in all pauses.
    pub pause_seconds: f64,
    /// CPU seconds of pauses, user and system; `null` where the collector does not log them (ZGC).
    pub cpu_seconds: Option<f64>,
    /// What the JVM reports of its huge pages, such as `Enabled (Explicit)`; absent if the log does not say.
    pub large_pages: Option<String>,
    /// Warnings in the log, at most a few.
    pub warnings: Vec<String>,
}
