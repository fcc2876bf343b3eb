//! Three sentences for a reader in a hurry: what large pages would buy, from which kind, and what stands in the way.

use std::collections::BTreeMap;

use host::Snapshot;
use host::snapshot::Pool;
use model::latency::Latency;
use model::{Bytes, Cause, PageKind, Reading, Unread};

use crate::gain::{Curve, Gain, curves, gains};
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
    let curves = curves(&gains);
    let lasting = lasting(&gains, curves);
    // At the largest working set: far from the edges of caches, where neighbours can make any difference. It is the largest
    // that was asked for and so not chosen by what was measured; only the curve is, and intervals are corrected for that.
    let largest = lasting.iter().map(|gain| gain.bytes).max();
    let there = lasting.iter().copied().filter(|gain| Some(gain.bytes) == largest);
    if let Some(best) = surest(there, curves) {
        return (buys(best, &lasting, curves), choice(best, &gains));
    }
    let no_kind = "No kind of large page is therefore shown to be better than another.".to_owned();
    match surest(ends(&gains), curves) {
        Some(best) => (no_gain(best, curves), no_kind),
        None if gains.is_empty() => (nothing_to_compare(latency), unknown_kind()),
        None => (unsure(&gains), unknown_kind()),
    }
}

/// The gain that is largest for sure: the highest lower end, to a tenth of a percent; at the larger working set if equal.
fn surest<'a, 'b>(gains: impl IntoIterator<Item = &'b Gain<'a>>, curves: usize) -> Option<&'b Gain<'a>>
where
    'a: 'b,
{
    let place = |gain: &'b Gain<'a>| {
        let (low, _) = gain.interval(curves)?;
        Some((((low * 10.0).round() as i64, gain.bytes), gain))
    };
    gains
        .into_iter()
        .filter_map(place)
        .max_by_key(|(place, _)| *place)
        .map(|(_, gain)| gain)
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
/// sets grow; a gap that closes again is a cache edge that neighbours moved.
fn lasting<'a, 'b>(gains: &'b [Gain<'a>], curves: usize) -> Vec<&'b Gain<'a>> {
    by_curve(gains)
        .into_values()
        .flat_map(|curve| tail(curve, curves))
        .collect()
}

/// Those of one curve's gains that are open at their working set and at every larger one. As the first that is not shown ends
/// it, asking so many working sets one after the other needs no correction.
fn tail<'a, 'b>(mut curve: Vec<&'b Gain<'a>>, curves: usize) -> impl Iterator<Item = &'b Gain<'a>> {
    curve.sort_by_key(|gain| std::cmp::Reverse(gain.bytes));
    curve
        .into_iter()
        .take_while(move |gain| gain.is_shown(curves) && gain.percent() >= WORTH)
}

/// The interval of a gain in words; that of the best of several curves says so.
fn spread(gain: &Gain<'_>, curves: usize) -> String {
    let Some((low, high)) = gain.interval(curves) else {
        return "no interval".to_owned();
    };
    let chosen = match curves {
        0 | 1 => String::new(),
        _ => format!(", corrected for choosing among {curves}"),
    };
    format!("95 % interval {} to {} %{chosen}", number(low), number(high))
}

fn buys(best: &Gain<'_>, lasting: &[&Gain<'_>], curves: usize) -> String {
    format!(
        "Large pages save {} % ({}) of the time of a {} {} at a working set of {}: {} instead of {} ns{}.",
        number(best.percent()),
        spread(best, curves),
        best.pattern,
        best.access,
        best.bytes,
        number(best.large.median),
        number(best.base.median),
        opening(best, lasting)
    )
}

/// From which working set on the gap is there for good.
fn opening(best: &Gain<'_>, lasting: &[&Gain<'_>]) -> String {
    let curve = lasting.iter().filter(|gain| gain.curve() == best.curve());
    match curve.map(|gain| gain.bytes).min() {
        Some(first) if first < best.bytes => format!("; the gap is open from {first} on"),
        _ => String::new(),
    }
}

fn no_gain(best: &Gain<'_>, curves: usize) -> String {
    format!(
        "No lasting gain from large pages was shown up to a working set of {}: there, {} saved {} % ({}).",
        best.bytes,
        best.kind,
        number(best.percent()),
        spread(best, curves)
    )
}

/// There are medians, and nothing that tells how sure their ratio is.
fn unsure(gains: &[Gain<'_>]) -> String {
    let ends: Vec<String> = ends(gains)
        .map(|gain| format!("{} {} % at {}", gain.kind, number(gain.percent()), gain.bytes))
        .collect();
    format!(
        "How sure the gain from large pages is cannot be told, because this result holds no visits (fewer than two to each point, or \
         saved by an older version); by medians alone: {} saved.",
        ends.join(", ")
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

/// Which kind to choose: the one that is easiest to have among those that take hardly more time than the best.
fn choice(best: &Gain<'_>, gains: &[Gain<'_>]) -> String {
    let view = |gain: &&Gain<'_>| (gain.bytes, gain.pattern, gain.access) == (best.bytes, best.pattern, best.access);
    let all: BTreeMap<PageKind, &Gain<'_>> = gains.iter().filter(view).map(|gain| (gain.kind, gain)).collect();
    let each: Vec<String> = all
        .values()
        .map(|gain| format!("{} {} %", gain.kind, number(gain.percent())))
        .collect();
    let each = format!("{} saved at {}", each.join(", "), best.bytes);
    if all.len() == 1 {
        return format!("Of the large kinds only {} was measured there: {each}.", best.kind);
    }
    let rivals: Vec<Rival> = all
        .values()
        .filter_map(|gain| Rival::new(gain, best, all.len() - 1))
        .collect();
    let easier = |rival: &&Rival| rival.kind < best.kind;
    if let Some(rival) = rivals.iter().filter(easier).find(|rival| rival.most < WORTH) {
        return format!(
            "{} is enough: it takes at most {} % more time than {} ({each}){}.",
            rival.kind,
            number(rival.most.max(0.0)),
            best.kind,
            effort(rival.kind)
        );
    }
    match rivals.iter().filter(easier).find(|rival| rival.least <= 0.0) {
        Some(rival) => format!(
            "{} saved most, but whether {} is as good is not settled: it takes {} to {} % more time ({each}).",
            best.kind,
            rival.kind,
            number(rival.least),
            number(rival.most)
        ),
        None => format!("{} serves best ({each}){}.", best.kind, effort(best.kind)),
    }
}

/// A kind beside the best: the ends of the 95 % interval of how much more time it takes, in percent.
struct Rival {
    kind: PageKind,
    least: f64,
    most: f64,
}

impl Rival {
    fn new(gain: &Gain<'_>, best: &Gain<'_>, rivals: usize) -> Option<Self> {
        let kind = gain.kind;
        let (least, most) = gain.against(best, rivals).filter(|_| kind != best.kind)?;
        Some(Self { kind, least, most })
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
        Reading::Unread(why) => return missing("transparent large pages", why),
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

/// A kernel without something, or one that does not let it be read.
fn missing(what: &str, why: &Unread) -> String {
    match why.unread {
        Cause::Absent => format!("there are no {what} ({why})"),
        _ => format!("whether there are {what} could not be read ({why})"),
    }
}

fn pools(pools: &Reading<Vec<Pool>>) -> String {
    let pools = match pools {
        Reading::Known(pools) => pools,
        Reading::Unread(why) => return missing("hugetlb pools", why),
    };
    if let Some(why) = pools.iter().find_map(|pool| pool.nr.unread()) {
        return format!("how many pages the hugetlb pools have could not be read ({why})");
    }
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
