//! Latency as lines of CSV.

use model::latency::{Bound, Latency, Point, Stopped};

use crate::render::words::bounds;
use crate::show::Lines;

/// The heads and lines of CSV: every point with its spread and its backing.
pub fn csv(latency: &Latency) -> Lines {
    let head = [
        "kind",
        "bytes",
        "pattern",
        "access",
        "ns_median",
        "ns_low",
        "ns_high",
        "bound_low",
        "bound_high",
        "converged",
        "warm_ns",
        "cold_ns",
        "samples",
        "cycles_median",
        "cycles_low",
        "cycles_high",
        "quiet_ns",
        "quiet_cycles",
        "quiet_share",
        "stopped",
        "dropped",
        "backing",
        "proof",
        "not_measured",
    ];
    (head.to_vec(), latency.points.iter().map(csv_line).collect())
}

fn csv_line(point: &Point) -> Vec<String> {
    let [ns_median, ns_low, ns_high] = bounds(point.ns);
    let [cycles_median, cycles_low, cycles_high] = bounds(point.cycles);
    let [quiet_ns, quiet_cycles, quiet_share] = point.quiet.map_or_else(Default::default, |quiet| {
        [quiet.ns, quiet.cycles, quiet.share].map(|value| value.to_string())
    });
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let limit = |of: fn(Bound) -> Option<f64>| number(point.bound.and_then(of));
    let shown = point.convergence;
    let stopped = point.stopped.map_or("", |stopped| match stopped {
        Stopped::Interval => "interval",
        Stopped::Budget => "budget",
    });
    vec![
        point.kind.to_string(),
        point.bytes.0.to_string(),
        point.pattern.to_string(),
        point.access.to_string(),
        ns_median,
        ns_low,
        ns_high,
        limit(|bound| bound.low),
        limit(|bound| bound.high),
        shown.map_or_else(String::new, |shown| shown.converged.to_string()),
        number(shown.map(|shown| shown.warm_ns)),
        number(shown.map(|shown| shown.cold_ns)),
        point.ns.map_or(0, |ns| ns.samples).to_string(),
        cycles_median,
        cycles_low,
        cycles_high,
        quiet_ns,
        quiet_cycles,
        quiet_share,
        stopped.to_owned(),
        point.dropped.total().to_string(),
        point.backing.got.to_string(),
        point.backing.proof.clone(),
        point.not_measured.clone().unwrap_or_default(),
    ]
}
