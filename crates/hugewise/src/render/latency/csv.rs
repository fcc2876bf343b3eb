//! Latency as lines of CSV: every point with its spread and its backing.

use model::latency::{Latency, Point};

use draw::table::{Field, Lines, lines};

pub fn csv(latency: &Latency) -> Lines<'_> {
    let fields: [Field<&Point>; _] = [
        Field::csv("kind", |point| point.kind.to_string()),
        Field::csv("bytes", |point| point.bytes.0.to_string()),
        Field::csv("pattern", |point| point.pattern.to_string()),
        Field::csv("access", |point| point.access.to_string()),
        Field::opt("ns_median", |point| Some(point.ns?.median.to_string())),
        Field::opt("ns_low", |point| Some(point.ns?.low.to_string())),
        Field::opt("ns_high", |point| Some(point.ns?.high.to_string())),
        Field::opt("bound_low", |point| Some(point.bound?.low?.to_string())),
        Field::opt("bound_high", |point| Some(point.bound?.high?.to_string())),
        Field::opt("converged", |point| Some(point.convergence?.converged.to_string())),
        Field::opt("warm_ns", |point| Some(point.convergence?.warm_ns.to_string())),
        Field::opt("cold_ns", |point| Some(point.convergence?.cold_ns.to_string())),
        Field::csv("samples", |point| point.ns.map_or(0, |ns| ns.samples).to_string()),
        Field::opt("cycles_median", |point| Some(point.cycles?.median.to_string())),
        Field::opt("cycles_low", |point| Some(point.cycles?.low.to_string())),
        Field::opt("cycles_high", |point| Some(point.cycles?.high.to_string())),
        Field::opt("quiet_ns", |point| Some(point.quiet?.ns.to_string())),
        Field::opt("quiet_cycles", |point| Some(point.quiet?.cycles.to_string())),
        Field::opt("quiet_share", |point| Some(point.quiet?.share.to_string())),
        Field::opt("stopped", |point| Some(point.stopped?.to_string())),
        Field::csv("dropped", |point| point.dropped.total().to_string()),
        Field::csv("backing", |point| point.backing.got.to_string()),
        Field::csv("proof", |point| point.backing.proof.clone()),
        Field::opt("not_measured", |point| point.not_measured.clone()),
    ];
    lines(fields, latency.points.iter())
}
