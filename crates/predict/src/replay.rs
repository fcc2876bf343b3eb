//! A trace through many settings at once: read one time, whatever its length, so that it may come through a pipe.

use std::io::Read;

use crate::error::ReplayError;
use crate::stretch::{Stretch, each_stretch};
use crate::trace::Trace;
use crate::trace::own::{Head, Told};
use translation::machine::{Machine, RowReading};
use translation::study::{
    Curve, Curves, MachineFacts, Setting, Simulation, StudyError, Sweep, engine, on_all_cpus, possible, unknown,
    weighed,
};
use translation::{Access, Counts, Engine, Scatter};

/// Accesses that are decoded at a time for each setting: they stay in a cache until they are simulated. Threads for many settings are worth their
/// start.
const STRETCH: usize = 1 << 16;
/// The same for many settings.
const LONGEST: usize = 1 << 18;
/// Parts of a run that are kept apart; of a longer trace without gaps, those beside each other are joined.
const MOST_PARTS: usize = 128;

/// What is asked of a trace.
#[derive(Clone, Debug)]
pub struct Replay {
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
    /// Run before each window and not counted: see [`crate::history()`].
    pub history: Vec<Vec<Access>>,
    /// Ask for misses by the number of TLB entries, too?
    pub curve: bool,
}

/// What a trace came to.
#[derive(Clone, Debug)]
pub struct Replayed {
    pub parts: Vec<Part>,
    /// Windows of the program's run; none where the trace has no gaps.
    pub windows: u64,
    /// Misses by the number of TLB entries, if asked for.
    pub curves: Vec<Curve>,
}

/// A window of a run, or a stretch of one without gaps.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The share of the run that it stands for, in any unit: processor time that is nearer to this window than to another one, or accesses.
    pub weight: f64,
    /// What the trace says of it, where it is a window.
    window: Told,
    /// Instructions, where the trace has them.
    pub instructions: f64,
    /// What it comes to in each setting.
    pub kept: Vec<Counts>,
    /// Likewise with empty TLBs at the start of the window, if asked for.
    pub forgot: Vec<Counts>,
}

impl Part {
    /// The share of so many TLB entries that may hold other pages by the time the window begins: none where fewer pages were used since the window
    /// before, all where they were not counted.
    pub(super) fn lost(&self, entries: u64) -> f64 {
        match self.window.used_pages {
            Some(used) => 1.0 - (entries as f64 / used.max(1) as f64).min(1.0),
            None => 1.0,
        }
    }

    /// All of them as one.
    pub(crate) fn sum(parts: &[Self]) -> Self {
        let mut parts = parts.iter();
        let mut sum = parts.next().cloned().unwrap_or_default();
        parts.for_each(|part| sum.join(part));
        sum
    }

    fn join(&mut self, other: &Self) {
        self.weight += other.weight;
        self.instructions += other.instructions;
        for (own, more) in self.kept.iter_mut().zip(&other.kept) {
            *own += more;
        }
    }
}

/// Runs a trace; `progress` hears of the bytes that were read. What follows is decoded while a stretch is simulated.
///
/// # Errors
/// What is wrong with the trace, or that the machine cannot do what is asked.
pub fn replay<R: Read + Send>(
    replay: &Replay,
    trace: &mut Trace<R>,
    progress: &dyn Fn(u64),
) -> Result<Replayed, ReplayError> {
    let check = |&setting: &Setting| possible(&replay.machine, setting);
    replay.settings.iter().try_for_each(check)?;
    if replay.machine.vcpus > 1 {
        return Err(ReplayError::Vcpus);
    }
    let has_windows = trace.head.is_some();
    let (mut running, mut parts) = (Running::new(replay, has_windows), Vec::<Part>::new());
    let long = (STRETCH * replay.settings.len()).min(LONGEST);
    each_stretch(trace, (replay.warm_up, replay.accesses), long, |stretch| {
        progress(stretch.offset);
        let part = running.part(stretch);
        if !stretch.counted().is_empty() {
            parts.push(part);
        }
        if parts.len() > MOST_PARTS && !has_windows {
            parts = parts.chunks(2).map(Part::sum).collect();
        }
    })?;
    if has_windows {
        let is_whole = parts.iter().map(|part| part.kept[0].accesses).sum::<u64>() < replay.accesses;
        let end = trace.head.as_ref().and_then(|head| head.run_us).filter(|_| is_whole);
        weigh(&mut parts, end);
    }
    match parts.is_empty() {
        true => Err(ReplayError::OnlyWarmUp),
        false => Ok(Replayed {
            parts,
            windows: trace.told.windows,
            curves: running.curves.map_or_else(Vec::new, Curves::finish),
        }),
    }
}

