//! What a measured latency curve says of the last cache, of memory and of page walks: the costs with which the simulator reproduces it.
//!
//! A step through much memory is a load and often a page walk. In a guest the host's part of that walk is in every measured time, on huge
//! pages, too, if the host backs them with small ones. So no point of a curve is the latency of memory by itself: points are simulated on the
//! pages that they were measured on, and costs are fitted to all of them at once. What a walk costs is then charged once.

use model::latency::Latency;
use model::{Bytes, PageKind};

use super::curve::{is_chase, size};
use super::facts::{Measured, clock};
use super::search::{Found, OTHER, Search, Step, with_its_walker};
use crate::engine::Mode;
use crate::machine::unknown::{LATENCIES, Unknown};
use crate::machine::values::{From, Value, What};
use crate::machine::{Machine, RowReading};
use crate::measured::fit::Known;
use crate::study::{L2_TLB_HIT, Setting, possible};
use crate::walk::caches::{Cache, PLACES};
use crate::walk::scatter::Scatter;

/// Points of one page size that are simulated at most.
const MOST: usize = 12;

/// Finds the size of the last cache, its latency, that of memory, and what page-table reads cost relative to loads, as far as the curve
/// shows them.
pub(super) fn far(machine: &mut Machine, measured: &Measured<'_>, values: &mut Vec<Value>) {
    let Some((latency, source)) = measured.latency else {
        return;
    };
    let Some(last) = machine.caches.len().checked_sub(1).filter(|&last| last > 0) else {
        return;
    };
    let Some((ghz, _)) = clock(measured) else { return };
    let steps = steps(latency, machine, measured, ghz, 2 * size(&machine.caches[last - 1]));
    if steps.is_empty() || machine.latencies[..last].iter().any(Option::is_none) {
        return;
    }
    let mut search = Search::new(machine, &steps);
    let short_walk = measured
        .tlb
        .and_then(|(tlb, _)| tlb.level(PageKind::Base, 2)?.miss_cycles);
    let known_beside = |last: &Cache| Known {
        short_walk: short_walk.map(|cycles| cycles.high),
        ..known(machine, &steps, last)
    };
    let mut known = known_beside(&machine.caches[last]);
    let mut found = search.best(&known);
    // Points lie beyond what others leave of the last cache, too: then they show what walks cost.
    let of_part = found.as_ref().map(|found| known_beside(&found.caches[last]));
    if let Some(of_part) = of_part.filter(|of_part| known.walk_reads.is_some() && of_part.walk_reads.is_none()) {
        known = of_part;
        found = search.best(&known);
    }
    let found = found.and_then(|found| with_its_walker(machine, &steps, &known, found));
    if let Some(found) = found {
        take(machine, found, &known, source, values);
    }
}

/// The machine becomes what was found, and each value says where it comes from.
fn take(machine: &mut Machine, found: Found, known: &Known, source: &str, values: &mut Vec<Value>) {
    let last = machine.caches.len() - 1;
    let whole = size(&machine.caches[last]);
    let mut set = |what: What, value: f64| {
        let new = Value::exact(what, value, From::Measured, source);
        match values.iter_mut().find(|value| value.what == what) {
            Some(value) => *value = new,
            None => values.push(new),
        }
    };
    let part = size(&found.caches[last]);
    if part != whole {
        set(What::CacheBytes { level: last as u8 + 1 }, part as f64);
    }
    if found.caches.iter().any(|cache| cache.replacement == OTHER) {
        machine.readings.push(RowReading::RandomReplacement);
    }
    machine.caches = found.caches;
    for place in [last, PLACES - 1] {
        if found.is_seen[place] {
            machine.latencies[place] = Some(found.costs.latencies[place]);
            set(What::Cost(LATENCIES[place]), found.costs.latencies[place]);
        }
    }
    if known.walk_reads.is_none() {
        machine.walk_reads = Some(found.costs.walk_reads);
        set(What::Cost(Unknown::WalkReads), found.costs.walk_reads);
    }
    if let Some(walker) = found.walker {
        machine.walk_caches = Some(walker.caches);
        machine.nested_tlb = Some(walker.nested_tlb);
        set(What::Cost(Unknown::WalkCaches), f64::from(walker.caches.0[0]));
    }
    if known.walk.is_none() {
        machine.walk = Some(found.costs.walk);
        set(What::Cost(Unknown::Walk), found.costs.walk);
    }
}

/// Near latencies stay as their plateaus show them. What walks cost is distinguished from loads where pages of two sizes miss in the last cache.
fn known(machine: &Machine, steps: &[Step], last: &Cache) -> Known {
    let mut latencies = machine.latencies;
    latencies[machine.caches.len() - 1..].fill(None);
    let beyond = 4 * size(last);
    let mut pages: Vec<Bytes> = steps
        .iter()
        .filter(|step| step.working_set >= beyond)
        .map(|step| step.setting.guest_page)
        .collect();
    pages.dedup();
    let is_one_size = pages.len() < 2;
    Known {
        latencies,
        l2_tlb_hit: machine.l2_tlb_hit.or(Some(L2_TLB_HIT.middle)),
        walk: machine.walk.or(is_one_size.then_some(0.0)),
        walk_reads: is_one_size.then_some(machine.walk_reads.unwrap_or(1.0)),
        short_walk: None,
        is_nested: steps.iter().any(|step| step.setting.mode == Mode::Nested),
    }
}

/// Points from a working set on, those of each page size together, at most [`MOST`] of it.
fn steps(latency: &Latency, machine: &Machine, measured: &Measured<'_>, ghz: f64, from: u64) -> Vec<Step> {
    let mut kinds: Vec<PageKind> = latency.points.iter().map(|point| point.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of_kind = |kind: PageKind| {
        let Some(setting) = setting(kind, machine, measured) else {
            return Vec::new();
        };
        let points = latency
            .points
            .iter()
            .filter(|point| point.kind == kind && is_chase(point));
        let far = points.filter(|point| point.bytes.0 >= from);
        let step = far.filter_map(|point| {
            Some(Step {
                setting,
                working_set: point.bytes.0,
                cycles: point.ns?.median * ghz,
                scatter: point.frames.as_ref().map(Scatter::of),
            })
        });
        let mut steps: Vec<Step> = step.collect();
        steps.sort_by_key(|step| step.working_set);
        thinned(&steps)
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Evenly, with both ends.
fn thinned(steps: &[Step]) -> Vec<Step> {
    if steps.len() <= MOST {
        return steps.to_vec();
    }
    let place = |number: usize| number * (steps.len() - 1) / (MOST - 1);
    (0..MOST).map(|number| steps[place(number)]).collect()
}

fn setting(kind: PageKind, machine: &Machine, measured: &Measured<'_>) -> Option<Setting> {
    let guest_page = match kind {
        PageKind::Mthp(_) => return None,
        _ => kind.page_size(measured.base_page, measured.pmd_page),
    };
    let mode = match measured.host_page {
        Some(_) => Mode::Nested,
        None => Mode::Native,
    };
    let setting = Setting {
        mode,
        guest_page,
        host_page: measured.host_page,
        share: None,
    };
    possible(machine, setting).is_ok().then_some(setting)
}

#[cfg(test)]
#[path = "far_tests.rs"]
mod tests;
