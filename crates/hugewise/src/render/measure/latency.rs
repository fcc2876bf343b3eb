//! Latency by working set and page kind: tables and charts.

use std::collections::{BTreeMap, BTreeSet};

use model::latency::{Access, Backed, Latency, Pattern, Point, Stopped};
use model::{Bytes, Estimate, PageKind};

use crate::show::Show;
use draw::{
    Along, Dot, Figure, Lines, NOT_CONVERGED, Scale, Series, Sheet, columns, counted, joined, limits, lines, number,
    or, or_empty,
};

impl Show for Latency {
    fn title(&self) -> String {
        "Latency by working set and page kind".to_owned()
    }

    /// One table for each pattern and access: sizes down, page kinds across.
    fn sheets(&self) -> Vec<Sheet> {
        let whole = |view| sheet(self, view, |_| true, true);
        let mut sheets: Vec<Sheet> = views(self).into_iter().map(whole).collect();
        if let Some(last) = sheets.last_mut() {
            last.note(how(self));
            if self.points.iter().any(|point| !disturbed(point).is_empty()) {
                last.note("quiet: core cycles without contention for the core's caches (the 0.5th percentile of the samples); JSON and CSV have the share of samples near it");
            }
            if let Some(why) = &self.no_pmu {
                last.note(format!("no hardware counters: {why}"));
            }
        }
        sheets
    }

    /// What latency and gain look like: two charts for each pattern and access.
    fn figures(&self) -> Vec<Figure> {
        let both = views(self).into_iter();
        let both = both.flat_map(|view| [curves(self, view), savings(self, view)]);
        both.filter(|figure| !figure.is_empty()).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|point| &Point;
            kind => point.kind, bytes => point.bytes.0, pattern => point.pattern, access => point.access,
            ns_median => point.ns?.median, ns_low => point.ns?.low, ns_high => point.ns?.high,
            bound_low => point.bound?.low?, bound_high => point.bound?.high?, converged => point.convergence?.converged,
            warm_ns => point.convergence?.warm_ns, cold_ns => point.convergence?.cold_ns,
            samples => point.ns.map_or(0, |ns| ns.samples), cycles_median => point.cycles?.median,
            cycles_low => point.cycles?.low, cycles_high => point.cycles?.high, quiet_ns => point.quiet?.ns,
            quiet_cycles => point.quiet?.cycles, quiet_share => point.quiet?.share, stopped => point.stopped?,
            dropped => point.dropped.total(), backing => point.backing.got, proof => point.backing.proof,
            not_measured => point.not_measured.as_ref()?,
        ];
        lines(fields, self.points.iter())
    }
}

/// A few working sets of each table, and no notes but what is missing.
pub fn brief_sheets(latency: &Latency) -> Vec<Sheet> {
    let sizes: BTreeSet<Bytes> = latency.points.iter().map(|point| point.bytes).collect();
    let largest = sizes.last().copied();
    let few = |bytes: Bytes| Some(bytes) == largest || (bytes.0.is_power_of_two() && bytes.0.ilog2().is_multiple_of(2));
    let brief = |view| sheet(latency, view, few, false);
    views(latency).into_iter().map(brief).collect()
}

/// Below this share of the median, the 0.5th percentile is shown.
const DISTURBED: f64 = 0.95;

type View = (Pattern, Access);

fn views(latency: &Latency) -> BTreeSet<View> {
    let points = latency.points.iter();
    points.map(|point| (point.pattern, point.access)).collect()
}

fn points_of(latency: &Latency, view: View) -> Vec<&Point> {
    let points = latency.points.iter();
    let mut points: Vec<&Point> = points.filter(|point| (point.pattern, point.access) == view).collect();
    points.sort_by_key(|point| (point.kind, point.bytes));
    points
}

fn kinds_of(points: &[&Point]) -> BTreeSet<PageKind> {
    points.iter().map(|point| point.kind).collect()
}

/// The sizes that are wanted; only a whole table says what backed the memory.
fn sheet(latency: &Latency, view: View, wanted: impl Fn(Bytes) -> bool, is_whole: bool) -> Sheet {
    let points = points_of(latency, view);
    let mut sheet = table(&points, view, wanted);
    missing(&points).into_iter().for_each(|note| sheet.note(note));
    if points.iter().any(|point| point.bound.is_some()) {
        sheet.note(NOT_CONVERGED);
    }
    let measured = points.iter().filter(|point| point.ns.is_some());
    let backing = backing(measured.map(|point| &point.backing)).filter(|_| is_whole);
    backing.iter().for_each(|note| sheet.note(note));
    sheet
}

