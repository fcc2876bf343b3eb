//! From samples in ticks to the published result, and its warnings. Pure.

use std::collections::BTreeMap;
use std::time::Instant;

use host::snapshot::Mmu;
use model::guest::{FirstTouch, Guest, GuestPoint, Operation, Sanity};
use model::latency::Point;
use model::{Bytes, Estimate, NotMeasured, PageKind, Warning};

use super::cell::{Cell, Counted, SANITY, Turns};
use super::operations::Measured;
use super::readings;
use super::spec::Spec;
use crate::visits::{Visits, bound_in};
use crate::warnings;

/// A guest whose first-level-cache ring differs by more than this share from the native one is emulated.
const SANE: f64 = 0.03;

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) cells: Vec<Cell>,
    pub(super) operations: Vec<Measured>,
}

impl Outcome {
    pub(super) fn publish(&self, spec: &Spec, ticks_per_ns: f64, cpu: u32, begun: Instant) -> Guest {
        let clock = Clock(ticks_per_ns);
        let mut guest = Guest {
            mmu: spec.mmu.as_ref().map(|mmu| mmu.name().to_owned()),
            sanity: self.sanity(&clock),
            points: self.points(spec, &clock),
            fault_ns: self.cells.iter().filter_map(|cell| first_touch(cell, &clock)).collect(),
            exits: self.operations(spec, &clock, false),
            churn: self.operations(spec, &clock, true),
            kvm_stats: self.kvm_stats(),
            readings: Vec::new(),
            tsc_ghz: ticks_per_ns,
            cpu,
            seconds: begun.elapsed().as_secs_f64(),
        };
        if guest.sanity.is_some_and(|sanity| sanity.emulated) {
            guest.points.iter_mut().for_each(claim_nothing);
        }
        guest
            .points
            .sort_by_key(|point| (point.point.kind, point.guest_page, point.point.bytes));
        guest.fault_ns.sort_by_key(|touch| (touch.kind, touch.guest_page));
        guest.readings = readings::all(&guest, spec.mmu.known().copied());
        guest
    }

    fn sanity(&self, clock: &Clock) -> Option<Sanity> {
        let all: Vec<&Turns> = self.counted().map(|counted| &counted.sanity).collect();
        let ratios: Vec<f64> = all.iter().flat_map(|turns| turns.ratios()).collect();
        let ratio = stats::median(&ratios)?;
        let side = |side: fn(&Turns) -> &Visits| {
            let ticks: Vec<f64> = all.iter().flat_map(|turns| &side(turns).samples).copied().collect();
            stats::median(&ticks).map(|ticks| ticks / clock.0)
        };
        Some(Sanity {
            bytes: SANITY,
            native_ns: side(|turns| &turns.native)?,
            guest_ns: side(|turns| &turns.guest)?,
            ratio,
            emulated: (ratio - 1.0).abs() > SANE,
        })
    }

    fn points(&self, spec: &Spec, clock: &Clock) -> Vec<GuestPoint> {
        let sides = self.sides();
        let guests = self.cells.iter().flat_map(|cell| {
            let sized = cell.sized.iter();
            sized.map(move |(bytes, backed, turns)| {
                let bare = Point::bare(cell.kind, *bytes, spec.pattern, spec.access, backed.clone());
                guest_point(cell, clock, bare, turns, sides)
            })
        });
        let kinds = spec
            .kinds
            .iter()
            .flat_map(|&kind| spec.sizes.iter().map(move |&bytes| (kind, bytes)));
        let natives = kinds.filter_map(|(kind, bytes)| self.native_point(spec, clock, kind, bytes));
        guests.chain(natives).collect()
    }

