//! What weakens a comparison: drift, outliers, noise of its own, a busy machine, memory that it costs. Pure.

use std::fmt;

use model::compare::{Arm, Compare, Control, Ended, Judged, Method, Metric, Run, Start, Verdict};
use model::{Bytes, PageKind, Warning, counted};

use crate::technique::Technique;
use crate::{elsewhere, warming};

/// The reference moved by more than this from the first third of the runs to the last: more than interleaving should
/// have to cancel out.
const DRIFT: f64 = 0.10;
/// Distance from the quartiles, in interquartile ranges, of what Tukey calls far out.
const FAR_OUT: f64 = 3.0;
/// The share of far out runs that makes a warning: one of twenty may always be one.
const FAR_OUT_SHARE: f64 = 0.05;
/// An arm's memory against the reference's before it is said: rounding up to huge pages alone stays below in any program
/// that they are meant for.
const BLOAT: f64 = 1.10;
/// And no less than this, in bytes: what a loader maps and a short run shows of it differ by as much.
const LEAST_BLOAT: f64 = (2 << 20) as f64;
/// The share of a run's time that looking at its page tables may take.
const LOOKING: f64 = 0.01;
/// Coverage below which an arm in effect is still only partly so.
const WELL_COVERED: f64 = 0.9;
/// Shares of memory on an arm's pages that lie this far apart are no longer one state of the program.
const VARIES: f64 = 0.25;
/// System time that runs of one arm may differ by, as a share of their CPU time: as much as many gains.
const SYSTEM_VARIES: f64 = 0.25;
/// And no less than this, in seconds: the kernel counts it in ticks where runs are short.
const LEAST_SYSTEM: f64 = 0.05;
/// The share that other addresses alone can change: 1.7 % of a matrix product (benches/results/predict-held-out-xeon-guest.md).
const ADDRESSES: f64 = 0.03;
/// Preemptions per second of CPU time, beyond which others want the CPUs as much as the program does: an undisturbed
/// program is preempted a few times a second.
const BUSY: f64 = 30.0;

pub(crate) fn all(compare: &Compare) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(
        compare
            .controls
            .iter()
            .filter_map(|control| differs_from_itself(compare, control)),
    );
    for metric in metrics(compare) {
        warnings.extend(drift(compare, metric));
        warnings.extend(compare.arms.iter().filter_map(|arm| outliers(arm, metric)));
    }
    warnings.extend(busy(compare));
    warnings.extend(elsewhere::warnings(&compare.arms, compare.design.per_start));
    warnings.extend(compare.arms.iter().filter_map(coverage_varies));
    warnings.extend(compare.arms.iter().filter_map(partly_covered));
    if compare.design.method == Method::Runs {
        // Slices are looked at between them.
        warnings.extend(compare.arms.iter().filter_map(looked_too_long));
    }
    if let Some((reference, others)) = compare.arms.split_first() {
        warnings.extend(others.iter().filter_map(|arm| memory_bloat(reference, arm)));
    }
    warnings.extend(
        compare
            .starts
            .iter()
            .filter_map(|start| more_than_pages(compare, start)),
    );
    warnings.extend(
        compare
            .verdicts
            .iter()
            .filter_map(|judged| medians_disagree(compare, judged)),
    );
    warnings.extend(warming::all(compare));
    warnings.extend(cut_short(compare));
    warnings
}

fn metrics(compare: &Compare) -> impl Iterator<Item = &str> {
    compare.controls.iter().map(|control| control.metric.as_str())
}

fn reference(compare: &Compare) -> &str {
    compare.arms.first().map_or("", |arm| arm.name.as_str())
}

/// By the control's interval, which is that of the same test.
fn differs_from_itself(compare: &Compare, control: &Control) -> Option<Warning> {
    let text = format!(
        "`{}` differs from itself by a factor of {:.3} in {}, beyond chance: something else changes during the comparison; use a \
         quieter machine or more runs",
        reference(compare),
        control.ratio.unwrap_or(1.0),
        control.metric
    );
    let differs = control.low.is_some_and(|low| low > 1.0) || control.high.is_some_and(|high| high < 1.0);
    differs.then(|| Warning::new("differs-from-itself", text))
}

