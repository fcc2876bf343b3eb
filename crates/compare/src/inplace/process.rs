//! A real process as the subject: flipped from outside, read through /proc, never stopped; ended only if it is our own.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use host::processes::Stat;
use host::{Snapshot, Source};
use model::compare::{Flip, Restored};
use model::{Backing, Unread};
use placement::Collector;

use super::own::Own;
use super::{Sample, Subject};
use crate::Error;
use crate::around::{Around, Event};
use crate::flip::{self, Flipped, To};
use crate::live::server::{self, Load};
use crate::live::{Arm, Counting};
use crate::metric::From;
use crate::score::{Counter, Mark};
use crate::threads::{Threads, Times};

/// How long a wish to stop may wait.
const STEP: Duration = Duration::from_millis(100);
/// Times that a counter's file is read again where it has no number, and the pause before.
const REREADS: u32 = 5;
const RETRY_PERIOD: Duration = Duration::from_millis(3);

/// The share of its memory that has to be flipped.
const MOSTLY_FLIPPED: f64 = 0.5;
/// Below this share, it is said.
const WORTH_SAYING: f64 = 0.95;

/// Of a process that was found running.
const NOT_COUNTED: &str = "a program is counted from its start on, which a process that runs already is past (a command after `--`, with \
     --design flip, is started)";

pub struct Process<'a> {
    pid: u32,
    handle: OwnedFd,
    /// The program that it is of, if the comparison started it. It ends before its pages would be given back.
    own: Option<Own<'a>>,
    /// Where it runs, of one that was found running.
    collector: Option<Collector>,
    flipped: Flipped,
    source: Source,
    threads: Threads,
    stop: &'a dyn Fn() -> bool,
    began: Instant,
}

impl<'a> Process<'a> {
    /// Opens a process; its pages as they are now are those that it will be given back.
    ///
    /// # Errors
    /// If it cannot be reached, has no memory of that kind, or no such threads.
    pub fn open(spec: flip::Spec, threads: Threads, stop: &'a dyn Fn() -> bool) -> Result<Self, Error> {
        let pid = spec.pid;
        let handle = process::handle(pid).map_err(|error| flip::Error::Process {
            pid,
            source: error.into(),
        })?;
        let process = Self {
            pid,
            handle,
            own: None,
            collector: None,
            flipped: Flipped::open(spec)?,
            source: Source::live(),
            threads,
            stop,
            began: Instant::now(),
        };
        process.times()?;
        Ok(process)
    }

    /// Reports what of its memory cannot be flipped, before it is.
    ///
    /// # Errors
    /// If that is most of it: then a comparison would be about the rest.
    pub(crate) fn tell_reach(&self, around: &dyn Around) -> Result<(), Error> {
        // What cannot be read now is reported by the first look at its pages.
        let Ok((flipped, shared)) = self.flipped.reach() else {
            return Ok(());
        };
        let beside = shared.backing.total();
        let share = flipped.0 as f64 / (flipped.0 + beside.0).max(1) as f64;
        if share < MOSTLY_FLIPPED {
            return Err(Error::InPlace(format!(
                "only {:.0} % of the memory of process {} can be flipped: {flipped} of private memory, beside {beside} of shared memory \
                 ({}), whose pages its program and shmem_enabled decide",
                share * 100.0,
                self.pid,
                shared.name
            )));
        }
        if share < WORTH_SAYING {
            let pid = self.pid;
            around.report(&Event::NotFlipped {
                pid,
                flipped,
                shared: beside,
                name: &shared.name,
            });
        }
        Ok(())
    }

    /// The same as a process of a program that the comparison started, whose CPU time is that of all its processes.
    #[must_use]
    pub fn of(self, own: Own<'a>) -> Self {
        Self { own: Some(own), ..self }
    }

    /// The same with where it runs from now on, if the kernel counts that for this user.
    #[must_use]
    pub fn placed(self, snapshot: &Snapshot) -> Self {
        let collector = Counting::places(snapshot).collector_of_running(self.pid);
        Self { collector, ..self }
    }

    /// Ends the program that it is of, if the comparison started it.
    ///
    /// # Errors
    /// If it does not stop as it was asked to; then it is killed.
    pub fn end(self) -> Result<(), Error> {
        self.own.map_or(Ok(()), Own::end)
    }

    /// Clock ticks from boot to its begin: another process with the same id has others.
    pub fn started(&self) -> Option<u64> {
        self.stat()?.started()
    }

    fn stat(&self) -> Option<Stat> {
        Stat::of(&self.source, self.pid).into_result().ok()?
    }

