//! Which runs count: those whose own pages are proved, and those whose page faults are like theirs where faults tell pages apart. Pure.

use std::ops::RangeInclusive;

use model::compare::{LeftOut, Metric, Run};
use model::{Bytes, Cause, Estimate, PageKind, Reading, Unread};

use crate::policy::LEAST_BASE;
use crate::{Error, Named};

/// Of an arm with more than one run in so many that do not count, nothing is judged: those that do may be the odd ones.
const LEFT_OUT: usize = 4;
/// How far the page faults of a run may lie outside of those of proved ones, as a factor.
const ALIKE: f64 = 1.25;
/// And beyond that, as a share of those that base pages alone would take: what a loader and an allocator differ by.
const SLACK: f64 = 1.0 / 32.0;
/// What base pages are at least.
const BASE_PAGE: Bytes = Bytes::kib(4);

/// Stops a comparison whose reference did not get its pages in its first run.
///
/// # Errors
/// [`Error::Reference`].
pub(crate) fn must_be_in_effect(named: &Named, run: &Run, least: f64) -> Result<(), Error> {
    match (named.kind, run.coverage(named.kind), run.backing.known()) {
        (Some(kind), Ok(share), Some(backing)) if run.text.is_none() && share < enough(kind, least) => {
            Err(Error::Reference {
                arm: named.name.clone(),
                kind,
                backing: backing.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// The share of memory on pages of `kind` from which on a run is on them.
pub(crate) fn enough(kind: PageKind, least: f64) -> f64 {
    if kind == PageKind::Base { LEAST_BASE } else { least }
}

/// Marks the runs of an arm that do not count; the share of its memory on pages of its kind, and whether it took effect.
pub fn effect(kind: Option<PageKind>, runs: &mut [Run], least: f64) -> (Reading<Estimate>, Reading<bool>) {
    let faults = kind.and_then(|kind| faults_of_proved(kind, runs, least));
    for run in runs.iter_mut() {
        run.left_out = kind.and_then(|kind| left_out(kind, run, least, faults.as_ref()));
    }
    let took_effect = match kind {
        None => Reading::Known(true),
        Some(_) => took_effect(kind, runs),
    };
    let is_all = took_effect != Reading::Known(true);
    let shown = runs.iter().filter(|run| is_all || run.left_out.is_none());
    let coverage = coverage(shown.map(|run| run.coverage(kind)));
    (coverage, took_effect)
}

fn left_out(kind: PageKind, run: &Run, least: f64, proved: Option<&RangeInclusive<f64>>) -> Option<LeftOut> {
    match (run.coverage(Some(kind)), faults(run).zip(proved)) {
        (Ok(share), _) => (share < enough(kind, least)).then_some(LeftOut::WrongPages),
        (Err(_), Some((faults, proved))) => (!proved.contains(&faults)).then_some(LeftOut::OtherFaults),
        (Err(_), None) => Some(LeftOut::Unproved),
    }
}

fn faults(run: &Run) -> Option<f64> {
    run.metrics.get(Metric::Faults.name()).copied()
}

/// The page faults of runs like those whose pages are proved; `None` where they do not tell these pages from others.
fn faults_of_proved(kind: PageKind, runs: &[Run], least: f64) -> Option<RangeInclusive<f64>> {
    let is_proved = |run: &&Run| run.coverage(Some(kind)).is_ok_and(|share| share >= enough(kind, least));
    let proved: Vec<&Run> = runs.iter().filter(is_proved).collect();
    let counts: Vec<f64> = proved.iter().filter_map(|run| faults(run)).collect();
    let memory: Vec<f64> = proved
        .iter()
        .filter_map(|run| Some(run.backing.known()?.total().0 as f64))
        .collect();
    // Each base page is a fault of its own, a huge page one for all that it holds.
    let of_base = stats::median(&memory)? / BASE_PAGE.0 as f64;
    let least = counts.iter().copied().min_by(f64::total_cmp)? / ALIKE - of_base * SLACK;
    let most = counts.iter().copied().max_by(f64::total_cmp)? * ALIKE + of_base * SLACK;
    let half = of_base / 2.0;
    let tells = if kind == PageKind::Base {
        least > half
    } else {
        most < half
    };
    tells.then_some(least..=most)
}

/// Are enough of its runs on its pages?
fn took_effect(kind: Option<PageKind>, runs: &[Run]) -> Reading<bool> {
    let count = |reasons: &[LeftOut]| {
        let left_out = runs.iter().filter_map(|run| run.left_out);
        left_out.filter(|why| reasons.contains(why)).count()
    };
    let unproved = count(&[LeftOut::Unproved]);
    let wrong = count(&[LeftOut::WrongPages, LeftOut::OtherFaults]);
    let is_many = |count: usize| count * LEFT_OUT > runs.len();
    let unread = || runs.iter().find_map(|run| run.coverage(kind).err());
    match (is_many(unproved + wrong), is_many(wrong), unread()) {
        _ if runs.is_empty() => Reading::Unread(no_run()),
        (false, ..) => Reading::Known(true),
        (true, false, Some(why)) => Reading::Unread(why),
        (true, ..) => Reading::Known(false),
    }
}

fn no_run() -> Unread {
    Unread::new(Cause::Absent, "page kinds", "there was no run")
}

/// Over those that could be read; it lies between none and all. Of few runs the interval is Student's t, which knows no such ends.
fn coverage(shares: impl Iterator<Item = Result<f64, Unread>>) -> Reading<Estimate> {
    let (known, unread): (Vec<_>, Vec<_>) = shares.partition(Result::is_ok);
    let known: Vec<f64> = known.into_iter().flatten().collect();
    match stats::estimate(&known) {
        Some(estimate) => Reading::Known(Estimate {
            low: estimate.low.clamp(0.0, 1.0),
            high: estimate.high.clamp(0.0, 1.0),
            ..estimate
        }),
        None => Reading::Unread(unread.into_iter().find_map(Result::err).unwrap_or_else(no_run)),
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
