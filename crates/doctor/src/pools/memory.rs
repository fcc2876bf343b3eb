//! How pools, or their absence, affect the rest of memory.

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;

use crate::facts::{available, bytes, known, percent, policy, pool_file, pools, total};
use crate::rule::{Answer, Case};

pub(super) fn pool_starves(evidence: &Evidence) -> Answer {
    let total = total(evidence)?;
    let left = evidence.snapshot.memory.get("MemAvailable").into_result()?;
    let mut worst: Option<(&Pool, Bytes)> = None;
    let mut unused = Bytes(0);
    for pool in pools(evidence)? {
        let idle = bytes(pool, available(pool)?);
        unused.0 = unused.0.saturating_add(idle.0);
        if worst.is_none_or(|(_, most)| idle > most) {
            worst = Some((pool, idle));
        }
    }
    let Some((pool, _)) = worst else { return Ok(Vec::new()) };
    if percent(left, total) >= 5.0 || unused.0 < left.0.max(total.0 / 50) {
        return Ok(Vec::new());
    }
    let case = Case::sure(format!(
        "{left} of {total} is left for programs while {unused} in hugetlb pools is unused: the machine swaps or kills \
         processes"
    ))
    .seen("/proc/meminfo", "MemAvailable", left)
    .seen("/proc/meminfo", "MemTotal", total)
    .seen(pool_file(pool, "free_hugepages"), "", pool.free.to_string())
    .seen(pool_file(pool, "resv_hugepages"), "", pool.reserved.to_string());
    let used = known(&pool.nr)?.saturating_sub(*known(&pool.free)?);
    let keep = used.saturating_add(*known(&pool.reserved)?);
    Ok(vec![
        case.fix(format!("echo {keep} > {}", pool_file(pool, "nr_hugepages")))
            .fix("and lower the request in /etc/sysctl.d or the boot command line"),
    ])
}

pub(super) fn page_tables(evidence: &Evidence) -> Answer {
    let total = total(evidence)?;
    let tables = evidence.snapshot.memory.get("PageTables").into_result()?;
    let share = percent(tables, total);
    if share < 2.0 || tables < Bytes::mib(256) {
        return Ok(Vec::new());
    }
    let mut case = Case::sure(format!("{tables} ({share:.1} % of memory) is spent on page tables")).seen(
        "/proc/meminfo",
        "PageTables",
        tables,
    );
    let mut largest: Vec<_> = evidence.programs.known().into_iter().flatten().collect();
    largest.sort_by_key(|program| std::cmp::Reverse(program.pages.page_tables.known().copied()));
    for program in largest.into_iter().take(3) {
        case = case.seen(
            program.file("status"),
            format!("{}: VmPTE", program.pages.name),
            &program.pages.page_tables,
        );
    }
    let has_pools = evidence.snapshot.pools.known().is_some_and(|pools| !pools.is_empty());
    let case = case.fix_if(
        has_pools,
        "put the large shared segment on hugetlb pages (PostgreSQL huge_pages=on, Oracle use_large_pages=ONLY)",
    );
    let case = match policy(evidence).as_deref() {
        Ok("never") => case.write_as("enabled", "madvise", |command| {
            format!("or allow THP for private memory that is advised: {command}")
        }),
        _ => case,
    };
    Ok(vec![case.otherwise(
        "find the processes with most of them, and lower their number or their memory",
    )])
}