    fn times(&self) -> Result<Times, Error> {
        let root = self.own.as_ref().map_or(self.pid, |own| own.worker.id());
        let times = self.threads.times(&self.source, root);
        times.map_err(|why| Error::InPlace(format!("--threads: {why}")))
    }
}

/// A file is empty for a moment while it is written anew.
fn patiently(counter: &Counter, arm: &str, output: &dyn Fn() -> String, stop: &dyn Fn() -> bool) -> Result<f64, Error> {
    let read = || counter.read(arm, output, stop);
    for _ in 0..REREADS {
        match read() {
            Err(_) if matches!(counter.from, Some(From::File(_))) => thread::sleep(RETRY_PERIOD),
            told => return told,
        }
    }
    read()
}

impl Subject for Process<'_> {
    fn flip(&mut self, to: To) -> Result<Flip, Error> {
        let flip = self.flipped.flip(to, self.stop)?;
        if (self.stop)() {
            return Err(Error::Interrupted);
        }
        Ok(flip)
    }

    fn look(&mut self) -> Result<Backing, Unread> {
        self.flipped.look()
    }

    /// Counters first, at both ends of a slice: what reading them takes is then left out of both times alike.
    fn sample(&mut self, counters: &[Counter], arm: &str) -> Result<Sample, Error> {
        let stat = self.stat();
        let own = self.own.as_ref();
        let output = || own.map_or_else(String::new, |own| own.worker.process.outputs.output());
        let counts = counters
            .iter()
            .map(|counter| patiently(counter, arm, &output, self.stop));
        let counts = counts.collect::<Result<Vec<f64>, Error>>()?;
        let counted = self.own.as_mut();
        let counted = counted.map_or_else(Vec::new, |own| own.worker.process.counted());
        let ran = match (&mut self.own, &mut self.collector) {
            (Some(own), _) => own.worker.process.ran(),
            (None, collector) => collector.as_mut().map(|collector| {
                collector.look_now();
                collector.take()
            }),
        };
        let times = self.times()?;
        Ok(Sample {
            at: self.elapsed().as_secs_f64(),
            mark: Mark { counts, times },
            stat,
            counted,
            ran,
        })
    }

    fn live_on(&mut self, time: Duration) -> Result<(), Error> {
        let until = Instant::now() + time;
        loop {
            if (self.stop)() {
                return Err(Error::Interrupted);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if self.has_ended(left.min(STEP)) {
                return Err(Error::InPlace(format!("process {} has ended", self.pid)));
            }
        }
    }

    fn load(&mut self, line: &str) -> Result<Load, Error> {
        let arm = Arm {
            name: format!("process {}", self.pid),
            ..Arm::default()
        };
        server::load(&arm, line, self.stop, || Ok(self.has_ended(Duration::ZERO)))
    }

    fn restore(&mut self) -> Result<Restored, Error> {
        Ok(self.flipped.restore()?)
    }

    fn has_ended(&self, within: Duration) -> bool {
        // An error is a signal: what it means is asked next.
        process::has_ended_within(&self.handle, within).unwrap_or(false)
    }

    fn gone(&self, arm: &str) -> Error {
        let of_another = || Error::Gone {
            arm: arm.to_owned(),
            status: "a status that only its parent learns".to_owned(),
            said: String::new(),
        };
        let gone = self.own.as_ref();
        gone.map_or_else(of_another, |own| own.worker.process.gone())
    }

    fn pmu_note(&self) -> Option<String> {
        let not_counted = || Some(NOT_COUNTED.to_owned());
        self.own.as_ref().map_or_else(not_counted, |own| own.pmu_note.clone())
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::patiently;
    use crate::score::Counter;

    #[test]
    fn a_file_that_is_being_written_anew_is_read_again() {
        let file = std::env::temp_dir().join(format!("hugewise-counter-{}", std::process::id()));
        std::fs::write(&file, "").expect("a file");
        let asked = format!("ops=ops ([0-9]+),from={}", file.display());
        let counter = Counter::of(&asked.parse().expect("a metric"), "thp").expect("a counter");
        let written = file.clone();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1));
            std::fs::write(written, "ops 17\n").expect("written");
        });
        // The writer may be kept waiting for longer than a reader is patient: then it is read once more.
        let read = patiently(&counter, "thp", &String::new, &|| false);
        writer.join().expect("ended");
        let read = read.or_else(|_| patiently(&counter, "thp", &String::new, &|| false));
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(read.expect("a number"), 17.0);
        let error = patiently(&counter, "thp", &String::new, &|| false)
            .expect_err("it is gone")
            .to_string();
        assert!(error.contains("--metric ops"), "{error}");
    }
}
