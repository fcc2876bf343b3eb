//! One experiment: a recipe, compared as `hugewise compare --workload` would.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use compare::{Comparison, Error, Request, RunLog, Task};
use host::programs::gc_log;
use host::{Input, Snapshot};
use model::Envelope;
use model::compare::{Ended, Order};
use model::gc::GcLog;
use model::suite::{Experiment, Outcome, Page, Suite};

use super::super::Desk;
use super::super::compare::around::Around;
use super::super::compare::store::Store;
use super::super::stop::Stop;
use super::directory::Directory;
use super::list;
use crate::recipes::experiments::Planned;
use crate::recipes::{self, Workload};
use crate::render::compare::events;

/// As `compare` has it where nothing is asked for.
const SMALLEST_EFFECT: f64 = 0.01;
const LEAST_COVERAGE: f64 = 0.5;
/// Each start of a server has so many loads that count.
const LOADS: u32 = 2;

/// What an experiment is made on.
pub(super) struct Bench<'a> {
    pub(super) desk: &'a Desk<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) directory: &'a Directory,
    pub(super) stop: Stop,
}

impl Bench<'_> {
    /// Its page; `None` if the user stopped it.
    pub(super) fn page(&self, planned: &Planned, time: Option<Duration>) -> Option<Page> {
        let began = Instant::now();
        let mut gc = BTreeMap::new();
        let outcome = match time {
            None => Outcome::NoTime,
            Some(time) => match self.outcome(planned, time, &mut gc) {
                Ok(outcome) => outcome?,
                Err(_) if self.stop.is_asked() => return None,
                Err(error) => {
                    let why = format!("{error:#}");
                    self.desk.ui.say(&format!("{}: {why}", planned.experiment.name));
                    Outcome::Failed(why)
                }
            },
        };
        Some(Page {
            experiment: planned.experiment.clone(),
            outcome,
            seconds: began.elapsed().as_secs_f64(),
            gc,
        })
    }

    /// A result of its page alone.
    pub(super) fn alone(&self, page: Page) -> Envelope<Suite> {
        let pages = vec![page];
        let warnings = pages.iter().flat_map(super::warnings).collect();
        self.desk.about(self.snapshot, warnings, Suite { host: None, pages })
    }

    fn outcome(
        &self,
        planned: &Planned,
        time: Duration,
        gc: &mut BTreeMap<String, Vec<GcLog>>,
    ) -> anyhow::Result<Option<Outcome>> {
        let Experiment {
            name, workload, arms, ..
        } = &planned.experiment;
        let lacking = list::lacking(planned, self.snapshot)?;
        if !lacking.is_empty() {
            return Ok(Some(Outcome::Lacking(lacking)));
        }
        let workload = recipes::choose(workload)?.build()?.set_up()?;
        workload.notice.iter().for_each(|notice| self.desk.ui.say(notice));
        let request = self.request(planned, &workload, time);
        let mut store = Store::beside(&self.directory.runs(name))?;
        let mut log = RunLog::new(&mut store);
        let around = Around::new(&self.desk.ui);
        let stop = || self.stop.is_asked();
        let compared = Comparison::prepare(&request, self.snapshot, &around, &mut log)
            .and_then(|comparison| comparison.carry_out(&around, &stop, &mut log));
        let (compare, warnings) = match compared {
            Ok(compared) => compared,
            Err(Error::Interrupted) => return Ok(None),
            Err(Error::Reference { arm, kind, backing }) => bail!(events::reference(&arm, kind, &backing)),
            Err(error) => return Err(error.into()),
        };
        if compare.design.ended == Ended::Interrupted {
            return Ok(None);
        }
        gc.extend(arms.iter().filter_map(|arm| logs(&workload, arm)));
        Ok(Some(Outcome::Compared {
            compare: Box::new(compare),
            warnings,
        }))
    }

    fn request(&self, planned: &Planned, workload: &Workload, time: Duration) -> Request {
        Request {
            task: task(planned, workload),
            arms: planned.experiment.arms.clone(),
            arms_file: None,
            places: Vec::new(),
            technique: None,
            design: None,
            order: Order::Mirrored,
            runs: None,
            budget: Some(time),
            warm_up: 1,
            smallest_effect: SMALLEST_EFFECT,
            least_coverage: LEAST_COVERAGE,
            ignore_failure: false,
            pool: None,
            no_pool: false,
            slice: None,
            threads: compare::threads::Threads::All,
            range: compare::flip::Span::Anon,
            seed: self.desk.seed,
        }
    }
}

/// Of the recipe's metrics those that the experiment judges: each one more is one question more.
fn task(planned: &Planned, workload: &Workload) -> Task {
    let mut task = workload.task.clone();
    if !planned.metrics.is_empty() {
        task.asked.retain(|asked| planned.metrics.contains(&asked.wanted.name));
    }
    if let Some(server) = &mut task.server {
        (server.warm_up, server.loads) = (1, LOADS);
    }
    task
}

/// The logs of an arm's collector, if it has any.
fn logs(workload: &Workload, arm: &str) -> Option<(String, Vec<GcLog>)> {
    let read = |path: std::path::PathBuf| Input::Metrics.text(&path).ok().map(|text| gc_log::parse(&text));
    let logs: Vec<GcLog> = workload.gc_logs(arm).into_iter().filter_map(read).collect();
    (!logs.is_empty()).then(|| (arm.to_owned(), logs))
}
