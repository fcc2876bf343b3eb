//! One program that is stopped but for its slices: its counters, its CPU time, and what backs it.

use std::thread;
use std::time::{Duration, Instant};

use host::Source;
use model::compare::{Metric, Run};
use process::halt::{self, Descendants};
use process::{Attention, Watch};

use super::Plan;
use crate::live::process::{Process, UNKNOWN};
use crate::live::{self, Arm, Counting, hook};
use crate::metric::{Asked, From};
use crate::rising::Rising;
use crate::score::{self, Counter, Mark, Score};
use crate::technique::{Collapse, Setup};
use crate::threads::Threads;
use crate::{Error, experiment};

/// The variable that names a program's arm.
const VARIABLE: &str = "HUGEWISE_ARM";
/// Between two readings of counters that have not gone up yet.
const POLL_PERIOD: Duration = Duration::from_millis(50);
/// Tries to stop a program when its counters can be read, and the first moment between two: each is twice as long as the one
/// before, since on a busy machine the program may have to wait for a CPU.
const TRIES: u32 = 10;
const MOMENT: Duration = Duration::from_millis(1);

/// A program of an arm.
pub(super) struct Alive {
    arm: Arm,
    process: Process,
    counters: Vec<Counter>,
    source: Source,
    is_asked_to_end: bool,
    /// Dropped behind the process.
    after: After,
}

/// What is left to do when the program has ended.
struct After {
    arm: Arm,
    descendants: Descendants,
}

impl Alive {
    pub(super) fn start(
        arm: &Arm,
        asked: &[Asked],
        counting: &Counting,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        hook(arm, arm.before.as_deref(), "before", stop)?;
        let counters = asked.iter().filter_map(|asked| Counter::of(asked, &arm.name));
        let mut named = arm.clone();
        named.setup.env.push((VARIABLE.into(), arm.name.clone().into()));
        Ok(Self {
            counters: counters.collect(),
            process: Process::start(&named, counting, UNKNOWN)?,
            source: Source::live(),
            is_asked_to_end: false,
            after: After {
                arm: arm.clone(),
                descendants: Descendants::default(),
            },
            arm: arm.clone(),
        })
    }

    /// Was it started like this, whatever that is called?
    pub(super) fn has(&self, setup: &Setup) -> bool {
        let own = Setup {
            words: setup.words.clone(),
            ..self.arm.setup.clone()
        };
        own == *setup
    }

    /// Runs it until every counter has gone up once, and stops it.
    pub(super) fn until_it_counts(&mut self, plan: &Plan, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let until = Instant::now() + plan.patience;
        let mut rising = Rising::new(1);
        loop {
            if self.process.wait(Some(POLL_PERIOD), stop)? {
                return Err(self.process.gone());
            }
            let why_not = match self.counts(stop) {
                Ok(now) if rising.is_enough_with(&now) => return self.first_halt(&plan.threads, stop),
                Ok(_) => None,
                Err(why) => Some(why),
            };
            if Instant::now() >= until {
                return Err(why_not.unwrap_or_else(|| self.stands_still(plan.patience)));
            }
        }
    }

    fn stands_still(&self, patience: Duration) -> Error {
        let first = self.counters.first().map(|first| first.wanted.name.clone());
        Error::stands_still(&self.arm.name, first, patience)
    }

