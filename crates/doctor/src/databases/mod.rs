//! Databases.

use host::Evidence;
use host::config::given::FileKind;
use host::programs::{Area, Kind, Program, Setting};
use model::Bytes;
use model::findings::Severity;

use super::facts::{each, known, persistent, pool_file, pools, programs};
use super::rule::{Answer, Case, Checks, Reason, Rule};

mod files;

#[cfg(test)]
mod tests;

pub(super) const RULES: &[Rule] = &[F01, F02, F03, F05];

const F01: Rule = Rule {
    id: "F01",
    name: "pg-try-fell-back",
    severity: Severity::Warning,
    holds: "PostgreSQL 9.4 and later",
    text: "PostgreSQL's shared buffers are backed by base pages although huge_pages is `try` (its default) or `on`: the pool \
           could not hold the segment, and `try` does not report that. Detected from the postmaster's mappings; PostgreSQL 17 \
           shows it as huge_pages_status. `postgres -D DATA -C shared_memory_size_in_huge_pages` (15 and later) prints the number \
           of pages that it needs; with huge_pages=on the server does not start without them. Where neither a pool nor huge_pages \
           is set and the buffers are small, it is info only.",
    link: "https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-HUGE-PAGES",
    checks: Checks::of_both(fell_back, &[FileKind::Postgres], files::falls_back),
};

const F02: Rule = Rule {
    id: "F02",
    name: "pg-pool-missized",
    severity: Severity::Error,
    holds: "PostgreSQL 9.4 and later; huge_page_size since 14",
    text: "postgresql.conf sets huge_pages = on, and the pool has fewer pages than shared_buffers alone needs: the server does \
           not start. Its other shared memory needs some more pages; `postgres -D DATA -C shared_memory_size_in_huge_pages` (15 \
           and later, server stopped) prints the whole number. Detected from the file together with a sysctl file, a kernel \
           command line, or a machine (--root).",
    link: "https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-HUGE-PAGES",
    checks: Checks::of_files(&[FileKind::Postgres], files::does_not_start),
};

const F03: Rule = Rule {
    id: "F03",
    name: "oracle-amm",
    severity: Severity::Error,
    holds: "Oracle Database 11g and later",
    text: "Oracle runs with automatic memory management (memory_target). Its SGA is in files in /dev/shm, which hugetlb pages \
           cannot back, and the pool that was set up for it is idle. Unset memory_target and memory_max_target, and set \
           sga_target and pga_aggregate_target instead.",
    link: "https://docs.oracle.com/en/database/oracle/oracle-database/19/unxar/administering-oracle-database-on-linux.html",
    checks: Checks::of_machine(oracle_amm),
};

const F05: Rule = Rule {
    id: "F05",
    name: "mysql-fallback",
    severity: Severity::Warning,
    holds: "MySQL and MariaDB of every version",
    text: "MySQL or MariaDB is started with large-pages and has no huge pages: its buffer pool is backed by base pages, and only \
           its log reports it (`InnoDB: HugeTLB: Warning: Failed to allocate ... Using conventional memory pool`). The pool must \
           hold the buffer pool; MySQL takes it as a System V segment, which needs a group or a capability too (B01), MariaDB \
           with mmap.",
    link: "https://dev.mysql.com/doc/refman/8.4/en/large-page-support.html",
    checks: Checks::of_both(mysql, &[FileKind::Mysql], files::mysql),
};

/// The postmaster alone stands for its server: it has no parent of its own kind.
fn postmaster(program: &Program) -> Result<bool, Reason> {
    Ok(program.is(Kind::Postgres)? && program.details.is_some())
}

fn fell_back(evidence: &Evidence) -> Answer {
    each(programs(evidence)?, |program| {
        if !postmaster(program)? {
            return Ok(None);
        }
        let shared = program
            .areas()?
            .iter()
            .filter(|area| area.is_shared_data() && area.size() >= Bytes::mib(8));
        let Some(segment) = shared.max_by_key(|area| area.size()).filter(|area| !area.is_hugetlb()) else {
            return Ok(None);
        };
        let Some(details) = &program.details else {
            return Ok(None);
        };
        let setting = known(&details.setting)?.as_ref();
        if details.is_off() {
            return Ok(None);
        }
        let mut pages = 0_u64;
        for pool in pools(evidence)? {
            pages = persistent(pool)?.saturating_add(pages);
        }
        Ok(Some(fell_back_case(evidence, program, segment, setting, pages > 0)))
    })
}

