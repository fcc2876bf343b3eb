//! All arms alive at once, one running at a time: slices of time of programs that are stopped and continued.
//!
//! What a busy machine does to one slice it does to those before and after it. But the slices of a process share the luck of that
//! process: where its memory lies, how its hashes are seeded. So all programs are started anew after a few slices of each, in a
//! random order; the process, not the slice, is what the test exchanges. The reference is there twice, and the comparison's own
//! A/A is between those processes.

mod alive;
mod started;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use model::Bytes;
use model::compare::{Run, Start};

pub(crate) use self::started::compare;
use super::around::{Around, Event};
use super::live::{Arm, Counting, trial};
use super::metric::Asked;
use super::threads::Threads;
use super::{Error, Executor};
use crate::worker::Worker;
use stats::rounds;

/// The variable that names a program's arm.
const VARIABLE: &str = "HUGEWISE_ARM";

/// What `{arm}` stands for in the second process of the reference, after the reference's name.
const AGAIN: &str = "-again";

/// How slices are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How long one program runs at a time.
    pub slice: Duration,
    /// Whose CPU time its counters are held against.
    pub threads: Threads,
    /// How long a program may take until its counters go up.
    pub patience: Duration,
    /// Slices of each program that do not count, after each of its starts; one at least.
    pub warm_up: u32,
    /// The seed of the order in which programs are started.
    pub seed: u64,
}

/// Programs that are alive and take turns.
pub struct Slices<'a> {
    /// The arms, and behind them the reference again.
    arms: Vec<Arm>,
    asked: Vec<Asked>,
    counting: Counting,
    plan: Plan,
    stop: &'a dyn Fn() -> bool,
    /// In the order in which they were started, each with its arm.
    alive: Vec<(usize, Worker<'a>)>,
    began: Instant,
}

impl<'a> Slices<'a> {
    /// Nothing is started yet. `asked` are counters; what every run has is left out.
    pub fn new(
        mut arms: Vec<Arm>,
        asked: Vec<Asked>,
        counting: Counting,
        plan: Plan,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        arms.extend(arms.first().cloned().map(|reference| Arm {
            name: reference.name.clone() + AGAIN,
            ..reference
        }));
        Self {
            arms,
            asked,
            counting,
            plan,
            stop,
            alive: Vec::new(),
            began: Instant::now(),
        }
    }

    /// Starts those that are not there yet, one by one.
    fn start_all(&mut self, least: f64, around: &dyn Around) -> Result<(), Error> {
        while self.alive.len() < self.arms.len() {
            self.start_next(least, around)?;
        }
        Ok(())
    }

    /// Starts the next program, waits until its counters go up, gives it one slice to settle, and stops it. Of several ways
    /// to its pages it takes the first that reaches the share `least` of its memory. The comparison's time begins anew.
    /// The memory that it has; `None` if that could not be read.
    ///
    /// # Errors
    /// If it cannot be started, ends, or its counters do not go up.
    fn start_next(&mut self, least: f64, around: &dyn Around) -> Result<Option<Bytes>, Error> {
        let mut arm = self.arms[self.alive.len()].clone();
        around.report(&Event::Starting(&arm.name));
        let mut last = None;
        let mut start = |arm: &Arm| {
            // The memory of one way is given back before another is tried.
            last = None;
            let (alive, settled) = self.start(arm)?;
            last = Some((alive, settled.clone()));
            Ok(settled)
        };
        trial::try_ways(&mut arm, least, around, &mut start)?;
        let (alive, settled) = match last.filter(|(alive, _)| alive.has(&arm.setup)) {
            Some(there) => there,
            None => self.start(&arm)?,
        };
        self.take(arm, alive);
        Ok(settled.memory())
    }

    fn start(&self, arm: &Arm) -> Result<(Worker<'a>, Run), Error> {
        let mut named = arm.clone();
        named.setup.env.push((VARIABLE.into(), arm.name.clone().into()));
        let mut alive = Worker::start(named, &self.asked, &self.counting, self.stop)?;
        alive.until_it_halts(&self.plan)?;
        let mut settled = alive.slice(&self.plan)?;
        for _ in 1..self.plan.warm_up {
            settled = alive.slice(&self.plan)?;
        }
        Ok((alive, settled))
    }

    /// The reference's way is that of its second process, too.
    fn take(&mut self, arm: Arm, alive: Worker<'a>) {
        if let (true, Some(twin)) = (self.alive.is_empty(), self.arms.last_mut()) {
            twin.setup = arm.setup.clone();
            twin.others = Vec::new();
        }
        let place = self.alive.len();
        self.arms[place].setup = arm.setup;
        self.alive.push((place, alive));
        self.began = Instant::now();
    }

    /// Ends all that were started; the next is the first again.
    pub fn end(&mut self) {
        self.alive.iter_mut().for_each(|(_, alive)| alive.ask_to_end());
        self.alive.clear();
    }

    fn slice(&mut self, program: usize) -> Result<Run, Error> {
        let of_program = self.alive.iter_mut().find(|(place, _)| *place == program);
        let (_, alive) = of_program.ok_or_else(|| Error::InPlace("no program of this arm was started".to_owned()))?;
        alive.slice(&self.plan)
    }
}

impl Executor for Slices<'_> {
    /// Ends all and starts all anew, each in the way that it was found to take. Which is first is left to chance: a machine
    /// may treat the first one otherwise.
    fn begin(&mut self, start: u32) -> Result<(), Error> {
        self.end();
        for place in rounds::order(self.arms.len(), self.plan.seed, start) {
            let (alive, _) = self.start(&self.arms[place])?;
            self.alive.push((place, alive));
        }
        Ok(())
    }

    fn run(&mut self, arm: usize) -> Result<Run, Error> {
        self.slice(arm)
    }

    /// A slice of the other process of the reference.
    fn again(&mut self, _: usize) -> Result<Run, Error> {
        self.slice(self.arms.len() - 1)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn starts(&self) -> Vec<Start> {
        // The last one is the reference's second.
        let arms = self.arms.len().saturating_sub(1);
        self.arms.iter().take(arms).map(Arm::start).collect()
    }

    fn pmu_note(&self) -> Option<String> {
        self.counting.note()
    }
}

impl Drop for Slices<'_> {
    /// All are asked at once; each is then waited for, and what it leaves behind ends with it.
    fn drop(&mut self) {
        self.end();
    }
}