    /// The native walks beside all guests on that memory, as one point.
    fn native_point(&self, spec: &Spec, clock: &Clock, kind: PageKind, bytes: Bytes) -> Option<GuestPoint> {
        let cells = self.cells.iter().filter(|cell| cell.kind == kind);
        let sized: Vec<_> = cells
            .flat_map(|cell| &cell.sized)
            .filter(|(size, ..)| *size == bytes)
            .collect();
        let mut native = Visits::default();
        for turns in sized.iter().filter_map(|(.., turns)| turns.as_ref().ok()) {
            native.join(&turns.native);
        }
        let (_, backed, first) = sized.first()?;
        let reason = first.as_ref().err().filter(|_| native.samples.is_empty()).cloned();
        let bare = Point::bare(kind, bytes, spec.pattern, spec.access, backed.clone());
        Some(GuestPoint {
            guest_page: None,
            point: clock.point(bare, &native, reason, self.sides()),
            ratio: None,
            warm_stats: BTreeMap::new(),
            timed_stats: BTreeMap::new(),
        })
    }

    fn operations(&self, spec: &Spec, clock: &Clock, churn: bool) -> Vec<Operation> {
        // Without the CPU's virtualization, ring 0 of a guest is interpreted.
        let emulated = churn && spec.mmu.known() == Some(&Mmu::ShadowPvm);
        let published = |measured: &Measured| {
            let (ns, per_operation, not_measured) = match &measured.result {
                Ok((visits, counted)) => (clock.of(visits), counted.clone(), None),
                Err(why) => (None, BTreeMap::new(), Some(why.clone())),
            };
            Operation {
                name: measured.name.to_owned(),
                what: measured.what.to_owned(),
                ns,
                emulated,
                per_operation,
                not_measured,
            }
        };
        let mine = self.operations.iter().filter(|measured| measured.churn == churn);
        mine.map(published).collect()
    }

    fn kvm_stats(&self) -> BTreeMap<String, i64> {
        let mut sum = BTreeMap::new();
        for (name, count) in self.counted().flat_map(|counted| &counted.all_stats) {
            *sum.entry(name.clone()).or_insert(0) += count;
        }
        sum
    }

    fn counted(&self) -> impl Iterator<Item = &Counted> {
        self.cells.iter().filter_map(|cell| cell.guest.as_ref())
    }

    /// Sides of measured points: each is asked whether it was at rest.
    fn sides(&self) -> usize {
        let points = self.cells.iter().flat_map(|cell| &cell.sized);
        2 * points.filter(|(.., turns)| turns.is_ok()).count()
    }

    /// What weakens the result.
    pub(super) fn warnings(&self, guest: &Guest) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some(sanity) = guest.sanity.filter(|sanity| sanity.emulated) {
            warnings.push(Warning::new("emulated", format!(
                "a ring of {} that needs no translation costs {:.2} ns in the guest and {:.2} ns natively: the guest does not run on the bare core, or contention disturbed it; none of its latencies is a cost of translation; repeat on a quieter machine",
                sanity.bytes, sanity.guest_ns, sanity.native_ns
            )));
        }
        let cold: Vec<String> = self
            .cells
            .iter()
            .filter(|cell| is_cold(cell))
            .map(|cell| format!("{} on {}", cell.page, cell.kind))
            .collect();
        if !cold.is_empty() {
            warnings.push(Warning::new("not-warm", format!(
                "the hypervisor still fixed page faults while these guests were timed: {}; something on the host takes their pages away (KSM, compaction, NUMA balancing, swapping)",
                cold.join(", ")
            )));
        }
        let open = guest.points.iter().filter(|point| point.point.bound.is_some());
        let name = |point: &GuestPoint| {
            let page = point.guest_page.map_or("native".to_owned(), |page| page.to_string());
            format!("{} of {page} on {}", point.point.bytes, point.point.kind)
        };
        warnings.extend(warnings::not_converged(open.map(name), guest.points.len()));
        warnings
    }
}

/// A guest that does not run on the bare core has no latency that means anything.
fn claim_nothing(point: &mut GuestPoint) {
    if point.guest_page.is_some() && point.point.not_measured.is_none() {
        (point.point.ns, point.point.bound) = (None, None);
        point.point.visits.clear();
        point.ratio = None;
        point.point.not_measured = Some(NotMeasured::Emulated.to_string());
    }
}

