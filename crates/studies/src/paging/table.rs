//! The table of the VCF study: what so many entries cover, as printed and as computed.

use model::Bytes;

use super::HUGE;
use crate::claims::{self, Claim};
use translation::machine::Machine;
use translation::reach;
use translation::study::Published;

/// The rows of the table, each a claim whose words are entries and page size.
pub(super) fn coverage() -> Vec<Published> {
    let row = |claim: &Claim| {
        let (entries, page) = claim.what.split_once(" entries x ")?;
        let reach = reach::table(&[page.parse().ok()?], &[entries.parse().ok()?], &[]);
        let covered = reach.first()?.reach.0 as f64 / HUGE.0 as f64;
        let (source, unit) = (&claim.source, &claim.measure.unit);
        Some(Published::exact(source, &claim.what, unit, &claim.numbers(), covered))
    };
    let is_row = |claim: &&Claim| claim.id.starts_with("vcf-cover-");
    claims::ALL.claims.iter().filter(is_row).filter_map(row).collect()
}

/// What the CPU's own entries for loads cover, which the table's arithmetic does not ask.
pub(super) fn true_reach(machine: &Machine, page: Bytes) -> Published {
    let covered = machine.reach(page).0 as f64 / HUGE.0 as f64;
    let source = machine.source.first().map_or("", String::as_str);
    let what = format!("reach of the CPU's own entries, {}", page.exact());
    Published::exact(source, what, "GB", &[], covered)
}
