//! Misses by the number of TLB entries, one column for each page size.

use translation::study::{Curve, CurvePoint};

use super::{bytes, percent};
use draw::{Lines, Sheet, columns, lines};

/// Of curves that have the same numbers of entries.
pub(super) fn sheet(curves: &[Curve]) -> Sheet {
    let head = |curve: &Curve| {
        let memory = curve.working_set.map_or_else(String::new, |size| format!("{size} "));
        format!("#{memory}by {}, %", curve.entry)
    };
    let heads = ["#entries".to_owned()].into_iter().chain(curves.iter().map(head));
    let mut sheet = Sheet::new("Misses by TLB entries", heads);
    let rows = curves.first().map_or(0, |curve| curve.points.len());
    for row in 0..rows {
        let entries = curves[0].points[row].entries.to_string();
        let rate = |curve: &Curve| curve.points.get(row).and_then(|point| point.miss_rate);
        let cell = |curve: &Curve| rate(curve).map_or_else(|| "-".to_owned(), percent);
        sheet.row([entries].into_iter().chain(curves.iter().map(cell)));
    }
    sheet.note("accesses that miss in a fully associative TLB of so many entries with LRU replacement; invalidations are left out");
    let least = curves.iter().map(|curve| curve.followed).fold(1.0, f64::min);
    if least < 1.0 {
        sheet.note(format!(
            "estimated from a sample of the pages, at the least {} %; - = fewer entries than one page of the sample stands for",
            percent(least)
        ));
    }
    sheet
}

pub(super) fn csv(curves: &[Curve]) -> Lines<'_> {
    let fields = columns![|(curve, point)| (&Curve, &CurvePoint);
        working_set_bytes => bytes(curve.working_set), entry_bytes => curve.entry.0, followed => curve.followed,
        entries => point.entries, miss_rate => point.miss_rate?,
    ];
    let all = curves.iter();
    lines(
        fields,
        all.flat_map(|curve| curve.points.iter().map(move |point| (curve, point))),
    )
}
