//! Latency inside a KVM guest: the matrix of guest page size and host backing, charts, and lines of CSV.

use std::collections::{BTreeMap, BTreeSet};

use model::guest::{Guest, GuestPage, GuestPoint};
use model::{Bytes, PageKind};

use super::latency::{dot, spread};
use super::{guest_costs, guest_costs::counters};
use crate::show::Show;
use draw::{
    Along, Figure, Heat, Lines, NOT_CONVERGED, Scale, Series, Sheet, columns, counted, joined, legend, limits, lines,
    number, or, or_empty,
};

/// A chart of fewer working sets than this shows nothing.
const CURVE: usize = 3;

impl Show for Guest {
    fn title(&self) -> String {
        format!("Through a hypervisor ({})", self.mmu)
    }

    fn headlines(&self) -> Vec<String> {
        self.readings.clone()
    }

    /// The matrix at the largest working set, every working set, and what first touches and operations cost.
    fn sheets(&self) -> Vec<Sheet> {
        let sizes = sizes(self);
        let mut sheets: Vec<Sheet> = sizes.last().map(|&largest| matrix(self, largest)).into_iter().collect();
        if sizes.len() > 1 {
            sheets.push(by_size(self, &sizes));
        }
        sheets.extend(guest_costs::sheets(self));
        sheets
    }

    fn figures(&self) -> Vec<Figure> {
        if sizes(self).len() < CURVE {
            return Vec::new();
        }
        let all = pages(self).into_iter().map(|page| curves(self, page));
        all.filter(|figure| !figure.is_empty()).collect()
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|cell| &GuestPoint;
            guest_page => called(cell.guest_page), kind => cell.point.kind, bytes => cell.point.bytes.0,
            pattern => cell.point.pattern, access => cell.point.access, ns_median => cell.point.ns?.median,
            ns_low => cell.point.ns?.low, ns_high => cell.point.ns?.high, bound_low => cell.point.bound?.low?,
            bound_high => cell.point.bound?.high?, samples => cell.point.ns.map_or(0, |ns| ns.samples),
            ratio_median => cell.ratio?.median, ratio_low => cell.ratio?.low, ratio_high => cell.ratio?.high,
            backing => cell.point.backing.got, proof => cell.point.backing.proof,
            not_measured => cell.point.not_measured.as_ref()?,
        ];
        lines(fields, self.points.iter())
    }
}

fn sizes(guest: &Guest) -> BTreeSet<Bytes> {
    guest.points.iter().map(|point| point.point.bytes).collect()
}

fn kinds(guest: &Guest) -> BTreeSet<PageKind> {
    guest.points.iter().map(|point| point.point.kind).collect()
}

/// Native first.
fn pages(guest: &Guest) -> BTreeSet<Option<GuestPage>> {
    guest.points.iter().map(|point| point.guest_page).collect()
}

fn called(page: Option<GuestPage>) -> String {
    or(page, "native")
}

fn find(guest: &Guest, page: Option<GuestPage>, kind: PageKind, bytes: Bytes) -> Option<&GuestPoint> {
    let here = |point: &&GuestPoint| (point.guest_page, point.point.kind, point.point.bytes) == (page, kind, bytes);
    guest.points.iter().find(here)
}

/// Guest pages down, host backing across, shaded by the distance from the fastest.
fn matrix(guest: &Guest, bytes: Bytes) -> Sheet {
    let kinds = kinds(guest);
    let head = format!("guest page, at {bytes}");
    let columns = kinds.iter().map(|kind| format!("#on {kind}, ns"));
    let mut sheet = Sheet::new(
        "Guest page x host backing, ns per step: median ± half of its 95 % interval (times native on the same memory)",
        std::iter::once(head).chain(columns),
    );
    let here = |point: &&GuestPoint| point.point.bytes == bytes;
    let points = guest.points.iter().filter(here);
    let medians = points.filter_map(|point| Some(point.point.ns?.median));
    let best = medians.min_by(f64::total_cmp).unwrap_or(1.0);
    for page in pages(guest) {
        let cells = kinds.iter().map(|&kind| {
            let point = find(guest, page, kind, bytes);
            let ns = point.and_then(|point| point.point.ns);
            (or_empty(point.map(cell)), ns.map(|ns| Heat::of(ns.median / best)))
        });
        sheet.shaded_row(&called(page), cells);
    }
    sheet.note(legend("the fastest"));
    missing(guest).into_iter().for_each(|note| sheet.note(note));
    if guest.points.iter().any(|point| point.point.bound.is_some()) {
        sheet.note(NOT_CONVERGED);
    }
    sheet.note(how(guest));
    sheet
}

