//! Comparisons for tests: a plan, and an executor without programs and without a clock, with noise of real runs and effects
//! that are known.

use std::cell::Cell;
use std::time::Duration;

use super::{Around, Error, Event, Executor, Named, Shortage, Spec, Wanted};
use model::compare::{Because, Method, Metric, Order, Run};
use model::{Backing, Bytes, PageKind, Progress};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Thirty blocks of arms that are named after their page kinds.
pub(crate) fn spec(method: Method, kinds: &[PageKind], wanted: Wanted) -> Spec {
    let named = |kind: &PageKind| Named {
        name: kind.to_string(),
        technique: "made".to_owned(),
        kind: Some(*kind),
        place: None,
    };
    Spec {
        program: vec!["made".to_owned()],
        method,
        reason: Because::Asked,
        in_place: None,
        arms: kinds.iter().map(named).collect(),
        wanted: vec![wanted],
        order: Order::Mirrored,
        most: 30,
        per_start: 1,
        looked: Vec::new(),
        earlier: Duration::ZERO,
        loads: None,
        all: true,
        warm_up: 0,
        smallest_effect: 0.01,
        alpha: 0.05,
        least_coverage: 0.5,
        budget: None,
        is_budget_kept: false,
        seed: 7,
    }
}

/// Wall and CPU time of each recorded run, in seconds.
pub(crate) fn noise() -> Vec<(f64, f64)> {
    let lines = include_str!("noise.txt").lines().filter(|line| !line.starts_with('#'));
    let seconds = |text: &str| text.parse::<f64>().expect("microseconds") / 1e6;
    lines
        .map(|line| line.split_once(' ').expect("two numbers"))
        .map(|(wall, cpu)| (seconds(wall), seconds(cpu)))
        .collect()
}

/// Runs whose times are recorded ones, in the order of the record from a random place on, times the arm's effect.
pub(crate) struct Simulated {
    noise: Vec<(f64, f64)>,
    next: usize,
    effects: Vec<f64>,
    kinds: Vec<PageKind>,
    pub(crate) made: Vec<usize>,
    clock: Duration,
    pub(crate) interrupted_after: usize,
    /// Runs of the arms but the first that do not get their pages.
    pub(crate) missing: Option<Missing>,
}

/// Runs that do not get their pages, by chance: they are on base pages and take so many times as long.
pub(crate) struct Missing {
    pub(crate) share: f64,
    pub(crate) times: f64,
    pub(crate) rng: Pcg64Mcg,
}

#[derive(Default)]
pub(crate) struct Told {
    /// What a verdict takes, if that is more time than there is.
    pub(crate) least: Cell<Option<Duration>>,
    /// How often a program did not end in time.
    pub(crate) still_runs: Cell<u32>,
}

impl Around for Told {
    fn report(&self, event: &Event<'_>) {
        match event {
            Event::ShortTime { least, .. } => self.least.set(Some(*least)),
            Event::StillRuns(_) => self.still_runs.set(self.still_runs.get() + 1),
            _ => {}
        }
    }

    fn progress(&self) -> Box<dyn Progress> {
        Box::new(())
    }

    fn borrow(&self, _: &[(PageKind, Bytes)]) -> Vec<Shortage> {
        Vec::new()
    }

    fn give_back(&self) {}

    fn library(&self, _: &'static [u8]) -> Option<std::path::PathBuf> {
        None
    }
}

impl Simulated {
    /// `effects` are the arms' times as multiples of the reference's; every arm gets the pages of its kind.
    pub(crate) fn new(effects: &[f64], kinds: &[PageKind], seed: u64) -> Self {
        let noise = noise();
        let next = Pcg64Mcg::seed_from_u64(seed).random_range(0..noise.len());
        Self {
            noise,
            next,
            effects: effects.to_vec(),
            kinds: kinds.to_vec(),
            made: Vec::new(),
            clock: Duration::ZERO,
            interrupted_after: usize::MAX,
            missing: None,
        }
    }
}

impl Executor for Simulated {
    fn run(&mut self, arm: usize) -> Result<Run, Error> {
        if self.made.len() >= self.interrupted_after {
            return Err(Error::Interrupted);
        }
        self.made.push(arm);
        let (wall, cpu) = self.noise[self.next % self.noise.len()];
        self.next += 1;
        let mut is_unread = false;
        let missing = self.missing.as_mut().filter(|_| arm > 0).and_then(|missing| {
            is_unread = missing.rng.random::<f64>() < 0.1;
            (missing.rng.random::<f64>() < missing.share).then_some(missing.times)
        });
        let times = missing.unwrap_or(self.effects[arm]);
        let kind = missing.map_or(self.kinds[arm], |_| PageKind::Base);
        let (wall, cpu) = (wall * times, cpu * times);
        self.clock += Duration::from_secs_f64(wall);
        let backing: Backing = [(kind, Bytes::mib(100))].into_iter().collect();
        let faults = if kind == PageKind::Base { 25_700.0 } else { 310.0 };
        let metrics = [(Metric::Wall, wall), (Metric::Cpu, cpu), (Metric::Faults, faults)]
            .map(|(metric, value)| (metric.name().to_owned(), value));
        let unread = model::Unread::new(model::Cause::Absent, "/proc/PID/smaps", "it had ended");
        Ok(Run::bare(metrics, if is_unread { Err(unread) } else { Ok(backing) }))
    }

    fn elapsed(&self) -> Duration {
        self.clock
    }
}

/// Slices of processes that differ: what a process draws at its start it keeps to its end.
pub(crate) struct Processes {
    /// The standard deviation between processes, and that between slices of one.
    sd: (f64, f64),
    effects: Vec<f64>,
    /// Of the arms' processes, and the reference's second.
    speeds: Vec<f64>,
    rng: Pcg64Mcg,
    /// A start with its slices takes so long.
    per_start: Duration,
    clock: Duration,
}

impl Processes {
    /// `effects` are the arms' rates as multiples of the reference's.
    pub(crate) fn new(effects: &[f64], sd: (f64, f64), seed: u64) -> Self {
        Self {
            sd,
            effects: effects.to_vec(),
            speeds: Vec::new(),
            rng: Pcg64Mcg::seed_from_u64(seed),
            per_start: Duration::from_secs(1),
            clock: Duration::ZERO,
        }
    }

    /// The same whose programs take so long from a start to the next.
    pub(crate) fn taking(self, per_start: Duration) -> Self {
        Self { per_start, ..self }
    }

    /// Nearly normal, with a standard deviation of 1: the sum of twelve even draws.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.rng.random::<f64>()).sum::<f64>() - 6.0
    }

    fn slice(&mut self, process: usize) -> Run {
        let arm = process % self.effects.len();
        let rate = self.effects[arm] * (self.speeds[process] + self.sd.1 * self.normal()).exp();
        let backing: Backing = [(PageKind::Base, Bytes::mib(100))].into_iter().collect();
        Run::bare([("ops".to_owned(), 1e6 * rate)], Ok(backing))
    }
}

impl Executor for Processes {
    fn begin(&mut self, _: u32) -> Result<(), Error> {
        self.speeds = (0..=self.effects.len()).map(|_| self.sd.0 * self.normal()).collect();
        self.clock += self.per_start;
        Ok(())
    }

    fn run(&mut self, arm: usize) -> Result<Run, Error> {
        Ok(self.slice(arm))
    }

    fn again(&mut self, _: usize) -> Result<Run, Error> {
        Ok(self.slice(self.effects.len()))
    }

    fn elapsed(&self) -> Duration {
        self.clock
    }
}