fn drift(compare: &Compare, metric: &str) -> Option<Warning> {
    let values = compare.arms.first()?.values(metric);
    let third = values.len() / 3;
    if third < 3 {
        return None;
    }
    let (first, last) = (
        stats::median(&values[..third])?,
        stats::median(&values[values.len() - third..])?,
    );
    let moved = last / first - 1.0;
    let text = format!(
        "{metric} of `{}` moved by {:+.0} % from the first third of the runs to the last: the order of the runs cancels \
         steady drift only",
        reference(compare),
        moved * 100.0
    );
    (moved.is_finite() && moved.abs() > DRIFT).then(|| Warning::new("drift", text))
}

fn outliers(arm: &Arm, metric: &str) -> Option<Warning> {
    let values = stats::sorted(&arm.values(metric));
    let (low, high) = (stats::quantile(&values, 0.25)?, stats::quantile(&values, 0.75)?);
    let reach = FAR_OUT * (high - low);
    let out = values
        .iter()
        .filter(|&&value| value < low - reach || value > high + reach)
        .count();
    let text = format!(
        "{out} of {} runs of `{}` are far from the others in {metric}; the verdict counts them by rank, not by size",
        values.len(),
        arm.name
    );
    (values.len() >= 6 && out as f64 > FAR_OUT_SHARE * values.len() as f64).then(|| Warning::new("outliers", text))
}

fn busy(compare: &Compare) -> Option<Warning> {
    let judged_by_wall = metrics(compare).any(|metric| metric == Metric::Wall.name());
    let arm = compare.arms.first()?;
    let rates: Vec<f64> = arm
        .values(Metric::Preemptions.name())
        .iter()
        .zip(arm.values(Metric::Cpu.name()))
        .map(|(preempted, cpu)| preempted / cpu.max(1e-3))
        .collect();
    let rate = stats::median(&rates)?;
    let text = format!(
        "the program was preempted {rate:.0} times per second of CPU time: others use these CPUs, and wall time measures them \
         too (--metric cpu does not)"
    );
    (judged_by_wall && rate > BUSY).then(|| Warning::new("busy-machine", text))
}

/// Runs on other pages than the others of their arm, whether they count or not.
fn coverage_varies(arm: &Arm) -> Option<Warning> {
    let kind = arm.kind?;
    let shares: Vec<f64> = arm.runs.iter().filter_map(|run| run.coverage(arm.kind).ok()).collect();
    let least = shares.iter().copied().min_by(f64::total_cmp)?;
    let most = shares.iter().copied().max_by(f64::total_cmp)?;
    let left_out = arm.runs.len() - arm.counted().count();
    let text = match left_out {
        0 => String::new(),
        _ => format!(
            "{left_out} of {} runs of `{}` do not count, because it is not proved that they were on {kind} pages; ",
            arm.runs.len(),
            arm.name
        ),
    };
    let text = format!(
        "{text}from run to run {:.1} to {:.1} % of the memory of `{}` was on {kind} pages",
        least * 100.0,
        most * 100.0,
        arm.name
    );
    (left_out > 0 || most - least > VARIES).then(|| Warning::new("coverage-varies", text))
}

fn partly_covered(arm: &Arm) -> Option<Warning> {
    let coverage = arm
        .coverage
        .known()
        .filter(|_| arm.took_effect.known() == Some(&true))?;
    let kind = arm.kind.filter(|kind| kind.is_large())?;
    let text = format!(
        "`{}` had {:.0} % of its memory on {kind} pages: with the rest the difference may be larger",
        arm.name,
        coverage.median * 100.0
    );
    (coverage.median < WELL_COVERED).then(|| Warning::new("partly-covered", text))
}

fn looked_too_long(arm: &Arm) -> Option<Warning> {
    let shares = arm.runs.iter().filter_map(|run| {
        let wall = run.metrics.get(Metric::Wall.name()).copied()?;
        (wall > 0.0).then_some(run.looks.seconds / wall)
    });
    let share = stats::median(&shares.collect::<Vec<_>>())?;
    let text = format!(
        "looking at the page kinds of `{}` took {:.1} % of its time: runs that last longer would be disturbed less",
        arm.name,
        share * 100.0
    );
    (share > LOOKING).then(|| Warning::new("looking-costs", text))
}

