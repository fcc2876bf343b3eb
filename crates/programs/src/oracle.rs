//! Oracle Database.

use model::Bytes;
use model::sizing::{SizeError, Sizing, pages_for};

use super::kind::Known;

/// Pages that each Oracle instance takes beyond its SGA (two were found too few).
const ORACLE_EXTRA: u64 = 4;

pub(crate) const KNOWN: Known = Known {
    has_signs: |name, _| name.starts_with("ora_"),
    ..Known::new("Oracle Database", &["oracle"], &[])
};

/// `size oracle`.
///
/// # Errors
/// When the page is none.
pub fn oracle(sga: Bytes, instances: u64, page: Bytes) -> Result<Sizing, SizeError> {
    let each = pages_for(sga, page)?.saturating_add(ORACLE_EXTRA);
    let pages = each.saturating_mul(instances);
    let about = format!("pages of {} for Oracle with an SGA of {sga}", page.exact());
    let source = "Oracle's hugepages_settings.sh (MOS 401749.1); oravirt/ansible-oracle#576";
    let how = format!("{} B / {} B, rounded up, + {ORACLE_EXTRA}", sga.0, page.0);
    Ok(Sizing::new(about, source)
        .step("each", how, each, "pages")
        .step("pages", format!("{instances} x {each}"), pages, "pages")
        .trap("memory_target (AMM) puts the SGA on /dev/shm and leaves the pool idle: use sga_target (ASMM)")
        .trap("use_large_pages=ONLY refuses to start when the pool is short; TRUE mixes pages silently")
        .trap("the PGA is never on pool pages")
        .trap("memlock must cover the SGA, and transparent huge pages should be off or on madvise"))
}

#[cfg(test)]
mod tests {
    use super::oracle;
    use model::Bytes;

    #[test]
    fn oracle_takes_four_pages_more_per_instance() {
        let sizing = oracle(Bytes::gib(24), 2, Bytes::mib(2)).expect("a size");
        assert_eq!(sizing.whole("pages"), Some(2 * (12288 + 4)));
    }
}
