//! A trace through many settings at once: read one time, whatever its length, so that it may come through a pipe.

use std::io::Read;
use std::ops::AddAssign;
use std::thread;

use super::cost::Sweep;
use super::run::{StudyError, possible, unknown, weighed};
use super::{MachineFacts, Setting, Simulation};
use crate::translation::access::Access;
use crate::translation::engine::{Accesses, Counts, Engine, Event, Setup};
use crate::translation::front::BLOCK;
use crate::translation::layout::Layout;
use crate::translation::machine::Machine;
use crate::translation::names::TooSpread;
use crate::translation::trace::{Trace, TraceError};

/// Accesses that are decoded at a time.
const CHUNK: usize = 1 << 18;
/// Parts of a run that are kept apart; of a longer trace without gaps, those beside each other are joined.
const MOST_PARTS: usize = 128;

/// What is asked of a trace.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The machine.
    pub machine: Machine,
    /// Who translates, with which pages.
    pub settings: Vec<Setting>,
    /// The setting that times are relative to.
    pub baseline: Setting,
    /// Accesses before those that count; where a trace has windows, the first half of each is besides.
    pub warm_up: u64,
    /// Accesses that are counted at most.
    pub accesses: u64,
    /// Count windows a second time, with TLBs that are empty at the start of each: else they hold what the window before left.
    pub forgets: bool,
    /// Run before the trace and not counted: see [`super::history`].
    pub history: Vec<Access>,
}

/// What a trace came to.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// In their order.
    pub parts: Vec<Part>,
    /// Windows of the program's run; none where the trace has no gaps.
    pub windows: u64,
}

/// A window of a run, or a stretch of one without gaps.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The share of the run that it stands for, in any unit: processor time before a window since the one before, or accesses.
    pub weight: f64,
    /// Instructions, where the trace has them.
    pub instructions: f64,
    /// For each setting.
    pub counts: Vec<Counts>,
    /// Likewise with empty TLBs at the start of the window, if asked for.
    pub forgot: Vec<Counts>,
}

impl Part {
    fn join(&mut self, other: &Self) {
        self.weight += other.weight;
        self.instructions += other.instructions;
        for (counts, more) in self.counts.iter_mut().zip(&other.counts) {
            *counts += more;
        }
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, more: &Self) {
        self.accesses += more.accesses;
        for (level, more) in self.levels.iter_mut().zip(&more.levels) {
            level.lookups += more.lookups;
            level.misses += more.misses;
        }
        for (walker, more) in self.walkers.iter_mut().zip(&more.walkers) {
            walker.add(more);
        }
        self.exits.add(more.exits);
        self.shootdowns += more.shootdowns;
    }
}

/// A stretch of a trace in memory.
struct Stored<'a>(std::slice::Chunks<'a, Access>);

impl Accesses for Stored<'_> {
    type Error = TooSpread;

    fn fill(&mut self, block: &mut Vec<Access>) -> Result<Option<Event>, TooSpread> {
        block.extend_from_slice(self.0.next().unwrap_or_default());
        Ok(None)
    }
}

/// Accesses up to a gap or a number of them, and what the trace said of them.
#[derive(Default)]
struct Stretch {
    accesses: Vec<Access>,
    /// Bytes of the trace up to its end.
    offset: u64,
    instructions: u64,
    /// Processor time since the window before.
    time: f64,
}

impl Stretch {
    /// Takes the next accesses in place of its own; are there any?
    fn read<R: Read>(&mut self, trace: &mut Trace<R>) -> Result<bool, TraceError> {
        let before = trace.told().instructions;
        let is_any = self.fill(trace)?;
        let window = trace.finished_window();
        self.offset = trace.offset();
        self.instructions = if trace.head().is_some() {
            window.instructions
        } else {
            trace.told().instructions - before
        };
        self.time = (window.at_us.saturating_sub(window.before_us) as f64).max(1.0);
        Ok(is_any)
    }

    fn fill<R: Read>(&mut self, trace: &mut Trace<R>) -> Result<bool, TraceError> {
        let all = &mut self.accesses;
        all.clear();
        let has_windows = trace.head().is_some();
        loop {
            let before = all.len();
            match trace.fill(all)? {
                Some(_) if all.is_empty() => {}
                Some(_) => return Ok(true),
                None if all.len() == before => return Ok(!all.is_empty()),
                None if all.len() >= CHUNK && !has_windows => return Ok(true),
                None => {}
            }
        }
    }

    /// Those that warm up, and those that count: at most so many of each, but half of a window always warms up.
    fn split(&self, warm_up: u64, most: u64, has_windows: bool) -> (&[Access], &[Access]) {
        let all = self.accesses.len() as u64;
        let half = if has_windows { all / 2 } else { 0 };
        let (before, counted) = self.accesses.split_at(half.max(warm_up).min(all) as usize);
        (
            before,
            &counted[..counted.len().min(most.try_into().unwrap_or(usize::MAX))],
        )
    }

    /// As a part of the run, of which so many accesses count.
    fn part(&self, counted: usize, has_windows: bool, counts: Vec<Counts>, forgot: Vec<Counts>) -> Part {
        Part {
            // A window stands for the time since the one before; a trace whose windows have no times has them all alike.
            weight: if has_windows { self.time } else { counted as f64 },
            instructions: self.instructions as f64 * counted as f64 / self.accesses.len() as f64,
            counts,
            forgot,
        }
    }
}

