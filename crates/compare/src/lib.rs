//! Did it help? One program under several page policies, in interleaved runs, each with proof of the pages that it got.
//!
//! ```text
//! Comparison: from a Request to Arms and a design
//!  -> experiment::run: which Slot (arm, block) is next, and when to stop
//!      -> Executor makes it: live | slices | inplace (flips)   -> RunLog keeps it
//!      -> verdict: which runs count, intervals, what is better, warnings
//! ```
//!
//! [`run`] decides which runs are made in which order and how many, an [`Executor`] makes them, [`judge`] says what they
//! come to. Each design is an executor: [`live`] starts the program anew for every run; other designs make slices of time
//! of programs that stay alive ([`inplace`]: of one process whose pages change), and [`score`] says what a slice is worth.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod arms;
mod around;
mod comparison;
pub mod design;
mod excerpt;
pub mod experiment;
pub mod flip;
#[doc(hidden)]
pub mod fuzz;
pub mod inplace;
pub mod live;
pub mod metric;
pub mod program;
mod request;
mod runlog;
pub mod schedule;
#[cfg(test)]
mod simulated;
pub mod slices;
mod verdict;
mod worker;

use std::io;
use std::time::Duration;

use model::{Backing, PageKind};

pub use arms::custom::{Custom, may_collapse};
pub(crate) use arms::{glibc, room, switches};
pub use arms::{place, policy, preload, technique};
pub use around::{Around, Event, Shortage, Store};
pub use comparison::{Choice, Comparison, START_TIMEOUT};
pub use experiment::{Executor, Outcome, run};
pub use metric::Wanted;
// A program that lends pages has the guardian of its processes give them back if it is killed.
pub use process::{at_end, guarded};
pub use program::threads;
pub(crate) use program::{elf, memory};
pub use request::{ArmsFile, Named, Request, Spec, Task, USUAL_RUNS};
pub use runlog::{Keep, RunLog, finished};
pub use schedule::Slot;
pub use verdict::recheck::recheck;
pub use verdict::warnings::{Bloat, bloat};
pub(crate) use verdict::{elsewhere, parts, rising, warming, warnings};
pub use verdict::{forecast, interim, judge, paired, proof, score};

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// The program could not be started.
    #[error("{program}: the program cannot be started: {error} (is it on PATH, and executable?)")]
    Start { program: String, error: io::Error },
    /// A program did not end well, or a server or a command around one did not do its part.
    #[error("arm {arm}: {what}{said}")]
    Failed {
        arm: String,
        /// What happened, with the option that it is about.
        what: String,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// The reference is not on the pages that it stands for, so that nothing can be compared with it.
    #[error("arm {arm}: {:.1} % of its memory was on {kind} pages ({backing})", 100.0 * backing.share(*.kind).unwrap_or(0.0))]
    Reference {
        arm: String,
        /// The page kind that it stands for.
        kind: PageKind,
        backing: Backing,
    },
    /// The time for all runs is over before every arm could have run once.
    #[error(
        "--budget {0:.0}s: one run takes {1:.1} s, and a verdict at least {2} s (write --budget {2}s)",
        budget.as_secs_f64(), run.as_secs_f64(), least.as_secs() + 1
    )]
    Budget {
        budget: Duration,
        run: Duration,
        /// What a verdict takes.
        least: Duration,
    },
    /// The time for all runs was over in the midst of what comes before the first whole block.
    #[error(
        "--budget {:.0}s: the time was over before a whole block of runs was made (more time; or less --warm-up, or a shorter program)",
        .0.as_secs_f64()
    )]
    TimeOver(Duration),
    /// A program ended that was to stay.
    #[error("arm {arm}: the program ended before the comparison did, with {status}{said}")]
    Gone {
        arm: String,
        status: String,
        /// The end of what it wrote to standard error.
        said: String,
    },
    /// The programs do not fit into memory at once.
    #[error("{0}")]
    Room(String),
    /// Slices of one process cannot be made or scored so.
    #[error("in place: {0}")]
    InPlace(String),
    /// A program that was to stay alive ended so early that nothing can be said.
    #[error(
        "the program ended after {blocks} blocks of slices, and fewer than {} can show nothing",
        interim::LEAST
    )]
    TooFew { blocks: u32 },
    /// Pages of a process cannot be changed in place.
    #[error(transparent)]
    Flip(#[from] crate::flip::Error),
    /// A metric was not there.
    #[error("arm {arm}: --metric {metric}: {why}")]
    Metric { arm: String, metric: String, why: String },
    /// Something that was asked for makes no sense, or something that it needs cannot be done or read.
    #[error("{what}: {why}")]
    Asked {
        /// The option or the subject.
        what: String,
        /// Why, and what to write instead.
        why: String,
    },
    #[error(transparent)]
    Policy(#[from] policy::ParsePolicyError),
    #[error(transparent)]
    Program(#[from] program::LookError),
    /// A finished run could not be kept.
    #[error("finished runs cannot be kept: {0}")]
    Keep(String),
}

impl Error {
    pub(crate) fn asked(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Asked {
            what: what.into(),
            why: why.into(),
        }
    }

    pub(crate) fn failed(arm: &live::Arm, what: impl Into<String>, errors: &str) -> Self {
        Self::Failed {
            arm: arm.name.clone(),
            what: what.into(),
            said: excerpt::said(errors),
        }
    }

    pub(crate) fn metric(arm: &str, metric: &str, why: impl Into<String>) -> Self {
        Self::Metric {
            arm: arm.to_owned(),
            metric: metric.to_owned(),
            why: why.into(),
        }
    }
}
