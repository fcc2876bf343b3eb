//! Three sentences for a reader in a hurry: what large pages would buy, from which kind, and what stands in the way.

use std::collections::BTreeMap;

use host::Snapshot;
use host::snapshot::Pool;
use model::latency::Latency;
use model::{Bytes, PageKind, Reading};

use crate::gain::{Gain, gains};
use crate::render::axis::number;
use crate::results::Totals;

/// A gain below this many percent is not worth a sentence, even if it is beyond noise.
const WORTH: f64 = 3.0;

/// The three sentences. `latency` is the measurement, or why there is none.
pub fn verdict(latency: Result<&Latency, &str>, snapshot: &Snapshot, totals: Option<&Totals>) -> Vec<String> {
    let (buys, kind) = match latency {
        Ok(latency) => measured(latency),
        Err(why) => (
            format!("What large pages would buy here was not measured: {why}."),
            unknown_kind(),
        ),
    };
    vec![buys, kind, in_the_way(snapshot, totals)]
}

fn unknown_kind() -> String {
    "Which kind of large page would serve best is therefore not known.".to_owned()
}

fn measured(latency: &Latency) -> (String, String) {
    let gains = gains(latency);
    let lasting = lasting(&gains);
    // At the largest working set: far from the edges of caches, where neighbours can make any difference.
    let largest = lasting.iter().map(|gain| gain.bytes).max();
    let there = lasting.iter().copied().filter(|gain| Some(gain.bytes) == largest);
    if let Some(best) = surest(there) {
        return (buys(best, &lasting), choice(best, &gains));
    }
    match surest(&gains) {
        Some(best) => (
            no_gain(best, latency),
            "No kind of large page is therefore better than another.".to_owned(),
        ),
        None => (nothing_to_compare(latency), unknown_kind()),
    }
}

/// The gain that is largest for sure: the highest lower end, to a tenth of a percent; at the larger working set if equal.
fn surest<'a>(gains: impl IntoIterator<Item = &'a Gain>) -> Option<&'a Gain> {
    let place = |gain: &&Gain| ((gain.interval().0 * 10.0).round() as i64, gain.bytes);
    gains.into_iter().max_by_key(place)
}

/// Gains that last from their working set to the largest one. What larger pages save in translation stays as working
/// sets grow; a gap that closes again is a cache edge that neighbours moved.
fn lasting(gains: &[Gain]) -> Vec<&Gain> {
    let mut curves: BTreeMap<_, Vec<&Gain>> = BTreeMap::new();
    for gain in gains {
        curves
            .entry((gain.kind, gain.pattern, gain.access))
            .or_default()
            .push(gain);
    }
    curves.into_values().flat_map(tail).collect()
}

/// Those of one curve's gains that are open at their working set and at every larger one.
fn tail(mut curve: Vec<&Gain>) -> impl Iterator<Item = &Gain> {
    curve.sort_by_key(|gain| std::cmp::Reverse(gain.bytes));
    curve
        .into_iter()
        .take_while(|gain| gain.is_shown() && gain.percent() >= WORTH)
}

fn buys(best: &Gain, lasting: &[&Gain]) -> String {
    let (low, high) = best.interval();
    format!(
        "Large pages save {} % (95 % interval {} to {} %) of the time of a {} {} at a working set of {}: {} instead of {} ns{}.",
        number(best.percent()),
        number(low),
        number(high),
        best.pattern,
        best.access,
        best.bytes,
        number(best.large.median),
        number(best.base.median),
        opening(best, lasting)
    )
}

/// From which working set on the gap is there for good.
fn opening(best: &Gain, lasting: &[&Gain]) -> String {
    let curve = |gain: &&&Gain| (gain.kind, gain.pattern, gain.access) == (best.kind, best.pattern, best.access);
    match lasting.iter().filter(curve).map(|gain| gain.bytes).min() {
        Some(first) if first < best.bytes => format!("; the gap is open from {first} on"),
        _ => String::new(),
    }
}

