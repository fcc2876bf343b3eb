//! Latency as lines of CSV: every point with its spread and its backing.

use model::latency::{Latency, Point};

use crate::render::table::{Field, Lines, lines};
use crate::render::words::or_empty;

/// The points as CSV.
pub fn csv(latency: &Latency) -> Lines<'_> {
    let fields: [Field<&Point>; _] = [
        Field::csv("kind", |point| point.kind.to_string()),
        Field::csv("bytes", |point| point.bytes.0.to_string()),
        Field::csv("pattern", |point| point.pattern.to_string()),
        Field::csv("access", |point| point.access.to_string()),
        Field::csv("ns_median", |point| or_empty(point.ns.map(|ns| ns.median))),
        Field::csv("ns_low", |point| or_empty(point.ns.map(|ns| ns.low))),
        Field::csv("ns_high", |point| or_empty(point.ns.map(|ns| ns.high))),
        Field::csv("bound_low", |point| or_empty(point.bound.and_then(|bound| bound.low))),
        Field::csv("bound_high", |point| or_empty(point.bound.and_then(|bound| bound.high))),
        Field::csv("converged", |point| {
            or_empty(point.convergence.map(|shown| shown.converged))
        }),
        Field::csv("warm_ns", |point| {
            or_empty(point.convergence.map(|shown| shown.warm_ns))
        }),
        Field::csv("cold_ns", |point| {
            or_empty(point.convergence.map(|shown| shown.cold_ns))
        }),
        Field::csv("samples", |point| point.ns.map_or(0, |ns| ns.samples).to_string()),
        Field::csv("cycles_median", |point| {
            or_empty(point.cycles.map(|cycles| cycles.median))
        }),
        Field::csv("cycles_low", |point| or_empty(point.cycles.map(|cycles| cycles.low))),
        Field::csv("cycles_high", |point| or_empty(point.cycles.map(|cycles| cycles.high))),
        Field::csv("quiet_ns", |point| or_empty(point.quiet.map(|quiet| quiet.ns))),
        Field::csv("quiet_cycles", |point| or_empty(point.quiet.map(|quiet| quiet.cycles))),
        Field::csv("quiet_share", |point| or_empty(point.quiet.map(|quiet| quiet.share))),
        Field::csv("stopped", |point| or_empty(point.stopped)),
        Field::csv("dropped", |point| point.dropped.total().to_string()),
        Field::csv("backing", |point| point.backing.got.to_string()),
        Field::csv("proof", |point| point.backing.proof.clone()),
        Field::csv("not_measured", |point| or_empty(point.not_measured.as_ref())),
    ];
    lines(fields, latency.points.iter())
}
