//! One experiment: a recipe, compared as `hugewise compare --workload` would.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use compare::{Comparison, Error, Request, RunLog, Task};
use host::Snapshot;
use model::compare::{Compare, Ended};
use model::gc::GcLog;
use model::suite::{Experiment, Outcome, Page, Suite};
use model::{Envelope, PageKind, Warning};
use programs::gc_log;

use super::super::compare::around::Around;
use super::super::compare::store::Store;
use super::super::session::Session;
use super::directory::Directory;
use super::list;
use crate::recipes::Workload;
use crate::recipes::experiments::Planned;
use crate::render::prove::compare::events;
use crate::stop;

/// What an experiment is made on.
pub(super) struct Bench<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) directory: &'a Directory,
}

impl Bench<'_> {
    /// Its page; `None` if the user stopped it.
    pub(super) fn page(&self, planned: &Planned, time: Option<Duration>) -> Option<Page> {
        let began = Instant::now();
        let mut gc = BTreeMap::new();
        let outcome = match time {
            None => Outcome::NoTime,
            Some(time) => match self.outcome(planned, time, &mut gc) {
                Ok(outcome) => outcome,
                Err(_) if stop::is_asked() => return None,
                Err(error) => {
                    let why = format!("{error:#}");
                    self.session.ui.say(&format!("{}: {why}", planned.experiment.name));
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
        let warnings = pages.iter().flat_map(warnings).collect();
        self.session.about(self.snapshot, warnings, Suite { host: None, pages })
    }

    fn outcome(
        &self,
        planned: &Planned,
        time: Duration,
        gc: &mut BTreeMap<String, Vec<GcLog>>,
    ) -> anyhow::Result<Outcome> {
        let Experiment { name, arms, .. } = &planned.experiment;
        let lacking = list::lacking(planned, self.snapshot);
        if !lacking.is_empty() {
            return Ok(Outcome::Lacking(lacking));
        }
        let workload = planned.chosen.set_up(&planned.chosen.build()?)?;
        let notice = planned.chosen.notice();
        notice.iter().for_each(|notice| self.session.ui.say(notice));
        let (mut arms, mut left_out) = (arms.clone(), Vec::new());
        let around = Around::new(&self.session.ui);
        let began = Instant::now();
        let (compare, mut warnings) = loop {
            let left = time.saturating_sub(began.elapsed());
            let mut store = Store::beside(&self.directory.runs(name))?;
            let request = Request::plain(task(planned, &workload), arms.clone(), left, self.session.seed);
            match self.compared(&request, &around, &mut store) {
                Ok(compared) => break compared,
                Err(error) => {
                    let Some(arm) = dispensable(&error, &arms) else {
                        return Err(not_compared(name, error));
                    };
                    let short = around.shortage(arm).map(|short| format!("{short}; "));
                    let short = short.unwrap_or_default();
                    let text = format!("the arm {arm} was left out: {short}{error}");
                    self.session.ui.say(&format!("{name}: {text}"));
                    arms.retain(|other| *other != arm.to_string());
                    // Its finished runs are those of all arms. A file that cannot be removed is refused above.
                    let _ = std::fs::remove_file(self.directory.runs(name));
                    left_out.push(Warning::new("left-out", text));
                }
            }
        };
        warnings.extend(left_out);
        if compare.design.ended == Ended::Interrupted {
            return Err(Error::Interrupted.into());
        }
        gc.extend(arms.iter().filter_map(|arm| logs(&workload, arm)));
        Ok(Outcome::Compared {
            compare: Box::new(compare),
            warnings,
        })
    }

    fn compared(
        &self,
        request: &Request,
        around: &Around<'_>,
        store: &mut Store,
    ) -> Result<(Compare, Vec<Warning>), Error> {
        let mut log = RunLog::new(store);
        let comparison = Comparison::prepare(request, self.snapshot, around, &mut log)?;
        comparison.carry_out(&stop::is_asked, &mut log)
    }
}

/// Why an experiment was not compared: --budget is that of all experiments together.
fn not_compared(name: &str, error: Error) -> anyhow::Error {
    match error {
        Error::Reference { arm, kind, backing } => anyhow!(events::reference(&arm, kind, &backing)),
        Error::Budget { budget, run, least } => anyhow!(
            "its share of the time is {} s: one run takes {:.1} s, and a verdict at least {2} s (write --only {name} --budget {2}s)",
            budget.as_secs(),
            run.as_secs_f64(),
            least.as_secs() + 1,
        ),
        Error::TimeOver(share) => anyhow!(
            "its share of the time, {} s, was over before a whole block of runs was made (write --only {name} and a larger --budget)",
            share.as_secs()
        ),
        error => error.into(),
    }
}

/// Reservations about an experiment, with its name.
pub(super) fn warnings(page: &Page) -> Vec<Warning> {
    let Outcome::Compared { warnings, .. } = &page.outcome else {
        return Vec::new();
    };
    let named = |warning: &Warning| Warning::new(&warning.code, format!("{}: {}", page.experiment.name, warning.text));
    warnings.iter().map(named).collect()
}

/// The arm without which the others can be compared: one on pages of a pool whose program did not start or end well, as a database that
/// insists on pages that the machine lacks.
fn dispensable(error: &Error, arms: &[String]) -> Option<PageKind> {
    let Error::Failed { arm, .. } = error else {
        return None;
    };
    let kind: PageKind = arm.parse().ok()?;
    let is_one_of_three = arms.len() > 2 && arms.iter().skip(1).any(|other| other == arm);
    (kind.pool().is_some() && is_one_of_three).then_some(kind)
}

/// Of the recipe's metrics those that the experiment judges: each one more is one question more.
fn task(planned: &Planned, workload: &Workload) -> Task {
    let mut task = workload.task.clone();
    if !planned.metrics.is_empty() {
        task.asked.retain(|asked| planned.metrics.contains(&asked.wanted.name));
    }
    task
}

/// The logs of an arm's collector, if it has any.
fn logs(workload: &Workload, arm: &str) -> Option<(String, Vec<GcLog>)> {
    let logs: Vec<GcLog> = workload.gc_logs(arm).iter().map(|text| gc_log::parse(text)).collect();
    (!logs.is_empty()).then(|| (arm.to_owned(), logs))
}

#[cfg(test)]
mod tests {
    use compare::Error;

    use super::dispensable;

    #[test]
    fn an_arm_on_pool_pages_that_does_not_start_is_left_out_and_no_other_is() {
        let arms = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let all = arms(&["base", "hugetlb-2M", "hugetlb-1G"]);
        let of = |arm: &str| Error::Failed {
            arm: arm.to_owned(),
            what: "it ended".to_owned(),
            said: String::new(),
        };
        assert_eq!(dispensable(&of("hugetlb-1G"), &all), "hugetlb-1G".parse().ok());
        assert_eq!(dispensable(&of("base"), &all), None);
        assert_eq!(dispensable(&of("thp"), &arms(&["base", "thp", "hugetlb-2M"])), None);
        assert_eq!(dispensable(&of("hugetlb-1G"), &arms(&["base", "hugetlb-1G"])), None);
        assert_eq!(
            dispensable(&of("hugetlb-1G"), &arms(&["hugetlb-1G", "base", "thp"])),
            None
        );
        assert_eq!(dispensable(&Error::Interrupted, &all), None);
    }
}
