//! `hugewise predict --calibrate`: the program runs on base pages, on huge ones and on both mixed, and what it saves there scales what is simulated.

use std::io;
use std::time::Duration;

use compare::{ArmsFile, Comparison, Error, Request, RunLog, Store, Task};
use host::Snapshot;
use host::snapshot::Thp;
use model::compare::{Arm, Compare, Ended, Judged, Metric};
use model::tlb::Verdict;
use model::{Bytes, Reading, Warning};
use predict::Observed;
use translation::Mode;
use translation::machine::Machine;
use translation::study::{Range, Setting};

use super::super::compare::around::Around;
use super::super::session::Session;
use super::super::stop::Stop;
use super::super::tlb;
use crate::cli::args::Predict;

/// The arm of which a half is on huge pages: with both ends it shows whether time is a line at all.
const HALF: &str = "half";
const ARMS: &str = "[half]\nshare = 50\n";
/// Less on huge pages shows nothing of them.
const LEAST: f64 = 0.1;
/// Blocks at most; the time is over before.
const MOST: u32 = 30;

/// The setting of base pages here: natively, or on the pages of the host, which are timed. `None` if the user stopped that.
pub(super) fn base(
    session: &Session<'_>,
    snapshot: &Snapshot,
    machine: &Machine,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<Option<Setting>> {
    let page = Bytes::kib(4);
    if !tlb::is_in_vm(snapshot) {
        return Ok(Some(Setting::new(Mode::Native, page, page)));
    }
    let stop = Stop::on_signals()?;
    let spec = tlb::spec(tlb::usual(snapshot), true, snapshot)?;
    let Some((measured, _)) = tlb::measure(&session.ui, &stop, &spec, true)? else {
        return Ok(None);
    };
    let host = match measured.host_backing.verdict {
        Verdict::Small => page,
        Verdict::Large | Verdict::None => Bytes::mib(2),
        Verdict::Huge => Bytes::gib(1),
        Verdict::Unknown => {
            let text = "timing does not show the host's page size, and 2M is taken: runs scale the rows all the same (`hugewise measure tlb` takes longer and may show it)";
            warnings.push(Warning::new("host-unknown", text));
            Bytes::mib(2)
        }
    };
    let mode = match machine.nested_paging {
        Some(false) => Mode::Shadow,
        _ => Mode::Nested,
    };
    Ok(Some(Setting::new(mode, page, host)))
}

/// What came of the runs.
pub(super) enum Runs {
    Observed(Vec<Observed>),
    /// Why they can scale nothing: what was traced is predicted without them.
    Nothing(String),
    Stopped,
}

/// What the program saves of its user time on huge pages.
pub(super) fn runs(
    session: &Session<'_>,
    snapshot: &Snapshot,
    args: &Predict,
    time: Duration,
    warnings: &mut Vec<Warning>,
) -> anyhow::Result<Runs> {
    let task = Task {
        command: args.command.clone(),
        asked: vec![Metric::User.name().parse().map_err(anyhow::Error::msg)?],
        ..Task::default()
    };
    let arms: &[&str] = if can_mix(snapshot) {
        &["base", HALF, "thp"]
    } else {
        &["base", "thp"]
    };
    let request = Request {
        arms_file: Some(ArmsFile {
            name: "--calibrate".to_owned(),
            text: ARMS.to_owned(),
        }),
        runs: Some(MOST),
        ignore_failure: args.ignore_failure,
        ..Request::plain(
            task,
            arms.iter().map(|&arm| arm.to_owned()).collect(),
            time,
            session.seed,
        )
    };
    let around = Around::new(&session.ui);
    let stop = Stop::on_signals()?;
    let mut unkept = Unkept;
    let mut log = RunLog::new(&mut unkept);
    let compared = Comparison::prepare(&request, snapshot, &around, &mut log)
        .and_then(|comparison| comparison.carry_out(&around, &|| stop.is_asked(), &mut log));
    let typed = format!("--calibrate={}s", time.as_secs());
    match compared {
        Err(Error::Interrupted) => Ok(Runs::Stopped),
        Ok((compare, _)) if compare.design.ended == Ended::Interrupted => Ok(Runs::Stopped),
        Ok((compare, more)) => {
            warnings.extend(more);
            Ok(of_runs(&compare).map_or_else(|why| Runs::Nothing(format!("{typed}: {why}")), Runs::Observed))
        }
        Err(Error::Budget { run, least, .. }) => Ok(Runs::Nothing(format!(
            "{typed}: one run takes {:.1} s, and enough of them at least {least} s (write --calibrate={least}s)",
            run.as_secs_f64(),
            least = least.as_secs() + 1
        ))),
        Err(Error::TimeOver(_)) => Ok(Runs::Nothing(format!(
            "{typed}: the time was over before each kind of pages had a run (write a longer time)"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Runs of a few minutes, which nobody goes on with.
struct Unkept;

impl Store for Unkept {
    fn name(&self) -> String {
        String::new()
    }

    fn resumed(&self) -> Option<&str> {
        None
    }

    fn open(&mut self, _: u64, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn replace(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self) {}
}

/// Can a half be on huge pages? It is collapsed from outside, and where every fault takes a huge page there is no other half.
fn can_mix(snapshot: &Snapshot) -> bool {
    let policy = snapshot.thp.known().and_then(Thp::pmd_policy);
    rustix::process::geteuid().is_root() && policy.as_deref() != Some("always")
}

fn of_runs(compare: &Compare) -> Result<Vec<Observed>, String> {
    let base = compare
        .arms
        .first()
        .filter(|base| base.took_effect == Reading::Known(true));
    let observed: Vec<Observed> = compare
        .verdicts
        .iter()
        .filter_map(|judged| one(compare, judged))
        .collect();
    match base {
        Some(_) if !observed.is_empty() => Ok(observed),
        _ => {
            let arm = |arm: &Arm| {
                let coverage = arm.coverage.known().map_or(0.0, |coverage| 100.0 * coverage.median);
                format!(
                    "{:.0} % of the memory of {} in {} runs",
                    coverage,
                    arm.name,
                    arm.runs.len()
                )
            };
            let arms: Vec<String> = compare.arms.iter().map(arm).collect();
            Err(format!(
                "too few runs that are backed as asked to scale anything ({}; more time may help)",
                arms.join(", ")
            ))
        }
    }
}

/// Of an arm that took effect, with enough pairs for an interval.
fn one(compare: &Compare, judged: &Judged) -> Option<Observed> {
    let arm = compare.arms.iter().find(|arm| arm.name == judged.arm)?;
    let saved = |ratio: f64| 1.0 - 1.0 / ratio;
    let coverage = arm.coverage.known()?.median;
    (arm.took_effect == Reading::Known(true) && coverage >= LEAST).then_some(())?;
    Some(Observed {
        arm: arm.name.clone(),
        coverage,
        saves: Range::new(saved(judged.low?), saved(judged.ratio?), saved(judged.high?)),
    })
}