/// All engines, and what passes from stretch to stretch.
struct Running<'a> {
    /// Their TLBs keep what the window before left.
    keeping: Vec<Engine>,
    /// Their TLBs are empty at the start of each window.
    forgetting: Vec<Engine>,
    /// What runs before each window that is still to come.
    history: std::slice::Iter<'a, Vec<Access>>,
    curves: Option<Curves>,
}

impl<'a> Running<'a> {
    fn new(replay: &'a Replay, has_windows: bool) -> Self {
        let engines = || replay.settings.iter().map(|setting| engine(&replay.machine, *setting));
        Self {
            keeping: engines().collect(),
            forgetting: engines().filter(|_| replay.forgets && has_windows).collect(),
            history: replay.history.iter(),
            curves: replay.curve.then(|| Curves::of(&replay.settings, None)),
        }
    }

    /// Runs a stretch, and what comes before it.
    fn part(&mut self, stretch: &Stretch) -> Part {
        if let Some(between) = self.history.next() {
            for engines in [&mut self.keeping, &mut self.forgetting] {
                each(engines, |engine| engine.run_stored(between));
            }
        }
        let (before, counted) = (stretch.before(), stretch.counted());
        let count = |engine: &mut Engine| {
            engine.run_stored(before);
            engine.reset_counts();
            engine.run_stored(counted);
            engine.counts()
        };
        let kept = each(&mut self.keeping, count);
        self.curves.iter_mut().for_each(|curves| curves.add(before, counted));
        self.forgetting.iter_mut().for_each(Engine::flush);
        Part {
            weight: counted.len() as f64,
            window: stretch.window,
            instructions: stretch.instructions(),
            kept,
            forgot: each(&mut self.forgetting, count),
        }
    }
}

/// Each window stands for the time around it, up to the middle between two; the first one for all before it, the last one for all up to the end of the run, if that is
/// known. Windows without times are all alike.
fn weigh(windows: &mut [Part], end: Option<u64>) {
    let times: Vec<u64> = windows.iter().map(|part| part.window.at_us).collect();
    let middle = |place: usize| f64::midpoint(times[place] as f64, times[place + 1] as f64);
    let last = times.len().saturating_sub(1);
    for (place, window) in windows.iter_mut().enumerate() {
        let from = if place == 0 { 0.0 } else { middle(place - 1) };
        let to = match end {
            _ if place < last => middle(place),
            Some(end) => end.max(times[place]) as f64,
            None => times[place] as f64,
        };
        window.weight = (to - from).max(1.0);
    }
}

/// Each engine does the same, on all CPUs; gives what came of each.
fn each<T: Send>(engines: &mut [Engine], run: impl Fn(&mut Engine) -> T + Sync) -> Vec<T> {
    on_all_cpus(engines, &|_, _| {}, run)
}

impl Replay {
    /// Base pages lie where the trace saw those of the program, unless the machine says where. In order, if neither does.
    pub fn lay_pages(&mut self, head: Option<&Head>) {
        let scatter = &mut self.machine.scatter;
        let seen = head.and_then(|head| head.frames.as_ref());
        *scatter = scatter.or(seen.map(Scatter::of));
        if scatter.is_none() {
            self.machine.readings.push(RowReading::FramesInOrder);
        }
    }

    /// A trace's parts as a simulation, in which they are one.
    ///
    /// # Errors
    /// If the baseline is not among the settings.
    pub fn simulation(&self, input: String, replayed: &Replayed) -> Result<Simulation, StudyError> {
        let all = Part::sum(&replayed.parts);
        let base = self.settings.iter().position(|&setting| setting == self.baseline);
        let base = base.ok_or(StudyError::NoBaseline)?;
        let baseline = (&all.kept[base], self.baseline);
        let case = |(setting, counts): (&Setting, &Counts)| weighed(&self.machine, None, *setting, counts, baseline);
        Ok(Simulation {
            machine: MachineFacts::of(&self.machine),
            input,
            is_dependent: false,
            accesses: all.kept[base].accesses,
            warm_up: self.warm_up,
            baseline: self.baseline,
            unknown: self.unknown(),
            cases: self.settings.iter().zip(&all.kept).map(case).collect(),
            published: Vec::new(),
            curves: replayed.curves.clone(),
        })
    }

    pub fn unknown(&self) -> Vec<Sweep> {
        unknown(&self.machine, &self.settings)
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
