//! `hugewise suite`: the experiments of publications on this machine, one after the other, each kept when it is done.

mod directory;
mod experiment;
mod list;
mod time;

use std::time::Duration;

use host::Snapshot;
use model::suite::{Outcome as Ended, Page, Suite};
use model::tlb::{HostBacking, Tlb};
use studies::claims::{ALL, Claims};

use self::directory::Directory;
use self::experiment::{Bench, warnings};
use self::time::Time;
use super::session::Session;
use super::tlb;
use crate::cli::args;
use crate::recipes::experiments::{self, Place, Planned};
use crate::render::prove::compare::events;
use crate::stop;
use crate::ui::Outcome;

/// The name of the file with the page size of the host.
const HOST: &str = "host-page";
const REPORT: &str = "report";

pub(super) fn run(session: &mut Session<'_>, args: &args::Suite) -> anyhow::Result<Outcome> {
    if args.claims {
        let form = session.form::<Claims>()?;
        return session.give_here(ALL.clone(), form);
    }
    session.must_be_live("running experiments")?;
    let place = Place::of(args.experiments.as_deref())?;
    let planned = experiments::planned(&args.only, &place)?;
    if args.list {
        return list::run(session, &planned);
    }
    let form = session.form::<Suite>()?;
    let snapshot = Snapshot::take(&session.source);
    let directory = Directory::open(args.resume.as_deref())?;
    stop::on_signals()?;
    session.ui.note(&format!(
        "results are kept in {}: --resume continues with them",
        directory.path.display()
    ));
    let bench = Bench {
        session,
        snapshot: &snapshot,
        directory: &directory,
    };
    let host = if args.no_host_page { None } else { host_page(&bench) };
    let pages = all(&bench, &planned, args.budget)?;
    let is_stopped = stop::is_asked();
    let has_failed = pages.iter().any(|page| matches!(page.outcome, Ended::Failed(_)));
    let warnings = pages.iter().flat_map(warnings).collect();
    let result = session.about(&snapshot, warnings, Suite { host, pages });
    directory.keep(REPORT, &result)?;
    session.give(&result, form)?;
    let report = directory.path.join(format!("{REPORT}.html"));
    session.ui.note(&format!("{} is the whole report", report.display()));
    Ok(match is_stopped {
        true => Outcome::Interrupted,
        false => Outcome::Done.or_bad_news(has_failed),
    })
}

/// Those that are done, in their order; fewer than all if the user stopped it.
fn all(bench: &Bench<'_>, planned: &[Planned], limit: Option<Duration>) -> anyhow::Result<Vec<Page>> {
    let (ui, directory) = (&bench.session.ui, bench.directory);
    let kept = planned.iter().map(|planned| directory.page(&planned.experiment));
    let kept: Vec<Option<Page>> = kept.collect::<anyhow::Result<_>>()?;
    let both = || planned.iter().zip(&kept);
    // What cannot run here takes none of the time.
    let lacks = |planned: &Planned| !list::lacking(planned, bench.snapshot).is_empty();
    let left = both().filter(|(planned, kept)| kept.is_none() && !lacks(planned));
    let mut time = Time::of(limit, left.map(|(planned, _)| planned.time));
    let mut pages = Vec::new();
    for (at, (next, kept)) in both().enumerate() {
        let name = &next.experiment.name;
        let which = format!("experiment {} of {}, {name}", at + 1, planned.len());
        if let Some(page) = kept {
            ui.note(&format!("{which}: finished before, and not repeated"));
            pages.push(page.clone());
            continue;
        }
        let share = if lacks(next) {
            ui.note(&which);
            Some(Duration::ZERO)
        } else {
            let share = time.share(next.time);
            ui.note(&begins(&which, share.unwrap_or_default(), next.time));
            share
        };
        let Some(page) = bench.page(next, share) else {
            break;
        };
        if page.compare().is_some() {
            directory.keep(name, &bench.alone(page.clone()))?;
        }
        pages.push(page);
    }
    Ok(pages)
}

/// That an experiment begins, and whether it has less time than it usually takes.
fn begins(which: &str, share: Duration, usual: Duration) -> String {
    let is_less = share < usual;
    let [share, usual] = [share, usual].map(events::minutes);
    if !is_less || share == usual {
        return which.to_owned();
    }
    format!("{which}, in {share} of the {usual} that it usually takes: a verdict may need more (--budget)")
}

/// The page size of the host, as it was timed before or is now; what keeps it from being timed keeps no experiment from being made.
fn host_page(bench: &Bench<'_>) -> Option<HostBacking> {
    let kept = bench.directory.result::<Tlb>(HOST).ok().flatten();
    if let Some(kept) = kept {
        return Some(kept.data.host_backing);
    }
    let (session, snapshot) = (bench.session, bench.snapshot);
    match tlb::host(&session.ui, snapshot) {
        Ok((tlb, warnings)) => {
            let result = session.about(snapshot, warnings, tlb);
            // It is timed again if it cannot be kept.
            let _ = bench.directory.keep(HOST, &result);
            Some(result.data.host_backing)
        }
        Err(error) if stop::is_interrupted(&error) => None,
        Err(error) => {
            let text = format!("the page size of the host is not known: {error:#}");
            session.ui.say(&text);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::begins;

    #[test]
    fn an_experiment_with_less_than_its_usual_time_says_so_before_it_runs() {
        let which = "experiment 1 of 1, ejb-2g";
        let of = |minutes: u64| begins(which, Duration::from_secs(60 * minutes), Duration::from_secs(1500));
        assert_eq!(of(25), which);
        assert_eq!(
            of(12),
            "experiment 1 of 1, ejb-2g, in 12m of the 25m that it usually takes: a verdict may need more (--budget)"
        );
    }
}
