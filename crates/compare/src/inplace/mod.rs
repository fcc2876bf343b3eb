//! One process is compared with itself: its pages are flipped between slices of its time, and nothing else changes.
//!
//! Flipping, settling and looking at page tables come before and after a slice. Inside of it nothing happens but the
//! process's own work: a look takes longer on base pages than on huge ones, and would find the difference that it makes.

mod found;
mod own;
mod pair;
mod process;
mod slice;
mod warnings;

use std::time::Duration;

use model::compare::{Flip, Looks, Metric, Restored, Run, Slice};
use model::{Backing, Unread};

pub use self::found::compare as compare_found;
pub use self::own::Own;
pub use self::pair::Pair;
pub use self::process::Process;
use self::slice::Passed;
pub use self::slice::{Length, Sample, Whose};
use super::live::server::Load;
use super::score::Counter;
use super::{Around, Error, Executor, Keep, Outcome, Slot, Spec, experiment, live, proof};
use crate::flip::To;
use model::Progress;

/// After a flip the process has cold caches and a queue of its own for a moment; that much is left out. Collapsing 1 GiB
/// moves all of it through the caches, which the process fills again within a few milliseconds.
pub const SETTLE: Duration = Duration::from_millis(250);

/// How long a process is waited for that gets no CPU in a slice.
const WITHOUT_CPU: Duration = Duration::from_secs(2);

/// A process that ends gives its memory back first, and is known to have ended only then.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The process that is compared with itself: a real one, or a made one in tests.
pub(crate) trait Subject {
    /// Turns its memory to one page kind.
    ///
    /// # Errors
    /// If it cannot be reached, or the kernel does not allow it; pieces that are refused are counted.
    fn flip(&mut self, to: To) -> Result<Flip, Error>;
    /// What backs its memory.
    ///
    /// # Errors
    /// If that cannot be read.
    fn look(&mut self) -> Result<Backing, Unread>;
    /// Its CPU time and its counters; the arm is named in errors.
    ///
    /// # Errors
    /// If one of them cannot be read.
    fn sample(&mut self, counters: &[Counter], arm: &str) -> Result<Sample, Error>;
    /// Lets it live on for so long.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the user has had enough; any other if the process ends.
    fn live_on(&mut self, time: Duration) -> Result<(), Error>;
    /// Runs a load to its end.
    ///
    /// # Errors
    /// If the load cannot be run, or ends badly.
    fn load(&mut self, line: &str) -> Result<Load, Error>;
    /// Gives it the pages that it had at first.
    ///
    /// # Errors
    /// If it cannot be reached.
    fn restore(&mut self) -> Result<Restored, Error>;
    /// Has it ended, or does it within this time?
    fn has_ended(&self, within: Duration) -> bool;
    /// That it has ended, as an error; the arm is named in it.
    fn gone(&self, arm: &str) -> Error;
    /// Why its slices lack hardware counters, or what those leave out.
    fn pmu_note(&self) -> Option<String>;
    fn elapsed(&self) -> Duration;
}

/// What came of a comparison in place, and of the process.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) compared: Result<Outcome, Error>,
    /// How the process was left; `None` if it has ended, or is the comparison's own.
    pub(crate) restored: Option<Result<Restored, Error>>,
}

/// Compares; whatever happens, a process that lives on gets back the pages that it had.
pub(crate) fn run(
    spec: &Spec,
    done: Vec<(Slot, Run)>,
    pair: &Pair,
    subject: &mut impl Subject,
    keep: &mut dyn Keep,
    around: &dyn Around,
) -> Finished {
    let mut executor = InPlace { pair, subject };
    let compared = executor
        .trial(spec, &mut *around.progress())
        .and_then(|spec| experiment::run(&spec, done, &mut executor, keep, around));
    // A process that ends with the comparison needs none of its pages back.
    let lives_on = pair.whose == Whose::Found && !executor.subject.has_ended(Duration::ZERO);
    let restored = lives_on.then(|| executor.subject.restore());
    let left = restored.as_ref().and_then(|restored| restored.as_ref().ok());
    let compared = compared.map(|(mut compare, mut all)| {
        all.extend(compare.arms.iter().filter_map(warnings::pages_changed));
        all.extend(left.into_iter().flat_map(warnings::of_restored));
        compare.restored = left.cloned();
        (compare, all)
    });
    Finished { compared, restored }
}

