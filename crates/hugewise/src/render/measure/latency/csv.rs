//! Latency as lines of CSV: every point with its spread and its backing.

use model::latency::{Latency, Point};

use draw::{Lines, columns, lines};

pub fn csv(latency: &Latency) -> Lines<'_> {
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
    lines(fields, latency.points.iter())
}
