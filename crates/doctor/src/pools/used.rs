//! Idle pools, and programs that could use them.

use host::snapshot::Pool;
use model::findings::Confidence;
use model::{Bytes, PageKind};
use programs::Evidence;
use programs::{Area, Details, Kind, Program};

use super::asked::request;
use crate::demand::is_asked_for;
use crate::facts::{available, bytes, each, is_own, known, persistent, policy, pool_file, pools, programs};
use crate::remedy::Need;
use crate::rule::{Answer, Case, Reason};

/// A smaller pool is most likely a test.
const WORTH: Bytes = Bytes::mib(64);

fn is_idle(pool: &Pool) -> Result<bool, Reason> {
    let (nr, free, reserved) = (*known(&pool.nr)?, *known(&pool.free)?, *known(&pool.reserved)?);
    Ok(persistent(pool)? > 0 && free == nr && reserved == 0)
}

pub(super) fn pool_idle(evidence: &Evidence) -> Answer {
    let just_booted = evidence.uptime.known().is_some_and(|&seconds| seconds < 600.0);
    each(pools(evidence)?, |pool| {
        // A program of a file that was given is not running yet.
        if !is_idle(pool)? || is_asked_for(evidence, pool.size).unwrap_or(false) {
            return Ok(None);
        }
        let (nr, memory) = (*known(&pool.nr)?, bytes(pool, persistent(pool)?));
        let confidence = if just_booted { Confidence::Low } else { Confidence::High };
        let small = just_booted || memory < WORTH;
        let case = Case::new(
            confidence,
            format!("{memory} in a hugetlb pool is idle: no program uses it, and it cannot serve as other memory"),
        )
        .info_if(small)
        .seen(pool_file(pool, "nr_hugepages"), "", nr)
        .seen(pool_file(pool, "free_hugepages"), "", nr)
        .seen(pool_file(pool, "resv_hugepages"), "", 0)
        .fix("start the program that the pool is meant for; if it falls back, see its own finding");
        // A pool that is short as well is not to be freed and to be filled in one report.
        let asked = request(evidence, pool).ok().flatten();
        let is_short = asked.is_some_and(|request| request.pages > nr);
        let case = case
            .fix_if(
                !is_short,
                format!("or free it: echo 0 > {}", pool_file(pool, "nr_hugepages")),
            )
            .fix_if(!is_short, "and remove it from /etc/sysctl.d and the boot command line");
        Ok(Some(case))
    })
}

pub(super) fn consumer_bigger(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    let mut free = Vec::new();
    for pool in pools {
        let pages = available(pool)?;
        if pages > 0 {
            free.push((pool, bytes(pool, pages)));
        }
    }
    if free.is_empty() {
        return Ok(Vec::new());
    }
    each(programs(evidence)?, |program| {
        let Some(segment) = largest_segment(program)? else {
            return Ok(None);
        };
        let too_small = free.iter().find(|(_, room)| *room < segment.size());
        let fits = free.iter().any(|(_, room)| *room >= segment.size());
        too_small
            .filter(|_| !fits)
            .map(|(pool, room)| Ok(bigger(program, segment, pool, *room, *known(&pool.nr)?)))
            .transpose()
    })
}

/// The largest shared segment on base pages, of those sorts that databases make.
fn largest_segment(program: &Program) -> Result<Option<&Area>, Reason> {
    // Of PostgreSQL F01 says it, with the server's own number.
    if program.is(Kind::Postgres)? || program.details.as_ref().is_some_and(Details::is_off) {
        return Ok(None);
    }
    let is_segment = |area: &&Area| {
        area.is_shared_data()
            && !area.is_hugetlb()
            && area.size() >= WORTH
            && (area.name.starts_with("/SYSV") || area.name.starts_with("/dev/zero"))
    };
    Ok(program
        .areas()?
        .iter()
        .filter(is_segment)
        .max_by_key(|area| area.size()))
}

