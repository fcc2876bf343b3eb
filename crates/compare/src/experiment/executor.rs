//! What an experiment asks of what makes its runs.

use std::time::Duration;

use model::Warning;
use model::compare::{Compare, Run, Start};

use crate::Error;

/// Makes runs, and has a clock: a real one starts programs, one for tests needs neither programs nor a clock.
pub trait Executor {
    /// What has to be there before the turns of a start are taken; nothing where every turn starts its own program.
    ///
    /// # Errors
    /// As for [`Executor::run`].
    fn begin(&mut self, _start: u32) -> Result<(), Error> {
        Ok(())
    }
    /// One run of an arm, by its index.
    ///
    /// # Errors
    /// If the program could not be started or did not end well, or [`Error::Interrupted`].
    fn run(&mut self, arm: usize) -> Result<Run, Error>;
    /// The reference's second run in a block, by the reference's index: the comparison's own A/A.
    ///
    /// # Errors
    /// As for [`Executor::run`].
    fn again(&mut self, arm: usize) -> Result<Run, Error> {
        self.run(arm)
    }
    /// How long it has been at work.
    fn elapsed(&self) -> Duration;
    fn starts(&self) -> Vec<Start> {
        Vec::new()
    }
    /// What to know of its runs beside what they came to.
    fn warnings(&self, _compare: &Compare) -> Vec<Warning> {
        Vec::new()
    }
    /// Why its runs lack hardware counters, or what those leave out.
    fn pmu_note(&self) -> Option<String> {
        None
    }
}
