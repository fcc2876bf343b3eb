//! All that a diagnosis rests on, taken from a machine in one pass.

use model::{Bytes, Reading};

use crate::config::Config;
use crate::programs::{self, Program};
use crate::{Snapshot, Source};

/// A machine as the rules see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The kernel's settings and accounts.
    pub snapshot: Snapshot,
    /// Every process with memory of its own; absent in a capture without processes.
    pub programs: Reading<Vec<Program>>,
    /// What was asked for in files and at boot.
    pub config: Config,
    /// Seconds since boot.
    pub uptime: Reading<f64>,
    /// Settings that hugewise applied and keeps a journal of; unknown until the caller fills it in.
    pub applied: Reading<Vec<Applied>>,
}

/// A setting that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// Its file.
    pub path: String,
    /// The value that was written and read back.
    pub value: String,
    /// When, in seconds since boot.
    pub at: f64,
}

impl Evidence {
    /// Looks at everything once: within half a second on a machine with 500 processes, with no process held for longer
    /// than 16 ms.
    pub fn gather(source: &Source) -> Self {
        let snapshot = Snapshot::take(source);
        let sizes: Option<Vec<Bytes>> = snapshot
            .pools
            .known()
            .map(|pools| pools.iter().map(|pool| pool.size).collect());
        Self {
            programs: programs::programs(source, &snapshot),
            config: Config::read(source, sizes.as_deref()),
            uptime: uptime(source),
            applied: Reading::absent("a journal of settings that hugewise applied"),
            snapshot,
        }
    }
}

fn uptime(source: &Source) -> Reading<f64> {
    let path = "/proc/uptime";
    let line = source.line(path).into_result();
    let seconds = line.and_then(|line| {
        let seen = line.split(' ').next().unwrap_or_default();
        crate::parse::value(path, 0, "uptime", "seconds", seen)
    });
    seconds.into()
}
