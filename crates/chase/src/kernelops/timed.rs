//! An operation that is set up.

use std::io;
use std::ops::Range;

use super::batch::Batch;

/// One operation, set up and ready.
pub trait Timed {
    /// Does and times as many operations as make a batch; what they need is renewed untimed.
    ///
    /// # Errors
    /// The kernel's refusal, or that an operation did something else than its name says.
    fn batch(&mut self) -> io::Result<Batch>;

    /// The memory whose page kind matters, filled as the timed operations fill it, to be proved.
    ///
    /// # Errors
    /// The kernel's refusal.
    fn memory(&mut self) -> io::Result<Option<Range<usize>>> {
        Ok(None)
    }
}

impl<F: FnMut() -> io::Result<Batch>> Timed for F {
    fn batch(&mut self) -> io::Result<Batch> {
        self()
    }
}