/// The memory of an arm beside the reference's, medians of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bloat {
    /// What the reference takes.
    pub before: Bytes,
    /// What the arm takes.
    pub after: Bytes,
}

impl fmt::Display for Bloat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, after } = self;
        let times = after.0 as f64 / before.0 as f64;
        write!(f, "{times:.2} times the memory, {after} instead of {before}")
    }
}

/// Medians of all runs that point the other way than the runs of each block do.
fn medians_disagree(compare: &Compare, judged: &Judged) -> Option<Warning> {
    if !matches!(judged.verdict, Verdict::Better | Verdict::Worse) {
        return None;
    }
    let (reference, metric) = (compare.arms.first()?, judged.metric.as_str());
    let arm = compare.arms.iter().find(|arm| arm.name == judged.arm)?;
    let of_block = |run: &Run| {
        let peers = reference.counted().filter(|peer| peer.block == run.block);
        let peers: Vec<f64> = peers.filter_map(|peer| peer.metrics.get(metric).copied()).collect();
        Some((run.metrics.get(metric)? / stats::median(&peers)?).ln())
    };
    let paired = stats::median(&arm.counted().filter_map(of_block).collect::<Vec<_>>())?;
    let [all, of_reference] = [arm, reference].map(|arm| stats::median(&arm.values(metric)));
    let unpaired = (all? / of_reference?).ln();
    let text = format!(
        "the median {metric} of `{}` lies {:.1} % {} that of `{}`, but within blocks its runs lie {}: the speed of the machine changed from block \
         to block, and the gain compares runs of the same block",
        arm.name,
        unpaired.abs().exp_m1() * 100.0,
        if unpaired < 0.0 { "below" } else { "above" },
        reference.name,
        if paired < 0.0 { "below it" } else { "above it" },
    );
    (paired * unpaired < 0.0).then(|| Warning::new("medians-disagree", text))
}

/// What an arm costs in memory, if it is more than a tenth of what the reference takes, and more in nearly all runs: short runs are
/// seen at a few moments only, and not each time when they are largest.
pub fn bloat(reference: &Arm, arm: &Arm) -> Option<Bloat> {
    let memory = |arm: &Arm| stats::sorted(&arm.values(Metric::Memory.name()));
    let (before, after) = (memory(reference), memory(arm));
    let of = |values: &[f64], share| stats::quantile(values, share);
    let (usual, more) = (of(&before, 0.5)?, of(&after, 0.5)?);
    let is_apart = of(&after, 0.25)? > of(&before, 0.75)?;
    (is_apart && usual >= 1.0 && more / usual > BLOAT && more - usual > LEAST_BLOAT).then_some(Bloat {
        before: Bytes(usual as u64),
        after: Bytes(more as u64),
    })
}

fn memory_bloat(reference: &Arm, arm: &Arm) -> Option<Warning> {
    let bloat = bloat(reference, arm)?;
    // A server that was just started has touched little of what it is configured to hold.
    let whole = match arm.kind {
        Some(kind) if kind != PageKind::Base => {
            "; a huge page counts whole from its first byte on, so memory that the program goes on to fill is no price"
        }
        _ => "",
    };
    let text = format!(
        "`{}` takes {bloat} of `{}`: a gain in time has this price (said of more than 10 %){whole}",
        arm.name, reference.name
    );
    Some(Warning::new("memory-bloat", text))
}

