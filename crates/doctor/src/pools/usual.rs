//! Counts that were meant for pages of 2M, the default size of x86, on machines whose default pages are larger.

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;

use super::asked::{Request, request};
use crate::facts::{bytes, default_size, pages_for, total};
use crate::remedy::fits_alone;

/// A count without a size that is more than the machine has, and was meant for pages of 2M: the count, and the pages of that much memory.
pub(super) struct MeantFor2m {
    asked: u64,
    pub(super) pages: u64,
}

impl MeantFor2m {
    pub(super) fn of(evidence: &Evidence, pool: &Pool) -> Option<Self> {
        let (usual, size) = (Bytes::mib(2), pool.size);
        let Request {
            pages: asked, place, ..
        } = request(evidence, pool).ok()??;
        let boot = evidence.config.boot.known()?;
        let is_named = place == "/proc/cmdline" && boot.pools.iter().any(|own| own.size == Some(size));
        let has_default = default_size(evidence).is_ok_and(|default| default == size);
        if is_named || !has_default || size <= usual || fits_alone(evidence, size, asked) {
            return None;
        }
        // Who made that size the default one counts its pages, up to what no machine of the kind has.
        let total = total(evidence).ok()?.0;
        let is_by_choice = boot.default_size.is_some() && bytes(pool, asked).0 / 4 < total;
        let meant = usual.0.saturating_mul(asked);
        let pages = pages_for(Bytes(meant), size);
        let is_so = !is_by_choice && meant >= size.0 && fits_alone(evidence, size, pages);
        is_so.then_some(Self { asked, pages })
    }

    /// Why that number.
    pub(super) fn why(&self, pool: &Pool) -> String {
        let (asked, size) = (self.asked, pool.size.exact());
        format!(": {asked} was meant for pages of 2M, and the default size here is {size}")
    }
}
