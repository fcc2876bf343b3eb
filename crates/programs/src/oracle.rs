//! Oracle Database.

use model::Bytes;
use model::sizing::{SizeError, Sizing, pages_for};

use super::kind::Known;

/// Pages that each Oracle instance takes beyond its SGA (two were found too few).
const ORACLE_EXTRA: u64 = 4;

pub(crate) const KNOWN: Known = Known {
    has_signs: |name, arguments| name.starts_with("ora_") || is_server(arguments),
    ..Known::new("Oracle Database", &["oracle"], &[])
};

/// Is it the process that serves a connection: `oracleNAME (LOCAL=NO)`, or `(DESCRIPTION=(LOCAL=YES)...`?
fn is_server(arguments: &[String]) -> bool {
    let line = arguments.join(" ");
    line.split_once(" (").is_some_and(|(program, rest)| {
        let name = program.rsplit('/').next().unwrap_or_default();
        name.starts_with("oracle") && (rest.starts_with("LOCAL=") || rest.starts_with("DESCRIPTION="))
    })
}

/// The name of the instance that a process is of: `ora_pmon_NAME`, or `oracleNAME (LOCAL=NO)`.
pub(crate) fn sid(arguments: &[String]) -> Option<String> {
    let first = arguments.first()?.split_whitespace().next()?;
    let name = match first.strip_prefix("ora_") {
        Some(rest) => rest.split_once('_')?.1,
        None => first.strip_prefix("oracle")?,
    };
    (!name.is_empty()).then(|| name.to_ascii_uppercase())
}

/// Granules are of 4M up to an SGA of 1G, of 16M up to 8G, and double from there on (MOS 947152.1).
pub(crate) fn granule(sga: Bytes) -> Bytes {
    match sga.0 {
        size if size <= Bytes::gib(1).0 => Bytes::mib(4),
        size => Bytes(
            (size.checked_next_power_of_two().unwrap_or(u64::MAX) >> 9).clamp(Bytes::mib(16).0, Bytes::mib(512).0),
        ),
    }
}

/// `size oracle`.
///
/// # Errors
/// When the page is none.
pub fn oracle(asked: Bytes, instances: u64, page: Bytes) -> Result<Sizing, SizeError> {
    let granule = granule(asked);
    let sga = asked.round_up_to(granule);
    let each = pages_for(sga, page)?.saturating_add(ORACLE_EXTRA);
    let pages = each.saturating_mul(instances);
    let about = format!("pages of {} for Oracle with an SGA of {asked}", page.exact());
    let granules = format!("{} rounded up to granules of {}", asked.exact(), granule.exact());
    let source = "Oracle's hugepages_settings.sh (MOS 401749.1); oravirt/ansible-oracle#576";
    let how = format!("{} B / {} B, rounded up, + {ORACLE_EXTRA}", sga.0, page.0);
    Ok(Sizing::new(about, source)
        .step("sga", granules, sga, "B")
        .step("each", how, each, "pages")
        .step("pages", format!("{instances} x {each}"), pages, "pages")
        .trap("memory_target (AMM) puts the SGA on /dev/shm and leaves the pool idle: use sga_target (ASMM)")
        .trap("use_large_pages=ONLY refuses to start when the pool is short; TRUE mixes pages silently")
        .trap("the PGA is never on pool pages")
        .trap("memlock must cover the SGA, and transparent huge pages should be off or on madvise"))
}

#[cfg(test)]
mod tests {
    use super::{oracle, sid};
    use model::Bytes;

    #[test]
    fn processes_are_called_after_their_instance() {
        let of = |name: &str| sid(&[name.to_owned()]);
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(of("ora_pmon_orcl_1"), is("ORCL_1"));
        assert_eq!(of("oracleORCL2 (LOCAL=NO)"), is("ORCL2"));
        assert_eq!((of("oracle"), of("tnslsnr")), (None, None));
        let serves = |first: &str| super::is_server(&[first.to_owned()]);
        assert!(
            serves("oracleORCL2 (LOCAL=NO)") && serves("oracleX (DESCRIPTION=(LOCAL=YES)(ADDRESS=(PROTOCOL=beq)))")
        );
        assert!(!serves("oracle") && !serves("oracle_exporter (x)"));
    }

    #[test]
    fn oracle_takes_four_pages_more_per_instance() {
        let sizing = oracle(Bytes::gib(24), 2, Bytes::mib(2)).expect("a size");
        assert_eq!(sizing.whole("pages"), Some(2 * (12288 + 4)));
        let odd = |mib| {
            oracle(Bytes::mib(mib), 1, Bytes::mib(2))
                .expect("a size")
                .whole("pages")
        };
        assert_eq!(
            (odd(20_000), odd(10_241)),
            (Some(10_016 + 4), Some(5136 + 4)),
            "whole granules"
        );
    }
}