/// Makes slices where whole runs would be made.
struct InPlace<'a, S> {
    pair: &'a Pair,
    subject: &'a mut S,
}

impl<S: Subject> Executor for InPlace<'_, S> {
    fn run(&mut self, arm: usize) -> Result<Run, Error> {
        let to = self.pair.arms[arm];
        self.slice(to).map_err(|error| self.or_gone(to, error))
    }

    fn elapsed(&self) -> Duration {
        self.subject.elapsed()
    }

    fn pmu_note(&self) -> Option<String> {
        self.subject.pmu_note()
    }
}

impl<S: Subject> InPlace<'_, S> {
    /// Flips to each arm once. Where one does not take effect, one block of slices says so as well as thirty.
    fn trial(&mut self, spec: &Spec, progress: &mut dyn Progress) -> Result<Spec, Error> {
        let mut all_work = true;
        for (to, named) in self.pair.arms.iter().zip(&spec.arms) {
            let what = format!("trying whether its memory can be flipped: {}", named.name);
            progress.step(0.0, spec.budget.unwrap_or_default(), &what);
            let flipped = self.subject.flip(*to);
            flipped.map_err(|error| self.or_gone(*to, error))?;
            let run = Run::bare([], self.subject.look());
            let (_, works) = proof::effect(named.kind, &mut [run], spec.least_coverage);
            all_work &= works.known() == Some(&true);
        }
        let mut spec = spec.clone();
        if !all_work {
            (spec.most, spec.all, spec.warm_up) = (1, true, 0);
        }
        Ok(spec)
    }

    fn slice(&mut self, to: To) -> Result<Run, Error> {
        let flip = self.subject.flip(to)?;
        self.subject.live_on(SETTLE)?;
        let before = self.look();
        let counters = self.pair.counters(to);
        let first = self.subject.sample(&counters, to.name())?;
        let load = self.pass()?;
        let mut last = self.subject.sample(&counters, to.name())?;
        // On a busy machine a short slice may pass before the process gets a CPU: then it goes on.
        let until = self.subject.elapsed() + WITHOUT_CPU;
        while load.is_none() && last.has_used_none_since(&first) && self.subject.elapsed() < until {
            self.pass()?;
            last = self.subject.sample(&counters, to.name())?;
        }
        let after = self.look();
        let passed = Passed { first, last, load };
        let metrics = slice::metrics(to.name(), &self.pair.asked, &counters, &passed)?;
        let large = |look: &Look| look.backing.as_ref().ok().map(Backing::large);
        let ends = [large(&before), large(&after)];
        let seconds = (before.took + after.took).as_secs_f64();
        let mut run = Run::bare(metrics, slice::worse(to.kind(), before.backing, after.backing));
        if let Some(backing) = run.backing.known() {
            let memory = backing.total().0 as f64;
            run.metrics.insert(Metric::Memory.name().to_owned(), memory);
        }
        run.looks = Looks { count: 2, seconds };
        live::count(&mut run, &passed.last.counted);
        run.ran.clone_from(&passed.last.ran);
        run.notes.extend(slice::notes(&flip, &passed));
        let [large_before, large_after] = ends;
        run.slice = Some(Slice {
            flip,
            large_before,
            large_after,
        });
        Ok(run)
    }

    /// The slice itself.
    fn pass(&mut self) -> Result<Option<Load>, Error> {
        match &self.pair.length {
            Length::Time(time) => self.subject.live_on(*time).map(|()| None),
            Length::Load(line) => self.subject.load(line).map(Some),
        }
    }

    fn look(&mut self) -> Look {
        let began = self.subject.elapsed();
        let backing = self.subject.look();
        let took = self.subject.elapsed() - began;
        Look { backing, took }
    }

    /// Whatever else failed: it failed because the process had ended, if it has.
    fn or_gone(&self, to: To, error: Error) -> Error {
        if matches!(error, Error::Interrupted) || !self.subject.has_ended(END_TIMEOUT) {
            return error;
        }
        self.subject.gone(to.name())
    }
}

/// What backs the memory, and how long it took to find out.
struct Look {
    backing: Result<Backing, Unread>,
    took: Duration,
}

#[cfg(test)]
mod tests;
