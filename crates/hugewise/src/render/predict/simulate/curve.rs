//! Misses by the number of TLB entries, one column for each page size.

use translation::study::{Curve, CurvePoint};

use super::{bytes, percent};
use draw::{Lines, Sheet, columns, lines, or, or_empty, pairs};

/// Of curves that have the same numbers of entries.
pub(super) fn sheet(curves: &[Curve]) -> Sheet {
    let entries = columns![|row| usize; "#entries" => curves[0].points[*row].entries];
    let rates = curves.iter().flat_map(|curve| {
        let memory = or_empty(curve.working_set.map(|size| format!("{size} ")));
        let rate = |row: usize| curve.points.get(row)?.miss_rate.map(percent);
        columns![|row| usize; (format!("#{memory}by {}, %", curve.entry)) => or(rate(*row), "-")]
    });
    let rows = curves.first().map_or(0, |curve| curve.points.len());
    let mut sheet = Sheet::of("Misses by TLB entries", entries.into_iter().chain(rates), 0..rows);
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
    lines(fields, pairs(curves, |curve| &curve.points))
}
