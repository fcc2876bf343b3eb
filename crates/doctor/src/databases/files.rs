//! Databases' files against the pools.

use model::Bytes;
use model::findings::Severity;
use programs::config::given::{FileKind, Server};
use programs::postgres::{HugePages, no_mmap};
use programs::{Evidence, Kind};

use crate::demand::{Demand, Other, Room, Shortage, demands, pages_asked, shortages};
use crate::rule::answers::parts;
use crate::rule::{Answer, Case};

/// Instances with automatic memory management beside a pool, or that are to start with huge pages alone.
pub(super) fn oracle_amm(evidence: &Evidence) -> Answer {
    let has_pool = Room::of(evidence).is_ok_and(|room| room.filled().next().is_some());
    let cases = evidence.files.oracle.iter().filter_map(|own| {
        let is_wanted = own.is_strict() || has_pool && own.allows_pages() && !own.is_asm();
        let target = own.memory_target().filter(|_| is_wanted)?;
        let outcome = match own.is_strict() {
            true => "does not start with use_large_pages=ONLY",
            false => "takes no page of the pool",
        };
        let case = Case::sure(format!(
            "the instance of {} {outcome}: with {} its SGA is in files of /dev/shm, on base pages",
            own.path, target.name
        ));
        Some(case.seen_line(target).fix(
            "without memory_target and memory_max_target, and with sga_target and pga_aggregate_target in their place",
        ))
    });
    Ok(cases.collect())
}

/// Servers whose shared memory is of a type that takes no huge pages, whatever the pool has (sysv_shmem.c).
fn of_other_type(evidence: &Evidence, huge_pages: HugePages) -> Vec<Case> {
    let servers = evidence.files.servers(Kind::Postgres);
    let cases = servers.iter().filter_map(|server| {
        let (set, kind) = server.settings.last("huge_pages").zip(no_mmap(&server.settings))?;
        let outcome = match huge_pages {
            HugePages::On => "will not start",
            _ => "will silently use base pages",
        };
        (HugePages::of(&set.value)? == huge_pages).then(|| {
            Case::sure(format!(
                "the server of {} {outcome}: PostgreSQL takes huge pages for shared memory of the type mmap only",
                server.path
            ))
            .seen(&set.place, "huge_pages", &set.value)
            .seen(&kind.place, "shared_memory_type", &kind.value)
            .fix(super::NO_MMAP)
        })
    });
    cases.collect()
}

const MARGIN: &str = "postgres -C shared_memory_size_in_huge_pages (15 and later) prints the number of pages that it needs, with all else that it shares";

pub(super) fn falls_back(evidence: &Evidence) -> Answer {
    let short = short_of_pages(evidence, HugePages::Try);
    parts([Ok(of_other_type(evidence, HugePages::Try)), short])
}

pub(super) fn does_not_start(evidence: &Evidence) -> Answer {
    let short = short_of_pages(evidence, HugePages::On);
    parts([
        Ok(of_other_type(evidence, HugePages::On)),
        short,
        Ok(beyond_all(evidence)),
    ])
}

/// A pool with much more than the servers of the files need, where files alone were given: a machine shows what else runs.
fn beyond_all(evidence: &Evidence) -> Vec<Case> {
    let Ok(room) = Room::of(evidence) else {
        return Vec::new();
    };
    let all = demands(evidence, &room);
    let is_counted = |demand: &Demand| demand.asker == FileKind::Postgres && demand.bytes.is_ok();
    if evidence.has_machine || all.is_empty() || !all.iter().all(is_counted) {
        return Vec::new();
    }
    let case = |(page, (pages, place)): (Bytes, &(u64, String))| {
        let asked = pages_asked(evidence, page);
        let spare = pages.saturating_sub(asked);
        let (memory, size) = (Bytes(page.0.saturating_mul(spare)), page.exact());
        (asked > 0 && memory > Bytes::gib(1) && spare > pages / 10).then(|| {
            Case::likely(format!(
                "no server of these files takes {memory} of the pool ({spare} of {pages} pages of {size}), and it cannot serve as other memory"
            ))
            .severity(Severity::Info)
            .seen(place, format!("pages of {size}"), pages)
            .seen_line(&all[0].seen)
            .fix(format!(
                "if nothing else takes pages: {asked} pages of {size} or more in {place} (the least, for version 15)"
            ))
            .fix(MARGIN)
        })
    };
    room.filled().filter_map(case).collect()
}

/// Servers that are set so, and whose shared memory the pool cannot hold. Those that fall back are expected to have pages where there is a
/// pool, where their file says it, or where they are large.
fn short_of_pages(evidence: &Evidence, huge_pages: HugePages) -> Answer {
    let is_strict = huge_pages == HugePages::On;
    let mut short = shortages(evidence, FileKind::Postgres)?;
    short.retain(|short| short.demand.strict == is_strict);
    let servers = evidence.files.servers(Kind::Postgres);
    let is_set = |server: &Server| server.settings.last("huge_pages").is_some();
    let is_set = servers.iter().any(is_set) || Room::of(evidence).is_ok_and(|room| room.filled().next().is_some());
    let outcome = match is_strict {
        true => "will not start: huge_pages is on, and",
        false => "will silently fall back to base pages:",
    };
    let case = |short: Shortage<'_>| {
        let is_large = short.demand.bytes.as_ref().is_ok_and(|bytes| *bytes >= Bytes::gib(1));
        let text = format!("{} {outcome} its shared memory {}", short.demand.who, short.text());
        let case = short.case(text).info_if(!is_strict && !is_set && !is_large);
        case.fix(MARGIN)
    };
    Ok(short.into_iter().map(case).collect())
}

pub(super) fn mysql(evidence: &Evidence) -> Answer {
    if !evidence.files.servers(Kind::Mysql).iter().any(Server::asks) {
        return Ok(Vec::new());
    }
    let case = |short: Shortage<'_>| {
        let what = without_pages(&short);
        short.case(format!(
            "{} will use base pages for {what}: it {}",
            short.demand.who,
            short.text()
        ))
    };
    Ok(shortages(evidence, FileKind::Mysql)?.into_iter().map(case).collect())
}

/// MySQL maps each chunk of its buffer pool alone, MariaDB the whole.
fn without_pages(short: &Shortage<'_>) -> String {
    const LOGGED: &str = "with a warning in its log";
    let Other::InParts { each, parts } = short.demand.other else {
        return "its buffer pool, and in newer releases for what it allocates later".to_owned();
    };
    match parts.saturating_sub(short.left / each.max(1)) {
        0 => format!("what it allocates after its buffer pool, {LOGGED}"),
        all if all == parts => format!("its buffer pool, {LOGGED}"),
        some => format!("{some} of the {parts} chunks of its buffer pool, {LOGGED}"),
    }
}
