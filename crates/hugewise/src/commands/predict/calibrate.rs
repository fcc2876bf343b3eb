//! `hugewise predict --calibrate`: the program runs on base pages, on huge ones and on both mixed, and what it saves there scales what is simulated.

use std::time::Duration;

use anyhow::bail;
use compare::{ArmsFile, Comparison, Error, Request, RunLog, Task, interim};
use host::Snapshot;
use host::snapshot::Thp;
use model::compare::{Arm, Compare, Ended, Judged, Metric, Verdict as Judgement};
use model::tlb::Verdict;
use model::{Bytes, Reading, Warning, counted};
use predict::Observed;
use translation::Mode;
use translation::machine::Machine;
use translation::study::{Range, Setting};

use super::super::compare::around::Around;
use super::super::session::Session;
use super::super::tlb;
use crate::cli::args::Predict;
use crate::render::prove::compare as compared;
use crate::stop;

/// The arm of which a half is on huge pages: with both ends it shows whether time is a line at all.
const HALF: &str = "half";
const ARMS: &str = "[half]\nshare = 50\n";
/// Less on huge pages shows nothing of them.
const LEAST: f64 = 0.1;
/// Blocks at most; the time is over before.
const MOST: u32 = 30;
/// Warnings of a comparison about its time.
const OF_TIME: [&str; 2] = ["cut-short", "warm-up-cut"];

/// What is asked of the runs; refused before anything is traced or timed, where that can be known.
pub(super) fn request(
    session: &Session<'_>,
    snapshot: &Snapshot,
    args: &Predict,
    time: Duration,
) -> anyhow::Result<Request> {
    if let Reading::Unread(why) = &snapshot.thp {
        bail!("--calibrate: there are no transparent huge pages to run on: {why} (leave --calibrate away)");
    }
    let task = Task {
        command: args.command.clone(),
        asked: vec![Metric::User.name().parse().map_err(anyhow::Error::msg)?],
        ..Task::default()
    };
    let is_mixed = mixed(snapshot).is_ok();
    let arms = ["base", HALF, "thp"].into_iter().filter(|&arm| is_mixed || arm != HALF);
    Ok(Request {
        arms_file: is_mixed.then(|| ArmsFile {
            name: "--calibrate".to_owned(),
            text: ARMS.to_owned(),
        }),
        runs: Some(MOST),
        ignore_failure: args.ignore_failure,
        ..Request::plain(task, arms.map(str::to_owned).collect(), time, session.seed)
    })
}

/// Runs that are about to be made.
pub(super) struct Prepared<'a> {
    comparison: Comparison<'a>,
    /// Its arms.
    arms: u32,
    time: Duration,
}

impl<'a> Prepared<'a> {
    /// With the arms of the program.
    pub(super) fn of(
        request: &'a Request,
        snapshot: &'a Snapshot,
        around: &'a Around<'_>,
        log: &mut RunLog<'_>,
    ) -> anyhow::Result<Self> {
        let comparison = Comparison::prepare(request, snapshot, around, log)?;
        if let Some(arm) = comparison.only_collapsed().filter(|_| !compare::may_collapse()) {
            bail!(
                "--calibrate: {arm} is collapsed from outside in this program, which takes root (CAP_SYS_NICE): write sudo hugewise predict --calibrate, or leave --calibrate away"
            );
        }
        Ok(Self {
            comparison,
            arms: request.arms.len() as u32,
            time: request.budget.unwrap_or_default(),
        })
    }

    /// Why the time is too short for a program that used so much of the processors, if it must be: no run takes less than that on all of them.
    pub(super) fn too_short(&self, cpu: Duration) -> Option<String> {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let run = cpu / cpus;
        let least = run * (self.arms + (self.arms + 1) * interim::LEAST);
        (least > self.time).then(|| nothing(self.time, &too_short(run, least)))
    }

    /// What the program saves of its user time on huge pages; or why its runs can scale nothing. The trace is there already, so that runs which fail
    /// leave a prediction without them.
    pub(super) fn made(
        self,
        log: &mut RunLog<'_>,
        warnings: &mut Vec<Warning>,
    ) -> anyhow::Result<Result<Vec<Observed>, String>> {
        stop::on_signals()?;
        let time = self.time;
        let compared = self.comparison.carry_out(&stop::is_asked, log);
        let why = match compared {
            Err(error @ Error::Interrupted) => return Err(error.into()),
            Ok((compare, _)) if compare.design.ended == Ended::Interrupted => return Err(Error::Interrupted.into()),
            Ok((compare, more)) => {
                // What those say of --budget is not of this one.
                let is_of_time = |warning: &Warning| OF_TIME.contains(&warning.code.as_str());
                warnings.extend(more.into_iter().filter(|warning| !is_of_time(warning)));
                let (observed, not) = of_runs(&compare);
                if !observed.is_empty() {
                    warnings.extend(
                        not.into_iter()
                            .map(|why| Warning::new("runs-not-used", format!("--calibrate: {why}"))),
                    );
                    return Ok(Ok(observed));
                }
                not.join("; ")
            }
            Err(Error::Budget { run, least, .. }) => too_short(run, least),
            Err(Error::TimeOver(_)) => {
                "the time was over before each kind of pages had a run (write a longer time)".to_owned()
            }
            Err(error) => error.to_string(),
        };
        Ok(Err(nothing(time, &why)))
    }
}