/// `has` is the pool as a whole, in pages.
fn bigger(program: &Program, segment: &Area, pool: &Pool, room: Bytes, has: u64) -> Case {
    let pages = segment.size().0.div_ceil(pool.size.0) + 1;
    let more = pages.saturating_sub(room.0 / pool.size.0);
    let need = || Need::Pool {
        page: pool.size,
        pages: has.saturating_add(more),
    };
    Case::likely(format!(
        "{} has {} of shared memory backed by base pages; the pool has {room} free, which is too small for it",
        program.title(),
        segment.size()
    ))
    .seen(
        program.file("maps"),
        format!("{:x}-{:x} {}", segment.range.start, segment.range.end, segment.name),
        segment.size(),
    )
    .seen(pool_file(pool, "free_hugepages"), "", pool.free.to_string())
    .fix_with(
        need(),
        format!(
            "raise the pool by {more} pages of {}: echo {} > {}",
            pool.size.exact(),
            has.saturating_add(more),
            pool_file(pool, "nr_hugepages")
        ),
    )
    .fix_with(need(), format!("and restart {}", program.pages.name))
    .otherwise("give the program less memory: the machine has no room for it in the pool")
}

pub(super) fn program_beside(evidence: &Evidence) -> Answer {
    let mut idle = None;
    for pool in pools(evidence)? {
        if is_idle(pool)? && bytes(pool, persistent(pool)?) >= WORTH {
            idle = Some(pool);
        }
    }
    let Some(pool) = idle else { return Ok(Vec::new()) };
    let memory = bytes(pool, persistent(pool)?);
    let mut largest: Option<(&Program, Bytes)> = None;
    let mut unknown = None;
    for program in programs(evidence)? {
        match beside(program, memory) {
            Ok(base) => {
                let base = base.filter(|base| largest.is_none_or(|(_, most)| *base > most));
                largest = base.map(|base| (program, base)).or(largest);
            }
            Err(reason) => unknown = unknown.or(Some(reason)),
        }
    }
    match (largest, unknown) {
        (Some((program, base)), _) => Ok(vec![beside_case(evidence, program, pool, memory, base)]),
        (None, Some(reason)) => Err(reason),
        (None, None) => Ok(Vec::new()),
    }
}

/// What it has on base pages, if that is worth a pool of so much and nothing else is said about such programs: databases, JVMs
/// and hypervisors have rules of their own, which know how they are made to ask.
fn beside(program: &Program, memory: Bytes) -> Result<Option<Bytes>, Reason> {
    if !matches!(program.kind.known(), Some(None)) || is_own(program) {
        return Ok(None);
    }
    let base = match program.pages.backing.known() {
        Some(backing) => backing.of(PageKind::Base),
        None => *known(&program.pages.rss)?,
    };
    let worth = base.0 >= memory.0 / 2 && base >= WORTH;
    Ok(Some(base).filter(|_| worth && program.hugetlb().is_ok_and(|has| has.0 == 0)))
}

fn beside_case(evidence: &Evidence, program: &Program, pool: &Pool, memory: Bytes, base: Bytes) -> Case {
    let madvise = policy(evidence).is_ok_and(|policy| policy != "never");
    let case = Case::likely(format!(
        "{} has {base} backed by base pages while a pool of {memory} (pages of {}) is idle: the program does not use it",
        program.title(),
        pool.size.exact()
    ))
    .seen(program.file("status"), "HugetlbPages", "0B")
    .seen(program.file("smaps_rollup"), "backed by base pages", base)
    .seen(pool_file(pool, "free_hugepages"), "", pool.free.to_string())
    .fix("enable the program's own option for huge pages, if it has one")
    .fix("or start it with GLIBC_TUNABLES=glibc.malloc.hugetlb=2 (glibc 2.35 and later), and check its page kinds again: hugewise ps PID");
    if madvise {
        case.fix("or use THP: GLIBC_TUNABLES=glibc.malloc.hugetlb=1, and free the pool")
    } else {
        case
    }
}
