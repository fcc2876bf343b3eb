//! Runs for real: starts the program as an arm asks, watches it from outside, and reads its accounts at the end.

mod arm;
mod counted;
mod family;
pub(super) mod process;
mod serve;
pub(super) mod server;
mod shell;
mod squeeze;
mod text;
pub(super) mod trial;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ::process::{Attention, Cpu, Ended, Outputs};
use chase::counters::program::Event;
use host::Source;
use model::compare::{Compare, Metric, Run, Start};
use model::{Backing, Bytes, PageKind, Warning, counted};

pub use self::arm::Arm;
pub use self::counted::Counting;
use self::family::Family;
use self::process::{Done, Process};
pub use self::server::{LOADS, Server};
pub use self::shell::clean_up;
pub(crate) use self::shell::hook;
pub(crate) use self::trial::compare;
use super::around::Lender;
use super::metric::{Asked, From};
use super::policy::LEAST_BASE;
use super::score::Counter;
use super::technique::Collapse;
use super::{Around, Error, Executor, warnings};

/// A reference on base pages that runs for longer is looked at by then: what it took of huge pages it has.
const EARLY: Duration = Duration::from_secs(8);
/// Of less memory than this not much is huge, and it may be the loader's.
const LEAST_MEMORY: Bytes = Bytes::mib(32);

pub struct Live<'a> {
    /// The arms, in the order of their indices.
    pub arms: Vec<Arm>,
    /// Metrics that are looked for in texts.
    pub asked: Vec<Asked>,
    /// How to use the program if it is a server.
    pub server: Option<Server>,
    pub counting: Counting,
    /// Take runs that end with an error all the same?
    pub ignore_failure: bool,
    /// Asked between waits: has the user had enough?
    pub stop: &'a dyn Fn() -> bool,
    /// Of a program that runs for longer it is reported, once, as it may never end.
    pub patience: Duration,
    pub around: &'a dyn Around,
    pub(crate) is_told: Cell<bool>,
    /// By arm: runs that ended with an error and are taken all the same, and how the last of them ended.
    pub(crate) failed: RefCell<BTreeMap<String, (usize, String)>>,
    pub began: Instant,
    /// Pages on loan for the arms that need them.
    pub(crate) lender: Option<Lender<'a>>,
    /// What the memory of a server comes to once all that it shares is touched; 0 if that is not known.
    pub(crate) whole: Cell<Bytes>,
    /// The most memory of any run so far, arm by arm: the next one is looked at when it has come near. Empty at first.
    pub peaks: BTreeMap<usize, Bytes>,
}

impl Executor for Live<'_> {
    fn run(&mut self, arm: usize) -> Result<Run, Error> {
        let expected = self.peaks.get(&arm).copied().unwrap_or_default();
        let run = self.one(&self.arms[arm], Attention::Measured(expected))?;
        let peak = run.memory().unwrap_or_default();
        self.peaks.insert(arm, peak.max(expected));
        Ok(run)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn starts(&self) -> Vec<Start> {
        self.arms.iter().map(Arm::start).collect()
    }

    fn pmu_note(&self) -> Option<String> {
        self.counting.note()
    }

    fn warnings(&self, compare: &Compare) -> Vec<Warning> {
        let failed = |(arm, (count, status)): (&String, &(usize, String))| {
            let text = format!(
                "{} of `{arm}`, warm-up and trials among them, ended with an error (the last one with {status}), and count all the same: they may have \
                 done less",
                counted(*count, "run")
            );
            Warning::new("runs-failed", text)
        };
        let reporting = host::reports_free_pages(&Source::live()).then(|| warnings::free_page_reporting(compare));
        self.failed
            .borrow()
            .iter()
            .map(failed)
            .chain(reporting.flatten())
            .collect()
    }
}

