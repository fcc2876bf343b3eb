//! The verdict of a checkup: which saving is certain, which page kind to choose, and what limits the use of huge pages.

use std::collections::BTreeMap;

use host::Snapshot;
use host::snapshot::Pool;
use model::latency::Latency;
use model::verdict::{Choice, Coverage, Interval, KindSaved, Limits, PoolPages, Saved, Saving, Verdict};
use model::{PageKind, Reading};

use crate::gain::{Curve, Gain, curves, gains};
use crate::results::Totals;

/// A saving below this many percent is not worth mentioning, even if it is beyond noise.
const WORTH: f64 = 3.0;

/// The verdict, without its sentences. `latency` is the measurement, or why there is none.
pub fn verdict(latency: Result<&Latency, &str>, snapshot: &Snapshot, totals: Option<&Totals>) -> Verdict {
    let (saving, choice) = match latency {
        Ok(latency) => measured(latency),
        Err(why) => (Saving::NotMeasured { why: why.to_owned() }, Choice::Unknown),
    };
    Verdict {
        saving,
        choice,
        limits: limits(snapshot, totals),
        sentences: Vec::new(),
    }
}

fn measured(latency: &Latency) -> (Saving, Choice) {
    let gains = gains(latency);
    let curves = curves(&gains);
    let lasting = lasting(&gains, curves);
    // At the largest working set: far from the edges of caches, where contention can make any difference. It is the largest
    // that was asked for and so not chosen by what was measured; only the curve is, and intervals are corrected for that.
    let largest = lasting.iter().map(|gain| gain.bytes).max();
    let there = lasting.iter().copied().filter(|gain| Some(gain.bytes) == largest);
    if let Some(best) = surest(there, curves) {
        return saves(best, &lasting, &gains);
    }
    match surest(ends(&gains), curves) {
        Some(best) => {
            let saved = saved(best, curves);
            (Saving::NoDifference { saved }, Choice::NoDifference)
        }
        None if gains.is_empty() => (nothing_to_compare(latency), Choice::Unknown),
        None => {
            let saved = ends(&gains).map(|gain| saved(gain, curves)).collect();
            (Saving::NoInterval { saved }, Choice::Unknown)
        }
    }
}

/// The gain with the highest lower end, to a tenth of a percent; at the larger working set if equal.
fn surest<'a, 'b>(gains: impl IntoIterator<Item = &'b Gain<'a>>, curves: usize) -> Option<&'b Gain<'a>>
where
    'a: 'b,
{
    let place = |gain: &'b Gain<'a>| {
        let (low, _) = gain.interval(curves)?;
        Some((((low * 10.0).round() as i64, gain.bytes), gain))
    };
    let places = gains.into_iter().filter_map(place);
    places.max_by_key(|(place, _)| *place).map(|(_, gain)| gain)
}

/// The gains by curve.
fn by_curve<'a, 'b>(gains: &'b [Gain<'a>]) -> BTreeMap<Curve, Vec<&'b Gain<'a>>> {
    let mut curves: BTreeMap<_, Vec<&Gain<'_>>> = BTreeMap::new();
    for gain in gains {
        curves.entry(gain.curve()).or_default().push(gain);
    }
    curves
}

/// Each curve's gain at its largest working set.
fn ends<'a, 'b>(gains: &'b [Gain<'a>]) -> impl Iterator<Item = &'b Gain<'a>> {
    let largest = |curve: Vec<&'b Gain<'a>>| curve.into_iter().max_by_key(|gain| gain.bytes);
    by_curve(gains).into_values().filter_map(largest)
}

/// Gains that last from their working set to the largest one. What larger pages save in translation stays as working
/// sets grow; a gap that closes again is a cache edge that contention moved.
fn lasting<'a, 'b>(gains: &'b [Gain<'a>], curves: usize) -> Vec<&'b Gain<'a>> {
    let by_curve = by_curve(gains).into_values();
    by_curve.flat_map(|curve| tail(curve, curves)).collect()
}