fn no_gain(best: &Gain, latency: &Latency) -> String {
    let largest = latency
        .points
        .iter()
        .filter(|point| point.ns.is_some())
        .map(|point| point.bytes)
        .max()
        .unwrap_or_default();
    let (low, high) = best.interval();
    format!(
        "No lasting gain from large pages was shown up to a working set of {largest}: the best was {} % (95 % interval {} to {} %, {} at {}).",
        number(best.percent()),
        number(low),
        number(high),
        best.kind,
        best.bytes
    )
}

fn nothing_to_compare(latency: &Latency) -> String {
    let why = latency.points.iter().find_map(|point| point.not_measured.as_deref());
    let why = why
        .unwrap_or("base pages and a larger kind must both be asked for")
        .trim_end_matches('.');
    format!(
        "What large pages would buy here is not known: base pages and a larger kind were not both obtained ({why})."
    )
}

/// Which kind to choose: the one that is easiest to have among those within noise of the best.
fn choice(best: &Gain, gains: &[Gain]) -> String {
    let view = |gain: &&Gain| (gain.bytes, gain.pattern, gain.access) == (best.bytes, best.pattern, best.access);
    let rivals: BTreeMap<PageKind, &Gain> = gains.iter().filter(view).map(|gain| (gain.kind, gain)).collect();
    let each: Vec<String> = rivals
        .values()
        .map(|gain| format!("{} {} %", gain.kind, number(gain.percent())))
        .collect();
    let each = format!("{} saved at {}", each.join(", "), best.bytes);
    let good_enough = rivals.values().find(|gain| gain.large.low <= best.large.high);
    match good_enough {
        _ if rivals.len() == 1 => format!("Of the large kinds only {} was measured there: {each}.", best.kind),
        Some(gain) if gain.kind != best.kind => {
            format!(
                "{} is enough: it is within noise of the best ({each}){}.",
                gain.kind,
                effort(gain.kind)
            )
        }
        _ => format!("{} serves best ({each}){}.", best.kind, effort(best.kind)),
    }
}

fn effort(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Hugetlb(_) => "; it needs a reserved pool and a program that asks for it",
        PageKind::Thp | PageKind::Mthp(_) => " and needs no reserved pool",
        PageKind::Base => "",
    }
}

fn in_the_way(snapshot: &Snapshot, totals: Option<&Totals>) -> String {
    let mut text = format!("In the way now: {}; {}", policy(snapshot), pools(&snapshot.pools));
    if let Some(covered) = totals.and_then(coverage) {
        text = format!("{text}; {covered}");
    }
    text + "."
}

fn policy(snapshot: &Snapshot) -> String {
    let thp = match &snapshot.thp {
        Reading::Known(thp) => thp,
        Reading::Unread(why) => return format!("there are no transparent large pages ({why})"),
    };
    match &thp.enabled {
        Reading::Unread(why) => format!("the policy for transparent pages could not be read ({why})"),
        Reading::Known(choice) => match choice.chosen.as_str() {
            "always" => "nothing in the policy, transparent pages are on for every program".to_owned(),
            "madvise" => "only programs that ask with madvise get transparent pages".to_owned(),
            "never" => "transparent pages are switched off".to_owned(),
            other => format!("the policy for transparent pages is `{other}`"),
        },
    }
}

fn pools(pools: &Reading<Vec<Pool>>) -> String {
    let pools = match pools {
        Reading::Known(pools) => pools,
        Reading::Unread(why) => return format!("there are no hugetlb pools ({why})"),
    };
    let filled: Vec<String> = pools.iter().filter_map(filled).collect();
    if filled.is_empty() {
        "no hugetlb pool has any page".to_owned()
    } else {
        format!("the hugetlb pools have {}", filled.join(" and "))
    }
}

fn filled(pool: &Pool) -> Option<String> {
    let &pages = pool.nr.known().filter(|&&pages| pages > 0)?;
    let free = pool.free.as_ref().map(|free| format!("{free} free"));
    Some(format!("{pages} pages of {} ({free})", pool.size.exact()))
}

fn coverage(totals: &Totals) -> Option<String> {
    let share = totals.backing.coverage()?;
    let Bytes(known) = totals.backing.total();
    Some(format!(
        "{} % of the {} resident in {} processes is on large pages",
        number(share * 100.0),
        Bytes(known),
        totals.processes
    ))
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
