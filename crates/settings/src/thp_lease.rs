//! A lease of THP sizes' switches: memory that no program advises gets pages of one size and of no other for as long as the value lives.

use std::fmt;
use std::sync::Arc;

use model::Bytes;

use crate::error::{LeaseError, WriterError};
use crate::gave_back::GaveBack;
use crate::state_dir::Lock;
use crate::thp_switch::{ThpSwitch, Word};
use crate::writer::Writer;

/// The right to lend THP sizes. One process has it at a time: a switch has one value for the whole machine, so that two that change it by
/// turns would each measure the other's.
#[derive(Clone)]
pub struct ThpSizes {
    pub(crate) writer: Writer,
    pub(crate) _claim: Arc<Lock>,
}

/// The switches as one size needs them, put back when dropped (also on errors and when a panic unwinds).
#[must_use = "a lease that is dropped at once puts the switches back at once"]
pub struct ThpLease {
    sizes: ThpSizes,
    held: Vec<Turned>,
}

/// A switch that was changed.
#[derive(Clone, Copy)]
pub(crate) struct Turned {
    pub(crate) switch: ThpSwitch,
    pub(crate) before: Word,
    pub(crate) after: Word,
}

impl ThpSizes {
    /// Sets the switch of this size to `always`, and those of others that are `always` to `madvise`.
    ///
    /// # Errors
    /// No such size, no permission, or a failure on the way; then nothing stays changed (or the journal stays for the next run).
    pub fn lend(&self, size: Bytes) -> Result<ThpLease, LeaseError> {
        let mut lease = ThpLease {
            sizes: self.clone(),
            held: Vec::new(),
        };
        self.writer.turn(size, &mut lease.held)?;
        Ok(lease)
    }
}

impl ThpLease {
    /// What was changed, such as `set THP of 64K never -> always`.
    pub fn how(&self) -> String {
        if self.held.is_empty() {
            return "changed no switch of a THP size: they were as it needs".to_owned();
        }
        let steps: Vec<String> = self.held.iter().map(ToString::to_string).collect();
        format!("set {}", steps.join(", "))
    }

    /// Puts the switches back now and says what came of it. Dropping does the same, silently.
    ///
    /// # Errors
    /// When it cannot be done now; the journal stays, and [`Writer::recover`] of a later run does it.
    pub fn give_back(mut self) -> Result<Vec<GaveBack>, WriterError> {
        self.sizes.writer.turn_back(&mut self.held)
    }
}

impl Drop for ThpLease {
    fn drop(&mut self) {
        // A failure leaves the journal, and the next run tries again and reports it.
        let _ = self.sizes.writer.turn_back(&mut self.held);
    }
}

impl fmt::Display for Turned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.switch, self.before, self.after)
    }
}
