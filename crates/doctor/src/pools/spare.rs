//! Pools that programs hold a part of, and whose rest no program takes.

use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;
use programs::{Evidence, Kind, Program};

use super::asked::places;
use crate::explain::heap::growing;
use crate::facts::{available, bytes, known, percent, persistent, pool_file, programs, total};
use crate::remedy::Need;
use crate::rule::{Case, Reason};

/// From here on programs that start with the machine have what they take.
const LONG: f64 = 86_400.0;

/// Servers and JVMs take their pages when they start; guests, pods and others come and go.
fn is_of_steady(evidence: &Evidence) -> Result<bool, Reason> {
    let mut has_one = false;
    for program in programs(evidence)? {
        if program.is(Kind::Kubelet)? {
            return Ok(false);
        }
        if program.hugetlb()?.0 == 0 {
            continue;
        }
        has_one = true;
        if program.cgroup()?.is_some_and(|groups| groups.path.contains("kubepods")) {
            return Ok(false);
        }
        let Some(kind) = *known(&program.kind)? else {
            // Its mappings could show what it is.
            program.areas()?;
            return Ok(false);
        };
        if kind != Kind::Jvm && kind != Kind::Oracle && kind.server().is_none() {
            return Ok(false);
        }
    }
    Ok(has_one)
}

/// Pages that heaps take which grow, as ZGC's does.
fn to_grow(evidence: &Evidence, page: Bytes) -> Result<u64, Reason> {
    let grow = |program: &Program| Ok(growing(program, page)?.map_or(0, |(most, own)| most.saturating_sub(own)));
    let all: Result<Vec<u64>, Reason> = programs(evidence)?.iter().map(grow).collect();
    Ok(all?.into_iter().fold(0, u64::saturating_add))
}

/// A quarter of the pool or more, and a twentieth of the memory, which nothing has taken since the machine started long ago.
pub(super) fn mostly_idle(evidence: &Evidence, pool: &Pool) -> Result<Option<Case>, Reason> {
    let (free, all) = (available(pool)?, persistent(pool)?);
    let grow = to_grow(evidence, pool.size)?;
    let spare = free.saturating_sub(grow);
    let (memory, whole) = (bytes(pool, spare), total(evidence)?);
    if spare < all.div_ceil(4) || percent(memory, whole) < 5.0 {
        return Ok(None);
    }
    if *known(&evidence.uptime)? < LONG || !is_of_steady(evidence)? {
        return Ok(None);
    }
    let (keep, size) = (all.saturating_sub(spare), pool.size.exact());
    let (beside, kept) = match grow {
        0 => (String::new(), ""),
        grow => (
            format!("; Java heaps may grow by {grow} more"),
            ", and those that Java heaps grow into",
        ),
    };
    let case = Case::likely(format!(
        "{memory} in the pool of {size} pages is idle ({spare} of {all} pages, neither used nor reserved{beside}), and cannot serve as other memory"
    ))
    .severity(match percent(memory, whole) < 10.0 {
        true => Severity::Info,
        false => Severity::Warning,
    })
    .seen(pool_file(pool, "nr_hugepages"), "", &pool.nr)
    .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    .seen(pool_file(pool, "resv_hugepages"), "", &pool.reserved)
    .fix_with(
        Need::Unwanted(pool.size),
        format!(
            "if no other program is to start: echo {keep} > {}, which are those in use and reserved{kept}",
            pool_file(pool, "nr_hugepages")
        ),
    )
    .otherwise("another finding wants these pages: see there");
    Ok(Some(case.with(places(evidence, pool), |case, places| {
        case.fix_with(
            Need::Unwanted(pool.size),
            format!("and lower the request in {places} to {keep}"),
        )
    })))
}
