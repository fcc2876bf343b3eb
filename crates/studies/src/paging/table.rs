//! The table of the VCF study: what so many entries cover, as printed and as computed.

use model::Bytes;

use super::pages::{BASE, HUGE, LARGE};
use translation::machine::Machine;
use translation::reach;
use translation::study::Published;

/// Entries of the table, and the coverage that it prints in GB by page size.
const COVERAGE: [(Bytes, u64, f64); 9] = [
    (BASE, 64, 0.000_244),
    (BASE, 256, 0.000_977),
    (BASE, 2048, 0.007_812),
    (LARGE, 64, 0.125),
    (LARGE, 256, 0.5),
    (LARGE, 2048, 4.0),
    (HUGE, 64, 64.0),
    (HUGE, 256, 256.0),
    (HUGE, 2048, 2048.0),
];

pub(super) fn coverage(source: &str) -> Vec<Published> {
    let row = |(page, entries, printed): (Bytes, u64, f64)| {
        let reach = reach::table(&[page], &[entries], &[]);
        let covered = reach.first().map_or(0.0, |row| row.reach.0 as f64 / HUGE.0 as f64);
        let what = format!("{entries} entries x {}", page.exact());
        Published::exact(source, what, "GB", &[printed], covered)
    };
    COVERAGE.into_iter().map(row).collect()
}

/// What the CPU's own entries for loads cover, which the table's arithmetic does not ask.
pub(super) fn true_reach(machine: &Machine, page: Bytes) -> Published {
    let covered = machine.reach(page).0 as f64 / HUGE.0 as f64;
    let source = machine.source.first().map_or("", String::as_str);
    let what = format!("reach of the CPU's own entries, {}", page.exact());
    Published::exact(source, what, "GB", &[], covered)
}