/// More faults while it was timed than stray ones.
fn is_cold(cell: &Cell) -> bool {
    let fixed = |counted: &Counted| counted.timed_stats.get("pf_fixed").copied().unwrap_or(0);
    cell.guest.as_ref().is_some_and(|counted| fixed(counted) > 100)
}

/// Ticks of the time stamp counter per nanosecond.
struct Clock(f64);

impl Clock {
    fn estimate(&self, ticks: &[f64]) -> Option<Estimate> {
        stats::estimate(ticks).map(|estimate| estimate.scaled(1.0 / self.0))
    }

    fn of(&self, visits: &Visits) -> Option<Estimate> {
        visits.estimate().map(|estimate| estimate.scaled(1.0 / self.0))
    }

    /// A point with these visits, or why there are none. Visits that had not come to rest give a bound and no number.
    fn point(&self, bare: Point, visits: &Visits, not_measured: Option<NotMeasured>, sides: usize) -> Point {
        let bound = visits.moving(sides).map(|bound| bound_in(bound, self.0));
        Point {
            ns: self.of(visits).filter(|_| bound.is_none()),
            bound,
            visits: visits.medians.iter().map(|ticks| ticks / self.0).collect(),
            not_measured: not_measured.map(|why| why.to_string()),
            ..bare
        }
    }
}

/// What is published of a point of the matrix; `sides` were asked whether they were at rest.
fn guest_point(
    cell: &Cell,
    clock: &Clock,
    bare: Point,
    turns: &Result<Turns, NotMeasured>,
    sides: usize,
) -> GuestPoint {
    let none = Visits::default();
    let (guest, ratio, reason) = match turns {
        Ok(turns) => {
            let ratio = stats::of_medians(&turns.ratios()).filter(|_| turns.are_at_rest(sides));
            (&turns.guest, ratio, None)
        }
        Err(why) => (&none, None, Some(why.clone())),
    };
    let counted =
        |stats: fn(&Counted) -> &BTreeMap<String, i64>| cell.guest.as_ref().map(stats).cloned().unwrap_or_default();
    GuestPoint {
        guest_page: Some(cell.page),
        point: clock.point(bare, guest, reason, sides),
        ratio,
        warm_stats: counted(|counted| &counted.warm_stats),
        timed_stats: counted(|counted| &counted.timed_stats),
    }
}

fn first_touch(cell: &Cell, clock: &Clock) -> Option<FirstTouch> {
    let counted = cell.guest.as_ref()?;
    let faults = counted
        .touch_stats
        .get("pf_fixed")
        .and_then(|&faults| u64::try_from(faults).ok());
    let per_fault = faults.and_then(|faults| per_fault(&counted.first, &counted.second, faults));
    Some(FirstTouch {
        guest_page: cell.page,
        kind: cell.kind,
        touched: counted.touched,
        faults,
        touch_ns: clock.estimate(&counted.first),
        warm_ns: clock.estimate(&counted.second),
        ns: per_fault.map(|ticks| ticks / clock.0),
        kvm_stats: counted.touch_stats.clone(),
    })
}

/// What a fault adds, in ticks: each block's first pass against its second one, in as many blocks as can have had a fault,
/// those that took longest. Their median leaves out what an interrupt or contention added to a few.
fn per_fault(first: &[f64], second: &[f64], faults: u64) -> Option<f64> {
    let mut longer: Vec<f64> = first.iter().zip(second).map(|(first, second)| first - second).collect();
    longer.sort_by(|a, b| b.total_cmp(a));
    longer.truncate(usize::try_from(faults).unwrap_or(usize::MAX));
    let all = stats::median(&longer)? * longer.len() as f64 * vm::beside::TOUCH_PAGES as f64;
    Some(all / faults as f64).filter(|&ticks| ticks > 0.0)
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
