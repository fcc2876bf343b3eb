//! `hugewise predict --calibrate`: the program runs on base pages, on huge ones and on both mixed, and what it saves there scales what is simulated.

use std::time::Duration;

use anyhow::bail;
use compare::{ArmsFile, Comparison, Error, Request, RunLog, Task};
use host::Snapshot;
use model::compare::{Compare, Judged, Metric};
use model::tlb::Verdict;
use model::{Bytes, Reading, Warning};
use predict::Observed;
use translation::Mode;
use translation::study::{Range, Setting};

use super::super::compare::around::Around;
use super::super::compare::store::Store;
use super::super::session::Session;
use super::super::stop::Stop;
use super::super::tlb;
use crate::cli::args::Predict;

/// The arm of which a half is on huge pages: with both ends it shows whether time is a line at all.
const HALF: &str = "half";
const ARMS: &str = "[half]\nshare = 50\n";
/// Blocks at most; the time is over before.
const MOST: u32 = 30;

/// The setting of base pages here: natively, or on the pages of the host, which are timed. `None` if the user stopped that.
pub(super) fn base(
    session: &Session<'_>,
    snapshot: &Snapshot,
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
            let text = "timing does not show the host's page size, and 2M is taken: runs scale the rows all the same (`hugewise measure tlb` takes longer and may tell)";
            warnings.push(Warning::new("host-unknown", text));
            Bytes::mib(2)
        }
    };
    Ok(Some(Setting::new(Mode::Nested, page, host)))
}

/// What the program saves of its user time on huge pages; `None` if the user stopped it.
pub(super) fn observed(
    session: &Session<'_>,
    snapshot: &Snapshot,
    args: &Predict,
    time: Duration,
) -> anyhow::Result<Option<Vec<Observed>>> {
    let task = Task {
        command: args.command.clone(),
        asked: vec![Metric::User.name().parse().map_err(anyhow::Error::msg)?],
        ..Task::default()
    };
    let arms = ["base", HALF, "thp"].map(str::to_owned).to_vec();
    let request = Request {
        arms_file: Some(ArmsFile {
            name: "--calibrate".to_owned(),
            text: ARMS.to_owned(),
        }),
        runs: Some(MOST),
        warm_up: 0,
        ignore_failure: args.ignore_failure,
        ..Request::plain(task, arms, time, session.seed)
    };
    let around = Around::new(&session.ui);
    let mut store = Store::nameless();
    let stop = Stop::on_signals()?;
    let mut log = RunLog::new(&mut store);
    let compared = Comparison::prepare(&request, snapshot, &around, &mut log)
        .and_then(|comparison| comparison.carry_out(&around, &|| stop.is_asked(), &mut log));
    store.close();
    match compared {
        Ok((compare, _)) => of_runs(&compare).map(Some),
        Err(Error::Interrupted) => Ok(None),
        Err(Error::Budget { run, least, .. }) => bail!(
            "--calibrate={}s: one run takes {:.1} s, and enough of them at least {least} s (write --calibrate={least}s)",
            time.as_secs(),
            run.as_secs_f64(),
            least = least.as_secs() + 1
        ),
        Err(error) => Err(error.into()),
    }
}

fn of_runs(compare: &Compare) -> anyhow::Result<Vec<Observed>> {
    let observed: Vec<Observed> = compare
        .verdicts
        .iter()
        .filter_map(|judged| one(compare, judged))
        .collect();
    if observed.is_empty() {
        let why = compare.arms.iter().skip(1).map(|arm| {
            let coverage = arm.coverage.known().map_or(0.0, |coverage| 100.0 * coverage.median);
            format!(
                "{} had {coverage:.0} % of its memory on huge pages in {} runs",
                arm.name,
                arm.runs.len()
            )
        });
        let why: Vec<String> = why.collect();
        bail!(
            "--calibrate: no run can scale anything: {} (give more time with --calibrate=TIME)",
            why.join(", ")
        );
    }
    Ok(observed)
}

/// Of an arm that took effect, with enough pairs for an interval.
fn one(compare: &Compare, judged: &Judged) -> Option<Observed> {
    let arm = compare.arms.iter().find(|arm| arm.name == judged.arm)?;
    let saved = |ratio: f64| 1.0 - 1.0 / ratio;
    (arm.took_effect == Reading::Known(true)).then_some(())?;
    Some(Observed {
        arm: arm.name.clone(),
        coverage: arm.coverage.known()?.median,
        saves: Range::new(saved(judged.low?), saved(judged.ratio?), saved(judged.high?)),
    })
}
