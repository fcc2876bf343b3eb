//! What a measured latency curve says of caches and memory: its plateaus, and where it leaves one.

use model::latency::{Access as Step, Latency, Pattern, Point};
use model::{Bytes, PageKind};

use super::{From, LINE, Measured, Unknown, Value, What, clock, exactly};
use crate::translation::caches::PLACES;
use crate::translation::machine::Machine;

/// ns of a step in a place, on huge pages where they are measured: of base pages only where their TLB surely holds the working set.
pub(super) fn plateau(latency: &Latency, machine: &Machine, place: usize) -> Option<f64> {
    let size = |place: usize| {
        let cache = machine.caches.get(place)?;
        Some(u64::from(cache.sets) * u64::from(cache.ways) * LINE)
    };
    let is_memory = place == PLACES - 1;
    let last = machine.caches.len().checked_sub(1).and_then(size)?;
    let (from, to) = match place {
        0 => (0, size(0)? / 2),
        _ if is_memory => (last.checked_mul(4)?, u64::MAX),
        _ => (size(place - 1)?.checked_mul(2)?, size(place)? / 2),
    };
    let reach = |page: Bytes| {
        machine
            .entries(page)
            .first()
            .copied()
            .unwrap_or(0)
            .saturating_mul(page.0)
    };
    let fits = |point: &&Point| {
        let is_chase = point.pattern == Pattern::RandomLine && point.access == Step::Read;
        let is_translated = point.kind != PageKind::Base || point.bytes.0 <= reach(Bytes::kib(4));
        is_chase && is_translated && (from..=to).contains(&point.bytes.0) && point.ns.is_some()
    };
    // Twice as much as the cache before, which then hardly helps; no more, as others may take a part of a shared cache. Of memory
    // the largest, which caches help least.
    let wanted = match place {
        0 => to,
        _ if is_memory => u64::MAX,
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

/// The part of the last cache that a program gets here, where a guest or other programs take some: the working set at which a step costs as much
/// between that cache and memory as it can (in logarithms).
pub(super) fn share_of_last_cache(machine: &mut Machine, measured: &Measured<'_>, values: &mut [Value]) {
    let Some((latency, source)) = measured.latency else {
        return;
    };
    let Some(last) = machine.caches.len().checked_sub(1).filter(|&last| last > 0) else {
        return;
    };
    let own = |what: Unknown| {
        let found = values.iter().find(|value| value.what == What::Cost(what))?;
        (found.from == From::Measured).then_some(found.value.middle)
    };
    let near = own(if last == 2 {
        Unknown::L3Latency
    } else {
        Unknown::L2Latency
    });
    let (Some(near), Some(far), Some((ghz, _))) = (near, own(Unknown::MemoryLatency), clock(measured)) else {
        return;
    };
    let before = machine.caches[last - 1];
    let from = u64::from(before.sets) * u64::from(before.ways) * LINE * 2;
    let Some(size) = crossing(&curve(latency, from), (near * far).sqrt() / ghz) else {
        return;
    };
    let cache = &mut machine.caches[last];
    let sets = size / LINE / u64::from(cache.ways);
    let Some(sets) = u32::try_from(sets).ok().filter(|&sets| sets > 0 && sets < cache.sets) else {
        return;
    };
    cache.sets = sets;
    let level = last as u8 + 1;
    if let Some(value) = values.iter_mut().find(|value| value.what == What::CacheBytes { level }) {
        value.value = exactly((u64::from(sets) * u64::from(cache.ways) * LINE) as f64);
        (value.from, value.source) = (From::Measured, source.to_owned());
    }
}

/// Working sets and ns of a chase on huge pages, from a size on.
fn curve(latency: &Latency, from: u64) -> Vec<(u64, f64)> {
    let is_chase = |point: &&Point| {
        let is_read = point.pattern == Pattern::RandomLine && point.access == Step::Read;
        is_read && point.kind != PageKind::Base && point.bytes.0 >= from
    };
    let points = latency.points.iter().filter(is_chase);
    let mut curve: Vec<(u64, f64)> = points
        .filter_map(|point| Some((point.bytes.0, point.ns?.median)))
        .collect();
    curve.sort_by_key(|&(size, _)| size);
    curve
}

/// Where a curve first rises above a level, between two points in logarithms.
fn crossing(curve: &[(u64, f64)], level: f64) -> Option<u64> {
    let pair = curve.windows(2).find(|pair| pair[0].1 <= level && pair[1].1 > level)?;
    let [(low, below), (high, above)] = [pair[0], pair[1]];
    let share = (level / below).ln() / (above / below).ln();
    Some((low as f64 * (high as f64 / low as f64).powf(share)) as u64)
}