fn nothing(time: Duration, why: &str) -> String {
    format!("--calibrate={time:?}: {why}")
}

fn too_short(run: Duration, least: Duration) -> String {
    let least = least.as_secs() + 1;
    format!(
        "one run takes {:.1} s or more, and enough of them at least {least} s (write --calibrate={least}s)",
        run.as_secs_f64()
    )
}

/// Why no half of the memory can be on huge pages: it is collapsed from outside, and where every fault takes a huge page there is no other half.
pub(super) fn mixed(snapshot: &Snapshot) -> Result<(), &'static str> {
    let policy = snapshot.thp.known().and_then(Thp::pmd_policy);
    match policy.as_deref() {
        _ if !compare::may_collapse() => Err("that takes root (CAP_SYS_NICE)"),
        Some("always") => Err("the THP mode is `always`, and every fault takes a huge page (`madvise` does not)"),
        _ => Ok(()),
    }
}

/// The setting of base pages here: natively, or on the pages of the host, which are timed.
pub(super) fn base(
    session: &Session<'_>,
    snapshot: &Snapshot,
    machine: &Machine,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<Setting> {
    let page = Bytes::kib(4);
    if !tlb::is_in_vm(snapshot) {
        return Ok(Setting::new(Mode::Native, page, page));
    }
    let mut unknown = |why: String| {
        let text =
            format!("the page size of the host is not known, and 2M is taken: {why}; runs scale the rows all the same");
        warnings.push(Warning::new("host-unknown", text));
        Bytes::mib(2)
    };
    let host = match host(session, snapshot) {
        Ok(Verdict::Small) => page,
        Ok(Verdict::Large | Verdict::None) => Bytes::mib(2),
        Ok(Verdict::Huge) if machine.maps(Bytes::gib(1)) => Bytes::gib(1),
        Ok(Verdict::Huge) => unknown(format!("timing shows 1G, and {} has no such pages", machine.id)),
        Ok(Verdict::Unknown) => {
            unknown("timing does not show it (`hugewise measure tlb` takes longer and may)".to_owned())
        }
        Err(error) if stop::is_interrupted(&error) => return Err(error),
        Err(error) => unknown(format!("it could not be timed: {error:#}")),
    };
    let mode = match machine.nested_paging {
        Some(false) => Mode::Shadow,
        _ => Mode::Nested,
    };
    Ok(Setting::new(mode, page, host))
}

/// What timing finds of the host's pages.
fn host(session: &Session<'_>, snapshot: &Snapshot) -> anyhow::Result<Verdict> {
    stop::on_signals()?;
    let (measured, _) = tlb::host(&session.ui, snapshot)?;
    Ok(measured.host_backing.verdict)
}

/// What runs show, and why those of other arms show nothing.
fn of_runs(compare: &Compare) -> (Vec<Observed>, Vec<String>) {
    let (mut observed, mut not) = (Vec::new(), Vec::new());
    for judged in &compare.verdicts {
        match one(compare, judged) {
            Some(run) => observed.push(run),
            None => not.push(format!("{}: {}", judged.arm, why_not(compare, judged))),
        }
    }
    (observed, not)
}

fn why_not(compare: &Compare, judged: &Judged) -> String {
    match judged.verdict {
        Judgement::NotInEffect | Judgement::Unknown => compared::why(compare, judged),
        _ if judged.low.is_none() => format!(
            "{} of runs are too few for an interval (write a longer time)",
            counted(judged.pairs as usize, "pair")
        ),
        _ => "too little of its memory was on huge pages".to_owned(),
    }
}

/// Of an arm that took effect, with enough pairs for an interval.
fn one(compare: &Compare, judged: &Judged) -> Option<Observed> {
    let arm = compare.arms.iter().find(|arm| arm.name == judged.arm)?;
    let saved = |ratio: f64| 1.0 - 1.0 / ratio;
    let coverage = arm.coverage.known()?.median;
    let is_base = |base: &Arm| base.took_effect == Reading::Known(true);
    let is_known = arm.took_effect == Reading::Known(true) && compare.arms.first().is_some_and(is_base);
    (is_known && coverage >= LEAST).then_some(())?;
    Some(Observed {
        arm: arm.name.clone(),
        coverage,
        saves: Range::new(saved(judged.low?), saved(judged.ratio?), saved(judged.high?)),
    })
}
