//! Where the time of an arm's runs went, against the reference: into the program's own work, or into the kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time of an arm's runs in its parts, against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// The arm.
    pub arm: String,
    /// The reference.
    pub against: String,
    /// From start to end.
    pub wall: Difference,
    /// CPU time in user mode: the program's own work.
    pub user: Difference,
    /// CPU time in the kernel: page faults, zeroing, system calls; collapsing from outside is counted in.
    pub system: Difference,
    /// Where one of user and system time gained and the other lost: the run length at which they are even.
    pub even: Option<Even>,
}

/// A difference in seconds, with its own 95 % interval: below 0 the arm took less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The estimate.
    pub seconds: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How long a run must be for gain and cost in CPU time to be even, if user time grows with the run and system time does not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Even {
    /// Times the user time of these runs.
    pub times: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end; `null` where none is in reach.
    pub high: Option<f64>,
    /// CPU seconds of such a run of the reference.
    pub cpu_seconds: f64,
}

impl Difference {
    /// The sign of a difference whose interval leaves out none; 0 of one within chance.
    pub fn sign(self) -> i8 {
        i8::from(self.low > 0.0) - i8::from(self.high < 0.0)
    }
}
