//! What a measured latency curve says of near caches: its plateaus.

use model::latency::{Access as Step, Latency, Pattern, Point};
use model::{Bytes, PageKind};

use crate::machine::Machine;
use crate::walk::caches::Cache;

/// Bytes of a line in all caches.
pub(super) const LINE: u64 = 64;

pub(super) fn size(cache: &Cache) -> u64 {
    cache.lines() * LINE
}

/// Is it a chase of loads through all lines?
pub(super) fn is_chase(point: &Point) -> bool {
    point.pattern == Pattern::RandomLine && point.access == Step::Read
}

/// ns of a step in a cache before the last, on huge pages where they are measured: of base pages only where their TLB surely holds the working set.
pub(super) fn plateau(latency: &Latency, machine: &Machine, place: usize) -> Option<f64> {
    let bytes = |place: usize| machine.caches.get(place).map(size);
    let (from, to) = match place {
        0 => (0, bytes(0)? / 2),
        _ => (bytes(place - 1)?.checked_mul(2)?, bytes(place)? / 2),
    };
    let entries = machine.entries(Bytes::kib(4)).first().copied().unwrap_or(0);
    let reach = entries.saturating_mul(Bytes::kib(4).0);
    let fits = |point: &&Point| {
        let is_translated = point.kind != PageKind::Base || point.bytes.0 <= reach;
        is_chase(point) && is_translated && (from..=to).contains(&point.bytes.0) && point.ns.is_some()
    };
    // Twice as much as the cache before, which then hardly helps.
    let wanted = match place {
        0 => to,
        _ => from.saturating_mul(2).min(to),
    };
    let distance = |point: &&Point| (point.bytes.0 as f64 / wanted as f64).ln().abs();
    let points = latency.points.iter().filter(fits);
    let best = points.min_by(|one, other| {
        let by_size = distance(one).total_cmp(&distance(other));
        by_size.then((one.kind == PageKind::Base).cmp(&(other.kind == PageKind::Base)))
    });
    best.and_then(|point| point.ns).map(|ns| ns.median)
}
