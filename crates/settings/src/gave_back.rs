//! What became of a change that was to be undone, as a sentence.

use std::fmt;

/// One setting and what giving it back came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GaveBack {
    /// The setting in words, or the journal that could not be used.
    pub what: String,
    /// The process that had changed it, if it ended without giving back; `None` when a lease is given back in time.
    pub ended: Option<u32>,
    pub outcome: Outcome,
}

/// What giving back came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Our share was taken out of the value again.
    Restored {
        /// The value that was found.
        from: String,
        /// The value now.
        to: String,
    },
    /// Someone else has already put back the value of before the lease.
    AlreadyBack {
        /// The value that was found, and left.
        now: String,
    },
    /// Others have set a switch to something else, or a value to less than our share, which stays.
    Replaced {
        /// What was found.
        now: String,
    },
    /// The run ended in the middle of a write and someone else changed the value since.
    Unclear {
        /// The value before that write.
        before: u64,
        /// The value that it wanted.
        after: u64,
        /// The value that was found, and left.
        now: u64,
    },
    /// The machine has been started anew since, so nothing was left to undo.
    Rebooted,
    /// It could not be done now; the journal stays, and the next run tries again.
    Failed { why: String },
}

impl GaveBack {
    /// Is the setting certain to be free of our share? Otherwise the sentence is for the user's eyes.
    pub fn is_clean(&self) -> bool {
        match self.outcome {
            Outcome::Restored { .. } | Outcome::AlreadyBack { .. } | Outcome::Rebooted => true,
            Outcome::Replaced { .. } | Outcome::Unclear { .. } | Outcome::Failed { .. } => false,
        }
    }
}

impl fmt::Display for GaveBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pid) = self.ended {
            write!(f, "hugewise (process {pid}) ended without giving back: ")?;
        }
        let what = &self.what;
        match &self.outcome {
            Outcome::Restored { from, to } => write!(f, "{what} {from} -> {to}"),
            Outcome::AlreadyBack { now } => write!(f, "{what} is {now} as before, someone else put it back"),
            Outcome::Replaced { now } => write!(f, "{what} is {now}, set by others; left as it is"),
            Outcome::Unclear { before, after, now } => write!(
                f,
                "{what} is {now}; the run ended while changing it {before} -> {after}, and someone else changed it since; \
                 left as it is, correct it by hand if it is too large"
            ),
            Outcome::Rebooted => write!(
                f,
                "{what}: the machine has been restarted since, nothing is left to undo"
            ),
            Outcome::Failed { why } => write!(f, "{what}: not yet given back: {why}"),
        }
    }
}