impl Live<'_> {
    fn one(&self, arm: &Arm, attention: Attention) -> Result<Run, Error> {
        let _lent = self.lender.as_ref().map(|lender| lender.lend(&arm.lent));
        hook(arm, arm.before.as_deref(), "before", self.stop)?;
        let made = match &self.server {
            None => self.program(arm, attention),
            Some(server) => self.serve(arm, server, attention),
        };
        let after = hook(arm, arm.after.as_deref(), "after", self.stop);
        let mut run = made.and_then(|run| after.map(|()| run))?;
        run.notes.extend(arm.setup.lacks.clone());
        Ok(run)
    }

    fn program(&self, arm: &Arm, attention: Attention) -> Result<Run, Error> {
        let mut process = Process::start(arm, &self.counting, attention)?;
        self.wait_for_end(arm, &mut process)?;
        let done = process.end()?;
        self.must_be_well(arm, &done.process.ended, &done.process.outputs)?;
        let is_read = |asked: &Asked| asked.pattern.is_some() && asked.from.is_none();
        let own = if self.asked.iter().any(is_read) {
            done.process.outputs.all()
        } else {
            String::new()
        };
        let mut run = run(done, arm);
        let backing = run.backing.known();
        backing.map_or(Ok(()), |backing| self.must_be_base(arm, backing))?;
        run.metrics.extend(self.find(arm, Some(&own), |_| true)?);
        Ok(run)
    }

    fn wait_for_end(&self, arm: &Arm, process: &mut Process) -> Result<(), Error> {
        if self.is_first_of(arm) {
            if process.wait(Some(EARLY), self.stop)? {
                return Ok(());
            }
            let look = Family::new(process.id(), "", None).look();
            look.backing
                .map_or(Ok(()), |backing| self.must_be_base(arm, &backing))?;
        }
        if !process.wait(Some(self.patience), self.stop)? && !self.is_told.replace(true) {
            self.around.report(&crate::Event::StillRuns(self.patience));
        }
        process.wait(None, self.stop).map(drop)
    }

    fn must_be_well(&self, arm: &Arm, ended: &Ended, outputs: &Outputs) -> Result<(), Error> {
        if ended.status.success() {
            return Ok(());
        }
        if self.ignore_failure {
            let mut failed = self.failed.borrow_mut();
            let (count, status) = failed.entry(arm.name.clone()).or_default();
            (*count, *status) = (*count + 1, ended.status.to_string());
            return Ok(());
        }
        let what = format!(
            "the program ended with {} (--ignore-failure takes such runs all the same)",
            ended.status
        );
        Err(Error::failed(arm, what, &outputs.errors()))
    }

    /// The metrics that are looked for in texts: in the program's `own`, and at those places whose time it is.
    fn find(&self, arm: &Arm, own: Option<&str>, is_due: fn(&From) -> bool) -> Result<Vec<(String, f64)>, Error> {
        let mut found = Vec::new();
        for counter in self.asked.iter().filter_map(|asked| Counter::of(asked, &arm.name)) {
            if counter.from.as_ref().map_or(own.is_some(), is_due) {
                let own = || own.unwrap_or_default().to_owned();
                let value = counter.read(&arm.name, &own, self.stop)?;
                found.push((counter.wanted.name, value));
            }
        }
        Ok(found)
    }

    /// Stops a comparison whose reference is on huge pages that it took by itself, in its first run.
    ///
    /// # Errors
    /// [`Error::Reference`].
    fn must_be_base(&self, arm: &Arm, backing: &Backing) -> Result<(), Error> {
        let is_base = backing.share(PageKind::Base).is_none_or(|share| share >= LEAST_BASE);
        if is_base || backing.total() < LEAST_MEMORY || !self.is_first_of(arm) {
            return Ok(());
        }
        Err(Error::Reference {
            arm: arm.name.clone(),
            kind: PageKind::Base,
            backing: backing.clone(),
        })
    }

    /// Is it the reference on base pages, in its first run?
    fn is_first_of(&self, arm: &Arm) -> bool {
        let is_reference = self.arms.first().is_some_and(|reference| reference.name == arm.name);
        is_reference && arm.kind == Some(PageKind::Base) && self.peaks.is_empty()
    }
}

/// What collapsing from outside took is the arm's: without it its pages would not be there.
fn run(done: Done, arm: &Arm) -> Run {
    let process = done.process;
    let seen = process.seen;
    let mut metrics = vec![(Metric::Wall, process.wall.as_secs_f64())];
    if let Some(Cpu { user, system }) = process.ended.cpu {
        let system = system + done.collapsing.as_secs_f64();
        metrics.extend([
            (Metric::Cpu, user + system),
            (Metric::User, user),
            (Metric::System, system),
        ]);
    }
    if let Some(counts) = process.ended.counts {
        metrics.extend([
            (Metric::Faults, counts.faults as f64),
            (Metric::MajorFaults, counts.major_faults as f64),
            (Metric::Waits, counts.waits as f64),
            (Metric::Preemptions, counts.preemptions as f64),
        ]);
    }
    // Of a program that ended before it could be looked at, it is not known.
    metrics.extend((seen.peak.0 > 0).then_some((Metric::Memory, seen.peak.0 as f64)));
    metrics.extend(seen.migrations.map(|moves| (Metric::Migrations, moves as f64)));
    let mut run = Run {
        text: (arm.setup.collapse == Some(Collapse::Text)).then_some(seen.text),
        looks: seen.looks,
        notes: done.note.into_iter().collect(),
        ran: done.ran,
        ..Run::bare(named(metrics), seen.backing)
    };
    count(&mut run, &process.counts);
    run
}

/// Metrics by their names in a run.
pub(crate) fn named(metrics: impl IntoIterator<Item = (Metric, f64)>) -> impl Iterator<Item = (String, f64)> {
    let metrics = metrics.into_iter();
    metrics.map(|(metric, value)| (metric.name().to_owned(), value))
}

/// Counts replace what was seen from outside.
pub(super) fn count(run: &mut Run, counts: &[(Event, f64)]) {
    let (metrics, not_counted) = counted::metrics(counts);
    run.metrics.extend(named(metrics));
    run.notes.extend(not_counted.map(str::to_owned));
}

#[cfg(test)]
mod tests;
