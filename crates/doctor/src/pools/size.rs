//! The default size, and what free, reserved and surplus pages mean.

use std::collections::{BTreeMap, BTreeSet};

use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;
use programs::config::{Boot, PoolWrite, requested};
use programs::{Area, Evidence, Program};

use super::asked::request;
use super::path::is_mounted;
use crate::demand::{is_asked_for, pages_asked};
use crate::facts::{available, bytes, default_page, default_size, in_postgres, known, oldest_of, pool_file, pools};
use crate::kept::boot_fix;
use crate::remedy::Need;
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

pub(super) fn wrong_default(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    let default = default_size(evidence)?;
    let Some(own) = pools.iter().find(|pool| pool.size == default) else {
        return Ok(Vec::new());
    };
    if *known(&own.nr)? > 0 || *known(&own.overcommit)? > 0 {
        return Ok(Vec::new());
    }
    each(pools.iter().filter(|pool| pool.size != default), |other| {
        let free = available(other)?;
        // A program of a file that was given names that size, and those that reach pages by a mount do.
        let mounts = evidence.snapshot.mounts.known().map_or(&[][..], Vec::as_slice);
        if is_asked_for(evidence, other.size).unwrap_or(false) || is_mounted(mounts, default, other.size) {
            return Ok(None);
        }
        if free == 0 || free < *known(&other.nr)? {
            return Ok(None);
        }
        let size = other.size.exact();
        let case = unnamed(default, bytes(other, free), &format!("pages of {size}"))
            .seen("/proc/meminfo", "Hugepagesize", default)
            .seen(pool_file(own, "nr_hugepages"), "", 0)
            .seen(pool_file(other, "free_hugepages"), "", &other.free)
            .fix(named(other.size))
            .fix(boot_fix(evidence, &format!("default_hugepagesz={size}")));
        Ok(Some(case))
    })
}

/// A pool of another size than the default one has so much.
pub(super) fn unnamed(default: Bytes, memory: Bytes, other: &str) -> Case {
    Case::likely(format!(
        "programs that name no size request pages of {} and get none, while {memory} is in a pool of {other}",
        default.exact()
    ))
}

/// How programs ask for pages of another size than the default one.
pub(super) fn named(page: Bytes) -> String {
    format!(
        "name the size in the program: huge_page_size={} (PostgreSQL), -XX:LargePageSizeInBytes={} (Java)",
        in_postgres(page),
        page.exact()
    )
}

/// Does one program alone map pages of this pool, and no file asks for more? Then no program looks for a free one.
fn is_of_one(evidence: &Evidence, pool: &Pool) -> bool {
    holders(evidence, pool) == Some(1) && !is_asked_for(evidence, pool.size).unwrap_or(false)
}

/// Programs that map pages of a pool: processes that share a segment are one, and so are parents and children. `None` where one cannot be read.
fn holders(evidence: &Evidence, pool: &Pool) -> Option<usize> {
    let all = evidence.programs.known()?.iter();
    let users: BTreeMap<u32, &Program> = all
        .filter(|program| mapped(program).next().is_some() || program.hugetlb().is_ok_and(|own| own.0 > 0))
        .map(|program| (program.pid(), program))
        .collect();
    let mut families: BTreeMap<u32, Vec<&Program>> = BTreeMap::new();
    for program in users.values() {
        program.parent.known()?;
        families
            .entry(oldest_of(program, &users).pid())
            .or_default()
            .push(program);
    }
    let mut segments = BTreeSet::new();
    for (first, family) in &families {
        let mut areas = family.iter().flat_map(|program| mapped(program)).peekable();
        areas.peek()?;
        if let Some(area) = areas.find(|area| area.hugetlb_page() == Some(pool.size)) {
            segments.insert(match area.is_shared() {
                true => (area.device.to_string(), area.inode),
                false => (String::new(), u64::from(*first)),
            });
        }
    }
    Some(segments.len())
}

fn mapped(program: &Program) -> impl Iterator<Item = &Area> {
    let areas = program.areas().unwrap_or_default().iter();
    areas.filter(|area| area.is_hugetlb())
}