/// `218 ± 3 (1.04x)`.
fn cell(point: &GuestPoint) -> String {
    match (point.point.ns, point.ratio) {
        (None, _) => or(point.point.bound.map(|bound| limits(bound, number)), "not obtained"),
        (Some(ns), None) => spread(ns),
        (Some(ns), Some(ratio)) => format!("{} ({:.2}x)", spread(ns), ratio.median),
    }
}

/// Every working set; guest pages and kinds of which nothing was obtained are left to the matrix.
fn by_size(guest: &Guest, sizes: &BTreeSet<Bytes>) -> Sheet {
    let is_told = |point: &&GuestPoint| point.point.ns.is_some() || point.point.bound.is_some();
    let obtained: Vec<&GuestPoint> = guest.points.iter().filter(is_told).collect();
    let kinds: BTreeSet<PageKind> = obtained.iter().map(|point| point.point.kind).collect();
    let pages: BTreeSet<Option<GuestPage>> = obtained.iter().map(|point| point.guest_page).collect();
    let place = columns![|(bytes, page)| (Bytes, Option<GuestPage>); "#size" => bytes, "guest page" => called(*page)];
    let kinds = kinds.into_iter().flat_map(|kind| {
        columns![|(bytes, page)| (Bytes, Option<GuestPage>);
            (format!("#on {kind}, ns")) => cell(find(guest, *page, kind, *bytes)?),
        ]
    });
    let places = sizes
        .iter()
        .flat_map(|&bytes| pages.iter().map(move |&page| (bytes, page)));
    Sheet::of("The same at every working set", place.into_iter().chain(kinds), places)
}

/// Why points were not measured: one sentence for each reason, with the cells it holds for.
fn missing(guest: &Guest) -> Vec<String> {
    let mut reasons: BTreeMap<&str, BTreeMap<PageKind, BTreeSet<Option<GuestPage>>>> = BTreeMap::new();
    for point in &guest.points {
        if let Some(why) = point.point.not_measured.as_deref() {
            let cells = reasons.entry(why).or_default();
            cells.entry(point.point.kind).or_default().insert(point.guest_page);
        }
    }
    let sentence = |(why, kinds)| format!("not obtained: {}: {why}", cells(kinds));
    reasons.into_iter().map(sentence).collect()
}

/// `1G on base, thp; native, 4K on hugetlb-2M`.
fn cells(by_kind: BTreeMap<PageKind, BTreeSet<Option<GuestPage>>>) -> String {
    let mut by_pages: BTreeMap<BTreeSet<Option<GuestPage>>, Vec<String>> = BTreeMap::new();
    for (kind, pages) in by_kind {
        by_pages.entry(pages).or_default().push(kind.to_string());
    }
    let each = by_pages.into_iter().map(|(pages, kinds)| {
        let pages = joined(pages.into_iter().map(called), ", ");
        format!("{pages} on {}", kinds.join(", "))
    });
    joined(each, "; ")
}

fn how(guest: &Guest) -> String {
    let sanity = or_empty(guest.sanity.map(|sanity| {
        format!(
            "; a ring of {} that needs no translation takes {:.2} ns natively and {:.2} ns in the guest ({:.3}x)",
            sanity.bytes, sanity.native_ns, sanity.guest_ns, sanity.ratio
        )
    }));
    let by_kvm = counters(&guest.kvm_stats, |&count| count.to_string());
    format!(
        "{} in {:.1} s on CPU {}{sanity}; KVM counted over all guests: {by_kvm}",
        counted(guest.points.len(), "point"),
        guest.seconds,
        guest.cpu
    )
}

fn curves(guest: &Guest, page: Option<GuestPage>) -> Figure {
    let series = kinds(guest).into_iter().map(|kind| {
        let mine = |point: &&GuestPoint| (point.guest_page, point.point.kind) == (page, kind);
        let points = guest.points.iter().filter(mine);
        let mut dots: Vec<_> = points.filter_map(|point| dot(&point.point)).collect();
        dots.sort_by_key(|dot| dot.at);
        Series::of_kind(kind, dots)
    });
    let place = or(page.map(|page| format!("in a guest with pages of {page}")), "natively");
    let title = format!("Time of one step by working set and host backing, {place}");
    let id = format!("guest-{}", called(page));
    Figure::new(id, title, Along::WorkingSet, ("ns", Scale::Log), series)
}

#[cfg(test)]
#[path = "guest_tests.rs"]
mod tests;
