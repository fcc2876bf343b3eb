//! A program that goes on working while it is compared: brought to where its counters go up, and ended with all that it started.

use std::time::{Duration, Instant};

use host::Source;
use process::{Handles, halt};

use crate::Error;
use crate::live::process::{Process, UNKNOWN};
use crate::live::{Arm, Counting, hook};
use crate::metric::Asked;
use crate::rising::Rising;
use crate::score::Counter;

/// Between two readings of its counters.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// The program of an arm.
pub(crate) struct Worker<'s> {
    pub(crate) arm: Arm,
    pub(crate) process: Process,
    pub(crate) counters: Vec<Counter>,
    pub(crate) source: Source,
    /// Asked between waits: has the user had enough?
    pub(crate) stop: &'s dyn Fn() -> bool,
    is_asked_to_end: bool,
    /// Dropped behind the process.
    left: Left,
}

/// What is left to do when the program has ended.
struct Left {
    arm: Arm,
    descendants: Handles,
}

impl<'s> Worker<'s> {
    /// Starts it with these counters.
    ///
    /// # Errors
    /// If it, or what comes before it, cannot be started.
    pub(crate) fn start(
        arm: Arm,
        asked: &[Asked],
        counting: &Counting,
        stop: &'s dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        hook(&arm, arm.before.as_deref(), "before", stop)?;
        let counters = asked.iter().filter_map(|asked| Counter::of(asked, &arm.name));
        Ok(Self {
            counters: counters.collect(),
            process: Process::start(&arm, counting, UNKNOWN)?,
            source: Source::live(),
            stop,
            is_asked_to_end: false,
            left: Left {
                arm: arm.clone(),
                descendants: Handles::default(),
            },
            arm,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until every counter has gone up so many times.
    ///
    /// # Errors
    /// If it ends before, or that takes longer than `patience`.
    pub(crate) fn until_it_counts(&mut self, times: u32, patience: Duration) -> Result<(), Error> {
        let until = Instant::now() + patience;
        let mut rising = Rising::new(times);
        loop {
            if self.process.wait(Some(POLL_PERIOD), self.stop)? {
                return Err(self.process.gone());
            }
            let why_not = match self.counts() {
                Ok(now) if rising.is_enough_with(&now) => return Ok(()),
                Ok(_) => None,
                Err(why) => Some(why),
            };
            if Instant::now() >= until {
                return Err(why_not.unwrap_or_else(|| self.stands_still(patience)));
            }
        }
    }

    /// The counters as they are now.
    ///
    /// # Errors
    /// If one cannot be read, or the user has had enough.
    pub(crate) fn counts(&self) -> Result<Vec<f64>, Error> {
        let read = |counter: &Counter| counter.read(&self.arm.name, &|| self.process.outputs.output(), self.stop);
        self.counters.iter().map(read).collect()
    }

    fn stands_still(&self, patience: Duration) -> Error {
        let first = self.counters.first().map_or("", |first| first.wanted.name.as_str());
        let time = patience.as_secs();
        let why = format!("it did not go up for {time} s: name a number that goes up while the program works");
        Error::metric(&self.arm.name, first, why)
    }

    /// It is about to be asked to end. Its descendants can be found only as long as it is there.
    pub(crate) fn will_end(&mut self) {
        self.left.descendants = Handles::below(&self.source, self.id());
        self.is_asked_to_end = true;
    }

    /// Continues it where it is stopped, and asks it to end.
    pub(crate) fn ask_to_end(&mut self) {
        self.will_end();
        halt::ask_to_end(&self.source, self.id());
    }
}

impl Drop for Worker<'_> {
    /// On every way out; a stopped program could not end.
    fn drop(&mut self) {
        if !self.is_asked_to_end {
            self.ask_to_end();
        }
    }
}

impl Drop for Left {
    /// A hook that fails here can be handled no more.
    fn drop(&mut self) {
        self.descendants.end();
        let _ = hook(&self.arm, self.arm.after.as_deref(), "after", &|| false);
    }
}
