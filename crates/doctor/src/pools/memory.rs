//! How pools, or their absence, affect the rest of memory.

use host::Evidence;
use host::snapshot::Pool;
use model::Bytes;
use model::findings::Severity;

use super::HUGETLBPAGE;
use crate::facts::{available, bytes, known, percent, pool_file, pools, total};
use crate::rule::{Answer, Case, Checks, Rule};

pub(super) const A03: Rule = Rule {
    id: "A03",
    name: "pool-starves-host",
    severity: Severity::Error,
    holds: "every kernel with hugetlb",
    text: "The machine has hardly any memory left for programs while pages in pools are free. The kernel never takes pages back \
           from a pool, so it swaps or kills processes instead. Reported when MemAvailable is below 5 % of memory and the unused \
           pages of all pools are more than that. Shrink the pool to the pages in use.",
    link: HUGETLBPAGE,
    checks: Checks::of_machine(pool_starves),
};

pub(super) const A23: Rule = Rule {
    id: "A23",
    name: "page-table-overhead",
    severity: Severity::Warning,
    holds: "every kernel",
    text: "Page tables take more than 2 % of memory. Each process needs 2 MiB of page tables per GiB that it maps with base \
           pages. Every process that maps shared memory has page tables of its own for it. For example, 500 database sessions on 8 GiB of \
           shared buffers have up to 8 GiB of page tables. Huge pages need one entry per 2 MiB, and processes share the page \
           tables of hugetlb segments.",
    link: "https://docs.kernel.org/filesystems/proc.html",
    checks: Checks::of_machine(page_tables),
};

fn pool_starves(evidence: &Evidence) -> Answer {
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

fn page_tables(evidence: &Evidence) -> Answer {
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
    Ok(vec![
        case.fix(
            "put the large shared segment on hugetlb pages (PostgreSQL huge_pages=on, Oracle use_large_pages=ONLY)",
        )
        .fix("or allow THP for private memory: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
    ])
}