/// An arm whose technique changes more than pages, beside a reference by another one, where that can decide.
fn more_than_pages(compare: &Compare, start: &Start) -> Option<Warning> {
    let judged = |judged: &&Judged| {
        judged.arm == start.arm && !matches!(judged.verdict, Verdict::NotInEffect | Verdict::Unknown)
    };
    let is_near = |judged: &Judged| {
        let interval = judged.low.zip(judged.high);
        interval.is_some_and(|(low, high)| low < 1.0 + ADDRESSES && high > 1.0 - ADDRESSES)
    };
    let mut verdicts = compare.verdicts.iter().filter(judged).peekable();
    verdicts
        .peek()
        .filter(|_| compare.starts[0].technique != start.technique)?;
    let (arm, against) = (&start.arm, reference(compare));
    let text = match start.technique.as_deref()? {
        "collapse" if compare.design.method == Method::Runs => format!(
            "`{arm}` got its huge pages by collapsing, after the first touch: earlier ones may save more, and the copying counts as its system time"
        ),
        "tunables" | "preload" if verdicts.any(is_near) => format!(
            "memory of `{arm}` may have other addresses than that of `{against}`: these alone can change the result by a few percent"
        ),
        _ => return None,
    };
    // Under that mode it was tried first, and reached too little.
    let is_thp = |one: &Arm| one.name == *arm && one.kind == Some(PageKind::Thp);
    let is_open = |one: &Arm| is_thp(one) && !one.technique.contains(Technique::Switch.title());
    let instead = match compare.arms.iter().any(is_open) {
        true => "; under the THP mode `always`, arms can differ in pages alone",
        false => "",
    };
    Some(Warning::new("more-than-pages", format!("{text}{instead}")))
}

/// Of a guest that reports free pages to its host, if time in the kernel counts: runs that get reported pages wait for the host's page
/// faults, others do not.
pub(crate) fn free_page_reporting(compare: &Compare) -> Option<Warning> {
    let with_system = [Metric::Wall, Metric::Cpu, Metric::System].map(Metric::name);
    let counts = metrics(compare).any(|metric| with_system.contains(&metric));
    counts.then(|| system_varies(&compare.arms)).flatten()
}

/// The arm whose system time varies most.
fn system_varies(arms: &[Arm]) -> Option<Warning> {
    let varies = |arm: &Arm| {
        let system = stats::sorted(&arm.values(Metric::System.name()));
        let (least, most) = (*system.first()?, *system.last()?);
        let (range, usual) = (most - least, stats::median(&arm.values(Metric::Cpu.name()))?);
        let text = format!(
            "system time of `{}` varies from {least:.2} to {most:.2} s between runs; this guest reports free pages to its host, which may be why: \
             the next touch of such a page faults on the host, too; compare user time (--metric user), or switch it off on the host \
             (free-page-reporting=off of virtio-balloon)",
            arm.name
        );
        (range > LEAST_SYSTEM && range > SYSTEM_VARIES * usual).then_some((range / usual, text))
    };
    let most = arms.iter().filter_map(varies).max_by(|a, b| a.0.total_cmp(&b.0));
    most.map(|(_, text)| Warning::new("free-page-reporting", text))
}

/// Too little time, or too few runs, for a verdict is worth saying; enough of it is not.
fn cut_short(compare: &Compare) -> Option<Warning> {
    let open = compare
        .verdicts
        .iter()
        .any(|judged| matches!(judged.verdict, Verdict::Inconclusive | Verdict::Unknown));
    let blocks = counted(compare.design.blocks as usize, "block");
    let text = format!("the time was over after {blocks}: more of it (--budget) makes the intervals narrower");
    let gone = format!("the program ended after {blocks}: a longer life of it makes the intervals narrower");
    let usual = format!(
        "{blocks} were made, as many as without --runs: more of them (--runs {}) make the intervals narrower",
        4 * compare.design.blocks
    );
    match compare.design.ended {
        Ended::UsualRuns if open => Some(Warning::new("cut-short", usual)),
        Ended::Budget if open => Some(Warning::new("cut-short", text)),
        Ended::ProgramEnded => Some(Warning::new("program-ended", gone)),
        _ => None,
    }
}

/// Runs before the first that counts, fewer than were asked for.
pub(crate) fn warm_up_cut(made: u32, asked: u32) -> Warning {
    let text = format!(
        "{made} of {asked} warm-up runs of each arm were made: half of the time (--budget) is kept for runs that count"
    );
    Warning::new("warm-up-cut", text)
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;
