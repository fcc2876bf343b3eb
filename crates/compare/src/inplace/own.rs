//! A program that is started for a comparison in place: brought to where it works, and ended with everything it started.

use std::time::{Duration, Instant};

use chase::counters::program::Event;
use host::Source;
use host::processes::status::Status;
use model::{Cause, Unread};
use process::halt::{self, Descendants};
use process::tree;

use crate::Error;
use crate::live::process::{Process, UNKNOWN};
use crate::live::{Arm, Counting, Server};
use crate::metric::Asked;
use crate::rising::Rising;
use crate::score::Counter;

/// Between two readings of its counters.
const POLL_PERIOD: Duration = Duration::from_millis(100);
/// What goes up so often in a row counts: by chance a number that wavers does so in one of 4! cases, and its slices show it then.
const RISES: u32 = 3;
/// The share of all memory that one process has to hold, as pages are changed in one only.
const MOSTLY: f64 = 0.9;

/// The program, as the machine is set: THP is neither switched off nor advised.
pub struct Own<'a> {
    arm: Arm,
    server: Option<Server>,
    process: Process,
    source: Source,
    stop: &'a dyn Fn() -> bool,
    is_asked_to_end: bool,
    pmu_note: Option<String>,
    /// Dropped behind the process.
    left: Left,
}

/// What it may leave behind.
#[derive(Default)]
struct Left(Descendants);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<'a> Own<'a> {
    /// Starts it with these counters.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        arm: Arm,
        server: Option<Server>,
        counting: &Counting,
        stop: &'a dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            process: Process::start(&arm, counting, UNKNOWN)?,
            arm,
            server,
            source: Source::live(),
            stop,
            is_asked_to_end: false,
            pmu_note: counting.note(),
            left: Left::default(),
        })
    }

    /// Waits until it is ready, if it is a server that is loaded, or else until its counters go up again and again.
    ///
    /// # Errors
    /// If it ends before, or that takes longer than `patience`.
    pub fn until_it_works(&mut self, asked: &[Asked], patience: Duration) -> Result<(), Error> {
        if let Some(server) = self.server.clone() {
            return server.wait_until_ready(&self.arm, &mut self.process, self.stop);
        }
        let counters: Vec<Counter> = asked
            .iter()
            .filter_map(|asked| Counter::of(asked, &self.arm.name))
            .collect();
        let until = Instant::now() + patience;
        let mut rising = Rising::new(RISES);
        loop {
            if self.process.rest(POLL_PERIOD, self.stop)? {
                return Err(self.process.gone());
            }
            let why_not = match self.counts(&counters) {
                Ok(now) if rising.is_enough_with(&now) => return Ok(()),
                Ok(_) => None,
                Err(why) => Some(why),
            };
            if Instant::now() >= until {
                return Err(why_not.unwrap_or_else(|| self.stands_still(&counters, patience)));
            }
        }
    }

    fn counts(&self, counters: &[Counter]) -> Result<Vec<f64>, Error> {
        let read = |counter: &Counter| counter.read(&self.arm.name, &|| self.output(), self.stop);
        counters.iter().map(read).collect()
    }

    fn stands_still(&self, counters: &[Counter], patience: Duration) -> Error {
        let first = counters.first().map(|first| first.wanted.name.clone());
        Error::stands_still(&self.arm.name, first, patience)
    }

    /// The process that holds its memory: itself, or one that it started.
    ///
    /// # Errors
    /// If it is spread over several.
    pub fn holder(&self) -> Result<u32, Error> {
        let family = tree::of(&self.source, self.id());
        let unread = |why: Unread| Error::InPlace(format!("where the program's memory is could not be read: {why}"));
        if let Some(why) = family.not_whole {
            return Err(unread(why));
        }
        let sizes = family.pids.into_iter().map(|pid| Ok((pid, self.memory(pid)?)));
        let sizes: Vec<(u32, u64)> = sizes.collect::<Result<_, _>>().map_err(unread)?;
        let all: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        let largest = sizes.iter().max_by_key(|(_, bytes)| *bytes);
        let (pid, most) = largest.copied().unwrap_or((self.id(), 0));
        if most as f64 >= MOSTLY * all as f64 {
            return Ok(pid);
        }
        Err(Error::InPlace(format!(
            "the program's memory is in {} processes, of which the largest holds {:.0} %, and pages can be changed in one only",
            sizes.len(),
            100.0 * most as f64 / all as f64
        )))
    }

    fn memory(&self, pid: u32) -> Result<u64, Unread> {
        let path = format!("/proc/{pid}/status");
        let bytes = self.source.bytes(&path).into_result();
        let size = bytes.and_then(|bytes| Status::parse(&path, &bytes).rss_anon.into_result());
        match size {
            Ok(bytes) => Ok(bytes.0),
            // It has ended.
            Err(why) if why.unread == Cause::Absent => Ok(0),
            Err(why) => Err(why),
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The end of what it wrote so far.
    pub(super) fn output(&self) -> String {
        self.process.output()
    }

    /// What its counters counted since they were last read.
    pub(super) fn counted(&mut self) -> Vec<(Event, f64)> {
        self.process.counted()
    }

    /// Why it has no hardware counters, or what they leave out.
    pub(super) fn pmu_note(&self) -> Option<String> {
        self.pmu_note.clone()
    }

    /// That it has ended, as an error.
    pub(super) fn gone(&self) -> Error {
        self.process.gone()
    }

    /// Ends it as its user would: by `--stop`, or by a SIGTERM.
    ///
    /// # Errors
    /// If a server does not stop; then it is killed.
    pub fn end(mut self) -> Result<(), Error> {
        let Some(server) = self.server.clone() else {
            return Ok(());
        };
        self.left = Left(Descendants::of(&self.source, self.id()));
        self.is_asked_to_end = true;
        server.stop(&self.arm, &mut self.process, self.stop)
    }
}

impl Drop for Own<'_> {
    /// On every way out. Its descendants can be found only as long as it is there.
    fn drop(&mut self) {
        if !self.is_asked_to_end {
            self.left = Left(Descendants::of(&self.source, self.id()));
            halt::ask_to_end(&self.source, self.id());
        }
    }
}