/// Runs a trace; `progress` hears of the bytes that were read. What follows is decoded while a stretch is simulated.
///
/// # Errors
/// What is wrong with the trace, or that the machine cannot do what is asked.
pub fn replay<R: Read>(replay: &Replay, trace: &mut Trace<R>, progress: &dyn Fn(u64)) -> Result<Replayed, StudyError> {
    let check = |&setting: &Setting| possible(&replay.machine, setting);
    replay.settings.iter().try_for_each(check)?;
    if replay.machine.surroundings.vcpus() > 1 {
        return Err(StudyError::VcpusOfTrace);
    }
    let engines = || replay.settings.iter().map(|setting| engine(replay, *setting));
    let mut keeping: Vec<Engine> = engines().collect();
    let has_windows = trace.head().is_some();
    let mut forgetting: Vec<Engine> = engines().filter(|_| replay.forgets && has_windows).collect();
    for engines in [&mut keeping, &mut forgetting] {
        run_all(engines, &replay.history, &[], || ())?;
    }
    let mut parts = Vec::<Part>::new();
    let (mut warm_up, mut left) = (replay.warm_up, replay.accesses);
    let (mut stretch, mut next) = (Stretch::default(), Stretch::default());
    let mut is_any = left > 0 && stretch.read(trace)?;
    while is_any {
        progress(stretch.offset);
        let (before, counted) = stretch.split(warm_up, left, has_windows);
        warm_up = warm_up.saturating_sub(stretch.accesses.len() as u64);
        left -= counted.len() as u64;
        // A pipe may have no more than what counts.
        let mut read = Ok(false);
        let counts = run_all(&mut keeping, before, counted, || {
            if left > 0 {
                read = next.read(trace);
            }
        })?;
        forgetting.iter_mut().for_each(Engine::flush);
        let forgot = run_all(&mut forgetting, before, counted, || ())?;
        if !counted.is_empty() {
            parts.push(stretch.part(counted.len(), has_windows, counts, forgot));
        }
        if parts.len() > MOST_PARTS && !has_windows {
            parts = joined(&parts);
        }
        is_any = read?;
        std::mem::swap(&mut stretch, &mut next);
    }
    let windows = trace.told().windows;
    match parts.is_empty() {
        true => Err(StudyError::OnlyWarmUp),
        false => Ok(Replayed { parts, windows }),
    }
}

fn engine(replay: &Replay, setting: Setting) -> Engine {
    let setup = Setup {
        arrays: replay.machine.arrays.clone(),
        layout: Layout::uniform(setting.backing()),
        mode: setting.mode,
        tagged: false,
    };
    super::run::engine(&replay.machine, setup)
}

fn joined(parts: &[Part]) -> Vec<Part> {
    let pair = |pair: &[Part]| {
        let mut first = pair[0].clone();
        pair[1..].iter().for_each(|second| first.join(second));
        first
    };
    parts.chunks(2).map(pair).collect()
}

/// Each engine over the same accesses, on all CPUs; gives what each counted. This thread does something else during that.
fn run_all(
    engines: &mut [Engine],
    before: &[Access],
    counted: &[Access],
    meanwhile: impl FnOnce(),
) -> Result<Vec<Counts>, TooSpread> {
    let run = |engine: &mut Engine| {
        engine.run(&mut Stored(before.chunks(BLOCK)), u64::MAX)?;
        engine.reset_counts();
        engine.run(&mut Stored(counted.chunks(BLOCK)), u64::MAX)?;
        Ok(engine.counts())
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let each = engines.len().div_ceil(cpus).max(1);
    thread::scope(|scope| {
        let work = |engines| scope.spawn(move || <[Engine]>::iter_mut(engines).map(run).collect::<Result<Vec<_>, _>>());
        let threads: Vec<_> = engines.chunks_mut(each).map(work).collect();
        meanwhile();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

impl Replay {
    /// A trace's parts as a simulation, in which they are one.
    ///
    /// # Errors
    /// If the baseline is not among the settings.
    pub fn simulation(&self, input: String, replayed: &Replayed) -> Result<Simulation, StudyError> {
        let mut parts = replayed.parts.iter();
        let mut all = parts.next().cloned().unwrap_or_default();
        parts.for_each(|part| all.join(part));
        let base = self.settings.iter().position(|&setting| setting == self.baseline);
        let base = base.ok_or(StudyError::NoBaseline)?;
        let baseline = (&all.counts[base], self.baseline);
        let case = |(setting, counts): (&Setting, &Counts)| weighed(&self.machine, None, *setting, counts, baseline);
        Ok(Simulation {
            machine: MachineFacts::of(&self.machine),
            input,
            is_dependent: false,
            accesses: all.counts[base].accesses,
            warm_up: self.warm_up,
            baseline: self.baseline,
            unknown: self.unknown(),
            cases: self.settings.iter().zip(&all.counts).map(case).collect(),
            published: Vec::new(),
        })
    }

    /// What was swept.
    pub fn unknown(&self) -> Vec<Sweep> {
        unknown(&self.machine, &self.settings)
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