    /// Lets it run for a slice. Everything slow happens before and after, while it is stopped.
    pub(super) fn slice(&mut self, plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Run, Error> {
        self.process.squeeze();
        let awake = self.counters.iter().any(is_answered_by_the_program);
        let asleep = |alive: &Self| (!awake).then(|| alive.mark(&plan.threads, stop)).transpose();
        let before = asleep(self)?;
        // What was counted before this slice is no part of it.
        self.process.counted();
        halt::go_on(&self.source, self.process.id());
        let began = Instant::now();
        let from = before.map_or_else(|| self.mark(&plan.threads, stop), Ok)?;
        if self.process.rest(plan.slice, stop)? {
            return Err(self.process.gone());
        }
        let to = awake.then(|| self.mark(&plan.threads, stop)).transpose()?;
        let to = to.map_or_else(
            || self.halt_between_writes(&plan.threads, stop),
            |to| self.halt().map(|()| to),
        )?;
        let wall = began.elapsed();
        let score = score::between(&self.arm.name, &self.counters, &from, &to)?;
        Ok(self.run(wall, score))
    }

    /// Stopped while it writes its counter, it would show half of it until its next slice: then it goes on for a moment.
    fn halt_between_writes(&self, threads: &Threads, stop: &dyn Fn() -> bool) -> Result<Mark, Error> {
        for tried in 0..TRIES {
            self.halt()?;
            match self.mark(threads, stop) {
                Err(Error::Metric { .. }) => {}
                other => return other,
            }
            halt::go_on(&self.source, self.process.id());
            thread::sleep(MOMENT * (1 << tried));
        }
        self.halt()?;
        self.mark(threads, stop)
    }

    fn first_halt(&self, threads: &Threads, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        if self.counters.iter().any(is_answered_by_the_program) {
            self.halt()
        } else {
            self.halt_between_writes(threads, stop).map(drop)
        }
    }

    fn halt(&self) -> Result<(), Error> {
        let stopped = halt::stop(&self.source, self.process.id(), |tree| self.process.guard(tree));
        stopped.map_err(|error| Error::Setup {
            arm: self.arm.name.clone(),
            what: "stopping it".to_owned(),
            error,
        })
    }

    fn mark(&self, threads: &Threads, stop: &dyn Fn() -> bool) -> Result<Mark, Error> {
        let times = threads.times(&self.source, self.process.id());
        let times = times.map_err(|why| Error::Setup {
            arm: self.arm.name.clone(),
            what: "the CPU time of its threads".to_owned(),
            error: std::io::Error::other(why.to_string()),
        })?;
        Ok(Mark {
            counts: self.counts(stop)?,
            times,
        })
    }

    fn counts(&self, stop: &dyn Fn() -> bool) -> Result<Vec<f64>, Error> {
        let read = |counter: &Counter| counter.read(&self.arm.name, &|| self.process.output(), stop);
        self.counters.iter().map(read).collect()
    }

    /// What the slice was worth, and what backs the program now that it is stopped.
    fn run(&mut self, wall: Duration, score: Score) -> Run {
        let mut watch = Watch::new(Attention::Free);
        watch.tick(self.process.id());
        let seen = watch.finish(0);
        let memory = (seen.peak.0 > 0).then_some((Metric::Memory, seen.peak.0 as f64));
        let metrics = [
            (Metric::Wall, wall.as_secs_f64()),
            (Metric::Cpu, score.used.cpu.as_secs_f64()),
        ];
        let metrics = metrics.into_iter().chain(memory);
        let metrics = metrics.map(|(metric, value)| (metric.name().to_owned(), value));
        let ended = (score.used.ended > 0).then(|| {
            format!(
                "{} threads ended in this slice: the last of their CPU time is not in it",
                score.used.ended
            )
        });
        let mut run = Run {
            text: (self.arm.setup.collapse == Some(Collapse::Text)).then_some(seen.text),
            looks: seen.looks,
            notes: ended.into_iter().collect(),
            ..experiment::bare_run(metrics.chain(score.rates), seen.backing)
        };
        live::count(&mut run, &self.process.counted());
        // What kept the arm from its pages stands last, where a verdict looks for it.
        run.notes.extend(self.notes());
        run
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let lacks = self.arm.setup.lacks.clone();
        self.process.note().into_iter().chain(lacks)
    }

    /// Continues it, and asks it to end. Its descendants can be found only as long as it is there.
    pub(super) fn ask_to_end(&mut self) {
        self.after.descendants = Descendants::of(&self.source, self.process.id());
        self.is_asked_to_end = true;
        halt::ask_to_end(&self.source, self.process.id());
    }
}

impl Drop for Alive {
    /// A stopped program could not end.
    fn drop(&mut self) {
        if !self.is_asked_to_end {
            self.ask_to_end();
        }
    }
}

impl Drop for After {
    /// A hook that fails here can be handled no more.
    fn drop(&mut self) {
        self.descendants.end();
        let _ = hook(&self.arm, self.arm.after.as_deref(), "after", &|| false);
    }
}

fn is_answered_by_the_program(counter: &Counter) -> bool {
    counter.from.as_ref().is_some_and(From::asks_the_program)
}
