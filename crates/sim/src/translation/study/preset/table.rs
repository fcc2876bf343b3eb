//! The table of the VCF study: what so many entries cover, as printed and as computed.

use model::Bytes;

use super::{BASE, HUGE, LARGE};
use crate::reach;
use crate::translation::machine::Machine;
use crate::translation::study::{Published, Range};

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
        Published {
            what: format!("{entries} entries x {}", page.exact()),
            source: source.to_owned(),
            unit: "GB".to_owned(),
            published: vec![printed],
            simulated: Range::of(covered, std::iter::empty()),
            is_fitted: false,
        }
    };
    COVERAGE.into_iter().map(row).collect()
}

/// What the CPU's own entries for loads cover, which the table's arithmetic does not ask.
pub(super) fn true_reach(machine: &Machine, page: Bytes) -> Published {
    let covered = machine.reach(page).0 as f64 / HUGE.0 as f64;
    Published {
        what: format!("reach of the CPU's own entries, {}", page.exact()),
        source: machine.source.first().cloned().unwrap_or_default(),
        unit: "GB".to_owned(),
        published: Vec::new(),
        simulated: Range::of(covered, std::iter::empty()),
        is_fitted: false,
    }
}
