//! One program that is stopped but for its slices: its counters, its CPU time, and what backs it.

use std::thread;
use std::time::{Duration, Instant};

use model::compare::{Metric, Run};
use process::{Attention, Watch, halt};

use super::Plan;
use crate::Error;
use crate::live;
use crate::metric::From;
use crate::score::{self, Counter, Mark, Score};
use crate::technique::{Collapse, Setup};
use crate::threads::Threads;
use crate::worker::Worker;

/// Tries to stop a program when its counters can be read, and the first moment between two: each is twice as long as the one
/// before, since on a busy machine the program may have to wait for a CPU.
const TRIES: u32 = 10;
const POLL_PERIOD: Duration = Duration::from_millis(1);

impl Worker<'_> {
    /// Was it started like this, whatever that is called?
    pub(super) fn has(&self, setup: &Setup) -> bool {
        let mut own = Setup {
            words: setup.words.clone(),
            ..self.arm.setup.clone()
        };
        // The variable with its name.
        own.env.pop();
        own == *setup
    }

    /// Runs it until every counter has gone up once, and stops it.
    pub(super) fn until_it_halts(&mut self, plan: &Plan) -> Result<(), Error> {
        self.until_it_counts(1, plan.patience)?;
        if self.counters.iter().any(is_answered_by_the_program) {
            self.halt()
        } else {
            self.halt_between_writes(&plan.threads).map(drop)
        }
    }

    /// Lets it run for a slice. Everything slow happens before and after, while it is stopped.
    pub(super) fn slice(&mut self, plan: &Plan) -> Result<Run, Error> {
        self.process.squeeze();
        let awake = self.counters.iter().any(is_answered_by_the_program);
        let asleep = |worker: &Self| (!awake).then(|| worker.mark(&plan.threads)).transpose();
        let before = asleep(self)?;
        // What was counted before this slice is no part of it.
        self.process.counted();
        self.process.ran();
        halt::go_on(&self.source, self.id());
        let began = Instant::now();
        let from = before.map_or_else(|| self.mark(&plan.threads), Ok)?;
        let mut to = self.rest_and_halt(plan, awake)?;
        // On a busy machine a short slice may pass before the program gets a CPU: then it goes on.
        for _ in 1..TRIES {
            if !to.times.since(&from.times).cpu.is_zero() {
                break;
            }
            halt::go_on(&self.source, self.id());
            to = self.rest_and_halt(plan, awake)?;
        }
        let wall = began.elapsed();
        let score = score::between(&self.arm.name, &self.counters, &from, &to)?;
        Ok(self.run(wall, score))
    }

    /// Waits for the length of a slice, and stops it; the counters and times at that end.
    fn rest_and_halt(&mut self, plan: &Plan, awake: bool) -> Result<Mark, Error> {
        if self.process.rest(plan.slice, self.stop)? {
            return Err(self.process.gone());
        }
        if !awake {
            return self.halt_between_writes(&plan.threads);
        }
        let to = self.mark(&plan.threads)?;
        self.halt().map(|()| to)
    }

    /// Stopped while it writes its counter, it would show half of it until its next slice: then it goes on for a moment.
    fn halt_between_writes(&self, threads: &Threads) -> Result<Mark, Error> {
        for tried in 0..TRIES {
            self.halt()?;
            match self.mark(threads) {
                Err(Error::Metric { .. }) => {}
                other => return other,
            }
            halt::go_on(&self.source, self.id());
            thread::sleep(POLL_PERIOD * (1 << tried));
        }
        self.halt()?;
        self.mark(threads)
    }

    fn halt(&self) -> Result<(), Error> {
        let stopped = halt::stop(&self.source, self.id(), |tree| self.process.guard(tree));
        stopped.map_err(|error| Error::asked(format!("arm {}: stopping it", self.arm.name), error.to_string()))
    }

    fn mark(&self, threads: &Threads) -> Result<Mark, Error> {
        let times = threads.times(&self.source, self.id());
        let what = || format!("arm {}: the CPU time of its threads", self.arm.name);
        let times = times.map_err(|why| Error::asked(what(), why.to_string()))?;
        Ok(Mark {
            counts: self.counts()?,
            times,
        })
    }

    /// What the slice was worth, and what backs the program now that it is stopped.
    fn run(&mut self, wall: Duration, score: Score) -> Run {
        let mut watch = Watch::new(Attention::Free, None);
        watch.tick(self.id());
        let seen = watch.finish(0);
        let memory = (seen.peak.0 > 0).then_some((Metric::Memory, seen.peak.0 as f64));
        let metrics = [
            (Metric::Wall, wall.as_secs_f64()),
            (Metric::Cpu, score.used.cpu.as_secs_f64()),
        ];
        let metrics = live::named(metrics.into_iter().chain(memory));
        let mut run = Run {
            text: (self.arm.setup.collapse == Some(Collapse::Text)).then_some(seen.text),
            looks: seen.looks,
            notes: score.used.note().into_iter().collect(),
            ran: self.process.ran(),
            ..Run::bare(metrics.chain(score.rates), seen.backing)
        };
        live::count(&mut run, &self.process.counted());
        // What kept the arm from its pages stands last, where a verdict looks for it.
        run.notes.extend(self.process.note());
        run.notes.extend(self.arm.setup.lacks.clone());
        run
    }
}

fn is_answered_by_the_program(counter: &Counter) -> bool {
    counter.from.as_ref().is_some_and(From::asks_the_program)
}