fn own<'a>(points: &[&'a Point], kind: PageKind) -> Vec<&'a Point> {
    points.iter().copied().filter(|point| point.kind == kind).collect()
}

/// Sizes down, kinds across; only the sizes that are wanted.
fn table(points: &[&Point], (pattern, access): View, wanted: impl Fn(Bytes) -> bool) -> Sheet {
    let size = columns![|size| Bytes; "#size" => size];
    let kinds = kinds_of(points).into_iter().flat_map(|kind| {
        let at = move |size: Bytes| {
            points
                .iter()
                .find(move |point| (point.kind, point.bytes) == (kind, size))
        };
        columns![|size| Bytes; (format!("#{kind}, ns")) => cell(at(*size)?)]
    });
    let sizes: BTreeSet<Bytes> = points.iter().map(|point| point.bytes).collect();
    let title = format!("ns per step, {pattern}, {access}: median ± half of its 95 % CI (core cycles)");
    let wanted = sizes.into_iter().filter(|&size| wanted(size));
    Sheet::of(&title, size.into_iter().chain(kinds), wanted)
}

/// How many medians an end of an interval may be away to be worth its digits.
const FAR: f64 = 10.0;

fn cell(point: &Point) -> String {
    match (point.ns, point.cycles) {
        (None, _) => or(point.bound.map(|bound| limits(bound, number)), "not obtained"),
        (Some(ns), None) => spread(ns),
        (Some(ns), Some(cycles)) => format!("{} ({:.1}{})", spread(ns), cycles.median, disturbed(point)),
    }
}

/// The cost without contention, if that differs.
fn disturbed(point: &Point) -> String {
    let (Some(cycles), Some(quiet)) = (point.cycles, point.quiet) else {
        return String::new();
    };
    let is_less = quiet.cycles < DISTURBED * cycles.median;
    or_empty(is_less.then(|| format!("; quiet {:.1}", quiet.cycles)))
}

/// `98.2 ± 0.4`; an interval that is far wider than its median says anything else by its ends, `67.5 (12.3 to over 675)`.
pub fn spread(estimate: Estimate) -> String {
    let Estimate { median, low, high, .. } = estimate;
    let decimals = match median {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        _ => 2,
    };
    let half = (high - low) / 2.0;
    if half <= median {
        return format!("{median:.decimals$} ± {half:.decimals$}");
    }
    let most = FAR * median;
    let end = match high > most {
        true => format!("over {}", number(most)),
        false => number(high),
    };
    format!("{median:.decimals$} ({} to {end})", number(low))
}

/// Why points were not measured: one sentence for each kind and reason, with the sizes it holds for.
fn missing(points: &[&Point]) -> Vec<String> {
    let mut sizes: BTreeMap<(PageKind, &str), Vec<Bytes>> = BTreeMap::new();
    for point in points {
        if let Some(why) = &point.not_measured {
            sizes.entry((point.kind, why)).or_default().push(point.bytes);
        }
    }
    let all = sizes.into_iter();
    all.map(|((kind, why), sizes)| format!("not obtained: {kind} at {}: {why}", extent(&sizes)))
        .collect()
}

/// `16K`, or `16K to 2G (35 sizes)`.
fn extent(sizes: &[Bytes]) -> String {
    match sizes {
        [] => "no size".to_owned(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last} ({} sizes)", sizes.len()),
    }
}

/// What smaps or PAGEMAP_SCAN prove of measured memory, at the least.
pub(super) fn backing<'a>(measured: impl Iterator<Item = &'a Backed>) -> Option<String> {
    let measured: Vec<&Backed> = measured.collect();
    let shares = measured.iter().filter_map(|backed| backed.got.share(backed.asked));
    let least = shares.min_by(f64::total_cmp)?;
    let proofs: BTreeSet<&str> = measured.iter().map(|backed| backed.proof.as_str()).collect();
    Some(format!(
        "backing: wherever a page kind is named at least {} % of the memory was of that kind, proved by {}",
        number((least * 100.0).floor()),
        joined(proofs, ", ")
    ))
}

fn how(latency: &Latency) -> String {
    let clock = or(latency.core_ghz.map(|ghz| format!("{} GHz", spread(ghz))), "unknown");
    let dropped: u64 = latency.points.iter().map(|point| point.dropped.total()).sum();
    let is_spent = |point: &&Point| point.stopped == Some(Stopped::Budget);
    let spent = latency.points.iter().filter(is_spent).count();
    format!(
        "{} in {:.1} s and {} on CPU {}; core clock {clock}; {} dropped; {} ended by the time budget, not by a CI within 1 %",
        counted(latency.points.len(), "point"),
        latency.seconds,
        counted(latency.rounds as usize, "round"),
        latency.cpu,
        counted(dropped as usize, "sample"),
        counted(spent, "point")
    )
}