fn fell_back_case(
    evidence: &Evidence,
    program: &Program,
    segment: &Area,
    setting: Option<&Setting>,
    has_pool: bool,
) -> Case {
    let size = segment.size();
    let expected = has_pool || setting.is_some() || size >= Bytes::gib(1);
    let page = evidence
        .snapshot
        .memory
        .get("Hugepagesize")
        .known()
        .copied()
        .unwrap_or(Bytes::mib(2));
    let case = Case::sure(format!(
        "{size} of shared memory of {} is backed by base pages, which every session maps with page tables of its own",
        program.title()
    ))
    .severity(if expected { Severity::Warning } else { Severity::Info })
    .seen(
        program.file("maps"),
        format!("{:x}-{:x} {}", segment.range.start, segment.range.end, segment.name),
        size,
    )
    .seen(
        setting.map_or("postgresql.conf", |setting| &setting.place),
        "huge_pages",
        setting.map_or("try (default)", |setting| &setting.value),
    );
    let pools = evidence.snapshot.pools.known().into_iter().flatten();
    let case = pools.fold(case, |case, pool| {
        case.seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    });
    case.plan(format!("postgres:pid={}", program.pid()))
        .fix(format!(
            "sysctl -w vm.nr_hugepages={} or more, and the same in /etc/sysctl.d",
            size.0.div_ceil(page.0.max(1))
        ))
        .fix("huge_pages = on in postgresql.conf, so that it fails instead of falling back; then restart it")
}

fn oracle_amm(evidence: &Evidence) -> Answer {
    let mut idle = Bytes(0);
    for pool in pools(evidence)? {
        idle.0 = known(&pool.free)?.saturating_mul(pool.size.0).saturating_add(idle.0);
    }
    each(programs(evidence)?, |program| {
        if !program.is(Kind::Oracle)? || program.details.is_none() || idle.0 == 0 {
            return Ok(None);
        }
        let in_files = program
            .areas()?
            .iter()
            .filter(|area| area.name.starts_with("/dev/shm/ora_"));
        let size = Bytes(in_files.map(|area| area.size().0).fold(0, u64::saturating_add));
        if size.0 == 0 {
            return Ok(None);
        }
        let case = Case::sure(format!("the SGA of {} ({size}) is in /dev/shm on base pages, while {idle} in hugetlb pools is idle", program.title()))
            .seen(program.file("maps"), "/dev/shm/ora_*", size)
            .seen("/sys/kernel/mm/hugepages", "free", idle)
            .fix("ALTER SYSTEM RESET memory_target SCOPE=SPFILE; ALTER SYSTEM RESET memory_max_target SCOPE=SPFILE;")
            .fix("ALTER SYSTEM SET sga_target=... SCOPE=SPFILE; ALTER SYSTEM SET use_large_pages='ONLY' SCOPE=SPFILE; and restart");
        Ok(Some(case))
    })
}

fn mysql(evidence: &Evidence) -> Answer {
    each(programs(evidence)?, |program| {
        let asked = || program.argument("--large-pages").or(program.argument("--large_pages"));
        let off = |value: &str| matches!(value.trim_start_matches('='), "0" | "OFF" | "off");
        if !program.is(Kind::Mysql)? || asked().is_none_or(off) || program.hugetlb()?.0 > 0 {
            return Ok(None);
        }
        let rss = known(&program.pages.rss)?;
        let case = Case::sure(format!(
            "{} is configured to use huge pages, and all of its {rss} is backed by base pages",
            program.title()
        ))
        .seen(program.file("cmdline"), "--large-pages", "set")
        .seen(program.file("status"), "HugetlbPages", "0B")
        .plan("mysql")
        .fix("set vm.nr_hugepages for innodb_buffer_pool_size and a tenth more, then restart it")
        .fix("MySQL also needs vm.hugetlb_shm_group or CAP_IPC_LOCK: hugewise doctor --explain B01");
        Ok(Some(case))
    })
}