/// One curve's gains that hold at their working set and at every larger one. The first that does not hold ends the search, so
/// testing one working set after the other needs no correction.
fn tail<'a, 'b>(mut curve: Vec<&'b Gain<'a>>, curves: usize) -> impl Iterator<Item = &'b Gain<'a>> {
    curve.sort_by_key(|gain| std::cmp::Reverse(gain.bytes));
    let lasts = move |gain: &&Gain<'_>| gain.is_shown(curves) && gain.percent() >= WORTH;
    curve.into_iter().take_while(lasts)
}

/// A lasting saving, and which kind to choose for it.
fn saves(best: &Gain<'_>, lasting: &[&Gain<'_>], gains: &[Gain<'_>]) -> (Saving, Choice) {
    let view = |gain: &&Gain<'_>| (gain.bytes, gain.pattern, gain.access) == (best.bytes, best.pattern, best.access);
    let all: BTreeMap<PageKind, &Gain<'_>> = gains.iter().filter(view).map(|gain| (gain.kind, gain)).collect();
    let kind_saved = |gain: &&Gain<'_>| KindSaved {
        kind: gain.kind,
        percent: gain.percent(),
    };
    let curve = lasting.iter().filter(|gain| gain.curve() == best.curve());
    let saving = Saving::Saves {
        saved: saved(best, curves(gains)),
        from_bytes: curve.map(|gain| gain.bytes).min().unwrap_or(best.bytes),
        kinds: all.values().map(kind_saved).collect(),
    };
    (saving, choice(best, &all))
}

fn saved(gain: &Gain<'_>, candidates: usize) -> Saved {
    Saved {
        kind: gain.kind,
        bytes: gain.bytes,
        pattern: gain.pattern,
        access: gain.access,
        percent: gain.percent(),
        percent_interval: gain.interval(candidates).map(|(low, high)| Interval { low, high }),
        candidates,
        base_ns: gain.base.median,
        ns: gain.large.median,
    }
}

fn nothing_to_compare(latency: &Latency) -> Saving {
    let why = latency.points.iter().find_map(|point| point.not_measured.clone());
    Saving::NothingToCompare { why }
}

/// Which kind to choose: the one that is easiest to set up among those that take hardly more time than the best.
fn choice(best: &Gain<'_>, all: &BTreeMap<PageKind, &Gain<'_>>) -> Choice {
    if all.len() == 1 {
        return Choice::Only { kind: best.kind };
    }
    // How much more time each kind that is easier to set up takes.
    let easier = all.values().filter(|gain| gain.kind < best.kind);
    let rivals: Vec<(PageKind, Interval)> = easier
        .filter_map(|gain| {
            let (low, high) = gain.against(best, all.len() - 1)?;
            Some((gain.kind, Interval { low, high }))
        })
        .collect();
    if let Some(&(kind, more)) = rivals.iter().find(|(_, more)| more.high < WORTH) {
        return Choice::Enough {
            kind,
            best: best.kind,
            at_most_percent: more.high.max(0.0),
        };
    }
    match rivals.iter().find(|(_, more)| more.low <= 0.0) {
        Some(&(rival, more_percent)) => Choice::Open {
            best: best.kind,
            rival,
            more_percent,
        },
        None => Choice::Best { kind: best.kind },
    }
}

fn limits(snapshot: &Snapshot, totals: Option<&Totals>) -> Limits {
    let thp = match &snapshot.thp {
        Reading::Known(thp) => thp.enabled.clone().map(|choice| choice.chosen),
        Reading::Unread(why) => Reading::Unread(why.clone()),
    };
    Limits {
        thp,
        pools: snapshot
            .pools
            .as_ref()
            .map(|pools| pools.iter().map(pool_pages).collect()),
        coverage: totals.and_then(coverage),
    }
}

fn pool_pages(pool: &Pool) -> PoolPages {
    PoolPages {
        size: pool.size,
        pages: pool.nr.clone(),
        free: pool.free.clone(),
    }
}

fn coverage(totals: &Totals) -> Option<Coverage> {
    Some(Coverage {
        percent: totals.backing.coverage()? * 100.0,
        resident_bytes: totals.backing.total(),
        processes: totals.processes.saturating_sub(totals.unread),
    })
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