fn curves(latency: &Latency, view: View) -> Figure {
    let (pattern, access) = view;
    let points = points_of(latency, view);
    let series = kinds_of(&points).into_iter().flat_map(|kind| {
        let own = own(&points, kind);
        let measured = Series::of_kind(kind, own.iter().filter_map(|point| dot(point)).collect());
        let bounded = Series {
            name: format!("{kind}, not converged (upper limit)"),
            is_limit: true,
            ..Series::of_kind(kind, own.iter().filter_map(|point| limit_dot(point)).collect())
        };
        [measured, bounded]
    });
    let title = format!("Time of one step by working set: {pattern}, {access}");
    let id = format!("latency-{pattern}-{access}");
    Figure::new(id, title, Along::WorkingSet, ("ns", Scale::Log), series)
}

/// A point with a bound only stands at its upper limit.
fn limit_dot(point: &Point) -> Option<Dot> {
    let high = point.bound?.high?;
    let tip = format!(
        "{} at {}: not converged, {} ns; backed by {}",
        point.kind,
        point.bytes,
        limits(point.bound?, number).trim_end_matches(" ?"),
        point.backing.got
    );
    let low = point.bound?.low.unwrap_or(high);
    Some(Dot::new(point.bytes.0, [high, low, high], tip))
}

pub(super) fn dot(point: &Point) -> Option<Dot> {
    let ns = point.ns?;
    let cycles = |cycles| format!(", {} core cycles{}", spread(cycles), disturbed(point));
    let cycles = or_empty(point.cycles.map(cycles));
    let [median, low, high] = [ns.median, ns.low, ns.high].map(number);
    let tip = format!(
        "{} at {}: {median} ns (95 % CI {low} to {high}, {} samples){cycles}; backed by {}",
        point.kind, point.bytes, ns.samples, point.backing.got
    );
    Some(Dot::of(point.bytes.0, ns, tip))
}

fn savings(latency: &Latency, view: View) -> Figure {
    let (pattern, access) = view;
    let points = points_of(latency, view);
    let base = |bytes: Bytes| {
        points
            .iter()
            .find(|point| (point.kind, point.bytes) == (PageKind::Base, bytes))
    };
    let large = kinds_of(&points).into_iter().filter(|kind| kind.is_large());
    let series = large.map(|kind| {
        let own = own(&points, kind).into_iter();
        Series::of_kind(
            kind,
            own.filter_map(|point| saving(point, base(point.bytes)?)).collect(),
        )
    });
    let title = format!("Time saved against base pages: {pattern}, {access}");
    let y = ("% of the time on base pages, down to -100", Scale::Linear);
    Figure::new(format!("gain-{pattern}-{access}"), title, Along::WorkingSet, y, series)
}

/// The chart of savings ends at twice the time: one disturbed point would flatten all others. Its tip has the whole interval.
const LOWEST: f64 = -100.0;

/// Time saved, in percent of the time on base pages, by the ratio of both visits in each round: its interval is never made of the
/// ends of two others.
fn saving(large: &Point, base: &Point) -> Option<Dot> {
    let (fast, slow) = (large.ns?.median, base.ns?.median);
    let saved = |ratio: f64| (1.0 - ratio) * 100.0;
    let ratio = stats::ratio(&large.visits, &base.visits, 1);
    let value = saved(ratio.map_or(fast / slow, |ratio| ratio.median));
    let ends = ratio.map(|ratio| [saved(ratio.high), saved(ratio.low)]);
    let spread = ends.map(|[low, high]| format!("{} to {} %", number(low), number(high)));
    let spread = or(spread, "no interval: the result holds fewer than two visits");
    let [share, ns, base_ns] = [value, fast, slow].map(number);
    let tip = format!(
        "{} at {}: {share} % saved ({spread}): {ns} ns instead of {base_ns} ns",
        large.kind, large.bytes
    );
    let [low, high] = ends.unwrap_or([value; 2]);
    let drawn = [value, low, high].map(|end| end.max(LOWEST));
    Some(Dot::new(large.bytes.0, drawn, tip))
}

#[cfg(test)]
#[path = "latency_tests.rs"]
mod tests;