pub(super) fn all_reserved(evidence: &Evidence) -> Answer {
    each(pools(evidence)?, |pool| {
        let (free, reserved) = (*known(&pool.free)?, *known(&pool.reserved)?);
        if free == 0 || reserved < free || is_of_one(evidence, pool) {
            return Ok(None);
        }
        let case = Case::sure(format!(
            "all {free} free pages of {} are reserved: a new mapping gets none, although HugePages_Free shows them",
            pool.size.exact()
        ))
        .seen(pool_file(pool, "free_hugepages"), "", free)
        .seen(pool_file(pool, "resv_hugepages"), "", reserved)
        .fix_with(
            Need::More(pool.size, 1),
            format!(
                "add the pages that another program needs: {}",
                pool_file(pool, "nr_hugepages")
            ),
        )
        .otherwise("lower what programs reserve: memory has no room for a larger pool");
        Ok(Some(case))
    })
}

/// The most pages that files of the machine, or files that were given, ask for: with fewer their programs are short.
fn asked(evidence: &Evidence, pool: &Pool) -> Result<u64, Reason> {
    let own = request(evidence, pool)?.map_or(0, |(pages, _)| pages);
    let default = default_page(evidence);
    let given = PoolWrite::left(&evidence.files.pool_writes, default);
    let given = requested(&given, pool.size, Some(default)).map_or(0, |line| line.pages);
    Ok(own.max(given).max(pages_asked(evidence, pool.size)))
}

pub(super) fn surplus(evidence: &Evidence) -> Answer {
    each(pools(evidence)?, |pool| {
        let (surplus, allowed) = (*known(&pool.surplus)?, *known(&pool.overcommit)?);
        if surplus == 0 || surplus <= allowed {
            return Ok(None);
        }
        let asked = asked(evidence, pool)?;
        let case = Case::sure(format!(
            "{} in pages of {} is lost when the program that uses it restarts: these are surplus pages, and only {allowed} are allowed now",
            bytes(pool, surplus - allowed),
            pool.size.exact()
        ))
        .seen(pool_file(pool, "surplus_hugepages"), "", surplus)
        .seen(pool_file(pool, "nr_overcommit_hugepages"), "", allowed)
        .fill(pool, asked.max(*known(&pool.nr)?))
        .otherwise("free memory first: it has no room for a pool of all these pages, and the surplus goes when it is unmapped");
        Ok(Some(case))
    })
}

pub(super) fn overcommit_only(evidence: &Evidence) -> Answer {
    let failed = evidence
        .snapshot
        .memory
        .count("htlb_buddy_alloc_fail")
        .or_if_absent(0)?;
    each(pools(evidence)?, |pool| {
        let allowed = *known(&pool.overcommit)?;
        // Surplus pages show that requests succeed.
        if *known(&pool.nr)? > 0 || allowed == 0 || is_from_cma(evidence, pool, allowed) {
            return Ok(None);
        }
        let (file, size) = (pool_file(pool, "nr_hugepages"), pool.size.exact());
        let case = on_demand(&format!("{allowed} pages of {size}"), &file)
            .seen(file, "", &pool.nr)
            .seen(pool_file(pool, "nr_overcommit_hugepages"), "", allowed);
        Ok(Some(case.when(failed > 0, |case| {
            case.severity(Severity::Warning)
                .seen("/proc/vmstat", "htlb_buddy_alloc_fail", failed)
        })))
    })
}

/// Is so much set aside for pages of 1 GiB (alloc_gigantic_folio())?
fn is_from_cma(evidence: &Evidence, pool: &Pool, pages: u64) -> bool {
    let cma = evidence.config.boot.known().map(Boot::cma_bytes).unwrap_or_default();
    pool.size >= Bytes::gib(1) && cma >= bytes(pool, pages)
}

/// A pool that has pages on demand alone: by its owner's choice, since no kernel allows them by itself.
pub(super) fn on_demand(pages: &str, to_have: &str) -> Case {
    Case::likely(format!(
        "the pool has no persistent pages: up to {pages} depend on contiguous memory at the time of the request"
    ))
    .severity(Severity::Info)
    .fix(format!(
        "if a program must have its pages at start, make them persistent: {to_have}"
    ))
}
