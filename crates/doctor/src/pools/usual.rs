//! Counts that were meant for pages of 2M, the default size of x86, on machines whose default pages are larger.

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;

use super::asked::request;
use super::memory::is_starved;
use crate::facts::{bytes, default_size, pages_for, pool_file, total};
use crate::kept::boot_pages;
use crate::remedy::{Need, fits_alone};
use crate::rule::Case;

/// A count without a size that is more than the machine has, and was meant for pages of 2M.
pub(super) struct MeantFor2m {
    asked: u64,
    /// Pages of the default size in its place: those of the boot line, or as much memory.
    pub(super) pages: u64,
    /// The place to change, where the boot line has a count of its own for that size.
    alone: Option<String>,
}

/// The default size of x86.
const USUAL: Bytes = Bytes::mib(2);

impl MeantFor2m {
    pub(super) fn of(evidence: &Evidence, pool: &Pool) -> Option<Self> {
        let size = pool.size;
        let (asked, line) = request(evidence, pool).ok()??;
        let boot = evidence.config.boot.known()?;
        let by_boot = line.place == "/proc/cmdline";
        let is_named = by_boot && boot.pools.iter().any(|own| own.size == Some(size));
        let has_default = default_size(evidence).is_ok_and(|default| default == size);
        if is_named || !has_default || size <= USUAL || fits_alone(evidence, size, asked) {
            return None;
        }
        // Who made that size the default one counts its pages, up to what no machine of the kind has.
        let total = total(evidence).ok()?.0;
        let is_by_choice = boot.default_size.is_some() && bytes(pool, asked).0 / 4 < total;
        let meant = USUAL.0.saturating_mul(asked);
        let both = |own: u64| meant.saturating_add(bytes(pool, own).0);
        let own = boot.pages_of(size, Some(size)).filter(|_| !by_boot);
        let own = own.filter(|own| *own > 0 && both(*own) < total / 10 * 9);
        let pages = own.unwrap_or_else(|| pages_for(Bytes(meant), size));
        let is_worth = own.is_some() || meant >= size.0;
        let is_so = !is_by_choice && is_worth && fits_alone(evidence, size, pages);
        let alone = own.map(|_| line.place);
        is_so.then_some(Self { asked, pages, alone })
    }

    /// With that number in place of the request, and where the boot line counts pages of the default size, with a pool of 2M beside them.
    pub(super) fn lowered(&self, case: Case, evidence: &Evidence, pool: &Pool, request: (&str, &str, u64)) -> Case {
        let (lower, places, pages) = request;
        let (asked, size) = (self.asked, pool.size.exact());
        let place = self.alone.as_deref().unwrap_or(places);
        let case = case.fix(format!(
            "{lower} the request in {place} to {pages}: {asked} was meant for pages of 2M, and the default size here is {size}"
        ));
        let small = evidence.snapshot.pool(USUAL).filter(|_| self.alone.is_some());
        let Some(small) = small.filter(|_| fits_alone(evidence, USUAL, asked)) else {
            return case;
        };
        let both = [
            format!("then echo {asked} > {}", pool_file(small, "nr_hugepages")),
            format!("to have both pools at boot: {}", boot_pages(evidence, USUAL, asked)),
        ];
        // A starved machine has the room as soon as the other pool is smaller.
        let is_freed = is_starved(evidence);
        both.into_iter().fold(case, |case, text| match is_freed {
            true => case.fix(text),
            false => case.fix_with(Need::Pool(USUAL, asked), text),
        })
    }
}

/// Is it larger than the machine can have, by a count that was meant for pages of 2M?
pub(crate) fn is_miscounted(evidence: &Evidence, pool: &Pool) -> bool {
    MeantFor2m::of(evidence, pool).is_some()
}
