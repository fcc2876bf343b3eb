//! All arms alive at once, one running at a time: slices of time of programs that are stopped and continued.
//!
//! No slice pays for a start, and what a busy machine does to one it does to its neighbours in time. As each arm is one
//! process for the whole comparison, the luck of that process is in its score; so the reference is there twice, and the
//! comparison's own A/A is between those two processes.

mod alive;
mod halt;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use model::Bytes;
use model::compare::Run;

use self::alive::Alive;
use super::live::Arm;
use super::metric::Asked;
use super::threads::Threads;
use super::{Error, Executor};

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
}

/// Programs that are alive and take turns.
pub struct Slices<'a> {
    /// The arms, and behind them the reference again.
    arms: Vec<Arm>,
    asked: Vec<Asked>,
    plan: Plan,
    stop: &'a dyn Fn() -> bool,
    alive: Vec<Alive>,
    began: Instant,
}

impl<'a> Slices<'a> {
    /// Nothing is started yet. `asked` are counters; what every run has is left out.
    pub fn new(mut arms: Vec<Arm>, asked: Vec<Asked>, plan: Plan, stop: &'a dyn Fn() -> bool) -> Self {
        arms.extend(arms.first().cloned().map(|reference| Arm {
            name: reference.name.clone() + AGAIN,
            ..reference
        }));
        Self {
            arms,
            asked,
            plan,
            stop,
            alive: Vec::new(),
            began: Instant::now(),
        }
    }

    /// How many programs there will be.
    pub fn programs(&self) -> usize {
        self.arms.len()
    }

    /// The name of the program that is started next; `None` once all are there.
    pub fn next(&self) -> Option<&str> {
        self.arms.get(self.alive.len()).map(|arm| arm.name.as_str())
    }

    /// Starts the next program, waits until its counters go up, gives it one slice to settle, and stops it. Returns the
    /// memory that it has then. The comparison's time begins anew.
    ///
    /// # Errors
    /// If it cannot be started, ends, or its counters do not go up.
    pub fn start_next(&mut self) -> Result<Bytes, Error> {
        let Some(arm) = self.arms.get(self.alive.len()) else {
            return Ok(Bytes(0));
        };
        let mut alive = Alive::start(arm, &self.asked, self.stop)?;
        alive.until_it_counts(&self.plan, self.stop)?;
        let settled = alive.slice(&self.plan, self.stop)?;
        self.alive.push(alive);
        self.began = Instant::now();
        Ok(settled.memory().unwrap_or_default())
    }

    fn slice(&mut self, program: usize) -> Result<Run, Error> {
        self.alive[program].slice(&self.plan, self.stop)
    }
}

impl Executor for Slices<'_> {
    fn run(&mut self, arm: usize) -> Result<Run, Error> {
        self.slice(arm)
    }

    /// A slice of the other process of the reference.
    fn again(&mut self, _: usize) -> Result<Run, Error> {
        self.slice(self.alive.len() - 1)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Drop for Slices<'_> {
    /// All are asked at once; each is then waited for, and what it leaves behind ends with it.
    fn drop(&mut self) {
        self.alive.iter_mut().for_each(Alive::ask_to_end);
    }
}
