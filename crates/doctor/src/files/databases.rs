//! Databases' files against the pools.

use host::config::given::FileKind;
use model::Bytes;
use model::findings::Severity;

use super::demand::{Room, Shortage, shortages};
use super::{Check, Scope};
use crate::rule::{Answer, Case, Reason};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "F01",
        of: &[FileKind::Postgres],
        look: falls_back,
    },
    Check {
        id: "F02",
        of: &[FileKind::Postgres],
        look: does_not_start,
    },
    Check {
        id: "F05",
        of: &[FileKind::Mysql],
        look: mysql,
    },
];

/// Shortages of the servers that fail without their pages, or of those that fall back.
fn postgres(scope: &Scope<'_>, strict: bool) -> Result<Vec<Shortage>, Reason> {
    let short = shortages(scope, FileKind::Postgres)?;
    Ok(short
        .into_iter()
        .filter(|short| short.demand.strict == strict)
        .collect())
}

const MARGIN: &str = "postgres -C shared_memory_size_in_huge_pages (15 and later) prints the number of pages that it needs, with all else that it shares";

fn falls_back(scope: &Scope<'_>) -> Answer {
    let short = postgres(scope, false)?;
    if short.is_empty() {
        return Ok(Vec::new());
    }
    let set_up = Room::of(scope)?.filled().next().is_some();
    let explicit = scope
        .given
        .postgres
        .iter()
        .any(|server| server.settings.last("huge_pages").is_some());
    let case = |short: Shortage| {
        let large = short.demand.bytes.as_ref().is_ok_and(|bytes| *bytes >= Bytes::gib(1));
        let severity = if set_up || explicit || large {
            Severity::Warning
        } else {
            Severity::Info
        };
        let case = Case::likely(format!(
            "{} will fall back to base pages without a word: shared_buffers {}",
            short.demand.who,
            short.text()
        ));
        short.case(case.severity(severity)).fix(MARGIN)
    };
    Ok(short.into_iter().map(case).collect())
}

fn does_not_start(scope: &Scope<'_>) -> Answer {
    let case = |short: Shortage| {
        let case = Case::likely(format!(
            "{} will not start: huge_pages is on, and shared_buffers {}",
            short.demand.who,
            short.text()
        ));
        short.case(case).fix(MARGIN)
    };
    Ok(postgres(scope, true)?.into_iter().map(case).collect())
}

fn mysql(scope: &Scope<'_>) -> Answer {
    if !scope.given.mysql.iter().any(|server| server.mysql_is_on("large_pages")) {
        return Ok(Vec::new());
    }
    let case = |short: Shortage| {
        let case = Case::likely(format!(
            "{} will put its buffer pool on base pages, with a warning in its log: it {}",
            short.demand.who,
            short.text()
        ));
        short.case(case)
    };
    Ok(shortages(scope, FileKind::Mysql)?.into_iter().map(case).collect())
}
