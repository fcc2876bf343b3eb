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

use model::compare::{Run, Start};
use model::{Bytes, PageKind};

pub(crate) use self::started::compare;
use super::live::{Arm, Counting, trial};
use super::metric::Asked;
use super::threads::Threads;
use super::{Error, Executor};
use crate::worker::Worker;
use stats::rounds;

/// Slices of each program between two starts: two blocks and the same backwards, so that steady drift cancels out. More of them
/// would say more about a process, but it is processes that differ.
pub const PER_START: u32 = 4;

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

/// A program that was started, and is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The memory that it has; `None` if that could not be read.
    pub memory: Option<Bytes>,
    /// How its pages come about, in words, where that was found by trial.
    pub technique: Option<String>,
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

    /// The name of the program that is started next; `None` once all are there.
    pub fn next(&self) -> Option<&str> {
        self.arms.get(self.alive.len()).map(|arm| arm.name.as_str())
    }

    /// Starts the next program, waits until its counters go up, gives it one slice to settle, and stops it. Of several ways
    /// to pages of `kind` it takes the first that reaches the share `least` of its memory. The comparison's time begins anew.
    ///
    /// # Errors
    /// If it cannot be started, ends, or its counters do not go up.
    pub fn start_next(&mut self, kind: Option<PageKind>, least: f64) -> Result<Started, Error> {
        let mut arm = self.arms[self.alive.len()].clone();
        let kind = kind.filter(|kind| kind.is_large());
        let mut last = None;
        let mut start = |arm: &Arm| {
            // The memory of one way is given back before another is tried.
            last = None;
            let (alive, settled) = self.start(arm)?;
            last = Some((alive, settled.clone()));
            Ok(settled)
        };
        let technique = kind.map_or(Ok(None), |kind| trial::try_ways(&mut arm, kind, least, &mut start))?;
        let (alive, settled) = match last.filter(|(alive, _)| alive.has(&arm.setup)) {
            Some(there) => there,
            None => self.start(&arm)?,
        };
        self.take(arm, alive);
        Ok(Started {
            memory: settled.memory(),
            technique,
        })
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
