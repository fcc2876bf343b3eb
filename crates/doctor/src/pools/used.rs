//! Idle pools, and programs that could use them.

use std::collections::BTreeMap;

use host::snapshot::Pool;
use model::findings::Confidence;
use model::{Bytes, PageKind};
use programs::{Area, Details, Evidence, Kind, Program};

use super::asked::{is_part, places, request};
use super::cached::beside_files;
use super::malloc::{by_malloc, takes_none};
use super::meant::{meant_for, start};
use super::memory::starves;
use super::scripts::is_written;
use super::spare::mostly_idle;
use super::writers::is_cut;
use crate::databases::lacks;
use crate::demand::is_asked_for;
use crate::facts::{
    available, by_pool, bytes, default_size, filled, is_own, known, largest, pages_for, persistent, pool_file, pools,
    programs, running, total,
};
use crate::remedy::Need;
use crate::rule::answers::{each, parts, readable};
use crate::rule::{Answer, Case, Reason};
use crate::thp::{asks_in_vain, is_missed, no_such_size};

/// A smaller pool is most likely a test.
pub(super) const WORTH: Bytes = Bytes::mib(64);

pub(super) fn is_idle(pool: &Pool) -> Result<bool, Reason> {
    let (nr, free, reserved) = (*known(&pool.nr)?, *known(&pool.free)?, *known(&pool.reserved)?);
    Ok(persistent(pool)? > 0 && free == nr && reserved == 0)
}

pub(super) fn pool_idle(evidence: &Evidence) -> Answer {
    let just_booted = evidence.uptime.known().is_some_and(|&seconds| seconds < 600.0);
    each(pools(evidence)?, |pool| {
        // A program of a file that was given is not running yet, nor one that waits for the rest of the pool.
        let is_given = || is_written(evidence, pool) || is_asked_for(evidence, pool.size).unwrap_or(false);
        let is_waited_for =
            || is_part(evidence, pool) || is_cut(evidence, pool) || is_given() || is_missed(evidence, pool);
        let beside = beside_files(evidence, pool);
        let is_in_use = matches!(beside, Ok(None)) && !is_idle(pool)?;
        if starves(evidence, pool) || is_waited_for() || lacks(evidence, pool.size) {
            return Ok(None);
        }
        if is_in_use {
            return mostly_idle(evidence, pool);
        }
        if matches!(beside, Ok(Some(_))) || !is_idle(pool)? {
            return beside;
        }
        let (nr, memory) = (*known(&pool.nr)?, bytes(pool, persistent(pool)?));
        let meant = meant_for(evidence, pool, memory);
        let confidence = if just_booted { Confidence::Low } else { Confidence::High };
        let small = just_booted || memory < WORTH;
        let is_in_vain = is_in_vain(evidence, memory);
        let is_as_asked = !is_in_vain && is_as_asked(evidence, pool, memory);
        let is_for_later = is_as_asked || !meant.is_empty();
        let case = Case::new(confidence, idle_text(pool, memory, is_for_later))
            .info_if(small || is_for_later)
            .seen(pool_file(pool, "nr_hugepages"), "", nr)
            .seen(pool_file(pool, "free_hugepages"), "", nr)
            .seen(pool_file(pool, "resv_hugepages"), "", 0);
        Ok(Some(match meant.is_empty() {
            false => start(case, &meant),
            true => start_or_free(case, evidence, pool, (is_in_vain, is_as_asked)),
        }))
    })
}

pub(super) fn idle_text(pool: &Pool, memory: Bytes, is_for_later: bool) -> String {
    let why = match is_for_later {
        true => "no program uses it yet",
        false => "no program uses it, and it cannot serve as other memory",
    };
    format!("{memory} in the pool of {} pages is idle: {why}", pool.size.exact())
}

/// Does a program run beside it that could use such a pool by its size, and takes none?
fn is_in_vain(evidence: &Evidence, memory: Bytes) -> bool {
    let all = running(evidence).filter(|program| takes_none(program).is_some());
    all.map(|program| beside(evidence, program, memory))
        .any(|base| matches!(base, Ok(Some(_))))
}

/// Is it what the boot line asks for, and less than half of the memory? Then it is on purpose, for programs that start later.
fn is_as_asked(evidence: &Evidence, pool: &Pool, memory: Bytes) -> bool {
    let asked = request(evidence, pool).ok().flatten();
    let is_exact = asked.is_some_and(|(pages, line)| line.place == "/proc/cmdline" && persistent(pool) == Ok(pages));
    is_exact && total(evidence).is_ok_and(|total| memory.0 < total.0 / 2)
}

fn start_or_free(case: Case, evidence: &Evidence, pool: &Pool, (is_in_vain, is_as_asked): (bool, bool)) -> Case {
    let case = case.with(without_gigabytes(evidence, pool), |case, program| {
        case.fix(format!(
            "let {} use them: --randomx-1gb-pages, or \"1gb-pages\": true in \"randomx\" of its config.json ({GIGABYTES} on each NUMA node)",
            program.title()
        ))
    });
    let case = case.fix_if(
        !is_in_vain,
        "start the program that the pool is meant for; if it falls back, see its own finding",
    );
    // What a line asks for may be as it should be.
    let free = match places(evidence, pool) {
        _ if is_in_vain => "give it back",
        Some(_) => "if no program is to use it",
        None => "or free it",
    };
    match is_as_asked {
        true => give_back(case, pool, free),
        false => or_free(case, evidence, pool, free),
    }
}

/// A pool that a program is to have, or that is short as well, is not to be freed and to be filled in one report.
fn or_free(case: Case, evidence: &Evidence, pool: &Pool, free: &str) -> Case {
    give_back(case, pool, free).with(places(evidence, pool), |case, places| {
        case.fix_with(Need::Unwanted(pool.size), format!("and remove it from {places}"))
    })
}

fn give_back(case: Case, pool: &Pool, words: &str) -> Case {
    let file = pool_file(pool, "nr_hugepages");
    case.fix_with(Need::Unwanted(pool.size), format!("{words}: echo 0 > {file}"))
}

pub(super) fn consumer_bigger(evidence: &Evidence) -> Answer {
    let free = filled(evidence)?.into_iter();
    let free: Vec<(&Pool, Bytes)> = free
        .map(|pool| Ok((pool, bytes(pool, available(pool)?))))
        .collect::<Result<_, Reason>>()?;
    if free.is_empty() {
        return Ok(Vec::new());
    }
    let all = programs(evidence)?;
    // A segment that several processes share is one.
    let mut first: BTreeMap<(&str, u64), u32> = BTreeMap::new();
    for program in all {
        if let Ok(Some(segment)) = largest_segment(program) {
            first.entry(file_of(segment)).or_insert(program.pid());
        }
    }
    let is_full = free.iter().all(|(_, room)| room.0 == 0);
    each(all, |program| {
        let Some(segment) = largest_segment(program)? else {
            return Ok(None);
        };
        let is_first = segment.inode == 0 || first.get(&file_of(segment)) == Some(&program.pid());
        // A full pool is short for those that ask: those that have a part of it.
        if !is_first || (is_full && program.hugetlb()?.0 == 0) {
            return Ok(None);
        }
        let too_small = free.iter().find(|(_, room)| *room < segment.size());
        let fits = free.iter().any(|(_, room)| *room >= segment.size());
        Ok(too_small
            .filter(|_| !fits)
            .map(|(pool, room)| bigger(program, segment, pool, *room)))
    })
}

/// What distinguishes a segment from others.
fn file_of(segment: &Area) -> (&str, u64) {
    (&segment.device, segment.inode)
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
            && (area.is_segment() || area.name.starts_with("/dev/zero"))
    };
    Ok(program
        .areas()?
        .iter()
        .filter(is_segment)
        .max_by_key(|area| area.size()))
}

fn bigger(program: &Program, segment: &Area, pool: &Pool, room: Bytes) -> Case {
    let pages = pages_for(segment.size(), pool.size);
    Case::likely(format!(
        "{} has {} of shared memory backed by base pages; the pool has {room} free, which is too small for it",
        program.title(),
        segment.size()
    ))
    .wants(pool.size)
    .seen_mapping(program, segment)
    .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
    .fill_more(pool, pages, |command| {
        format!(
            "it needs {pages} pages of {} beside those in use: {command}",
            pool.size.exact()
        )
    })
    .fix_with(
        Need::More(pool.size, pages),
        format!("and restart {}", program.pages.name),
    )
    .otherwise("give the program less memory: the machine has no room for it in the pool")
}

pub(super) fn program_beside(evidence: &Evidence) -> Answer {
    parts([
        each(programs(evidence)?, |program| refused(evidence, program)),
        beside_idle(evidence),
    ])
}

fn beside_idle(evidence: &Evidence) -> Answer {
    let mut idle = by_pool(evidence, |pool| {
        let pages = persistent(pool)?;
        Ok(if is_idle(pool)? { pages } else { 0 })
    })?;
    idle.retain(|(_, memory)| *memory >= WORTH);
    let Some((pool, memory)) = largest(idle) else {
        return Ok(Vec::new());
    };
    let all = programs(evidence)?.iter();
    let (all, unknown) = readable(all.map(|program| Ok((program, beside(evidence, program, memory)?))));
    let worth = all.into_iter().filter_map(|(program, base)| Some((program, base?)));
    match (largest(worth), unknown) {
        (Some((program, base)), _) => Ok(vec![beside_case(evidence, program, pool, memory, base)]),
        (None, Some(reason)) => Err(reason),
        (None, None) => Ok(Vec::new()),
    }
}

/// What it has on base pages, if that is worth a pool of so much and nothing else is said about such programs: databases, JVMs
/// and hypervisors have rules of their own, which know how they are made to ask.
fn beside(evidence: &Evidence, program: &Program, memory: Bytes) -> Result<Option<Bytes>, Reason> {
    // What is larger than the pool is A04's.
    let is_larger = || segment_of(program).is_some_and(|segment| segment.size() > memory);
    // What a variable asks for without room is D15's, a size that the kernel has not D18's.
    let is_named = asks_in_vain(evidence, program) || no_such_size(evidence, program).is_ok_and(|case| case.is_some());
    let has_own_rule = known(&program.kind)?.is_some() || is_named;
    if has_own_rule || is_own(program) || refused(evidence, program)?.is_some() || is_larger() {
        return Ok(None);
    }
    let base = match program.pages.backing.known() {
        Some(backing) => backing.of(PageKind::Base),
        None => *known(&program.pages.rss)?,
    };
    let worth = base.0 >= memory.0 / 2 && base >= WORTH;
    Ok(Some(base).filter(|_| worth && program.hugetlb().is_ok_and(|has| has.0 == 0)))
}

fn segment_of(program: &Program) -> Option<&Area> {
    largest_segment(program).ok().flatten()
}

/// Servers that share their memory, and what makes them ask, as their manuals name it: IBM's of Informix and Db2, InterSystems' of `memlock`.
const OWN_OPTIONS: [(&str, &str); 3] = [
    (
        "oninit",
        "RESIDENT -1 in onconfig, and no IFX_LARGE_PAGES=0 in its environment",
    ),
    ("irisdb", "memlock without its flag 32 in iris.cpf"),
    (
        "db2sysc",
        "db2set DB2_LARGE_PAGE_MEM=DB as the owner of the instance, with a memlock limit of at least that memory",
    ),
];

/// By which libfabric's provider for AWS takes no pages of a pool for its buffers (prov/efa, efa_env.h).
const EFA: &str = "FI_EFA_USE_HUGE_PAGE";

fn off_for_efa(program: &Program) -> Option<&str> {
    let mut areas = program.areas().into_iter().flatten();
    let value = program.tunable(EFA).ok().flatten();
    let value = value.filter(|value| ["0", "no", "off", "false"].contains(value));
    value.filter(|_| areas.any(|area| area.name.contains("/libfabric.so")))
}

/// Programs that ask for hugetlb pages by default, and fall back where they get none.
pub(super) const ASK: [&str; 2] = ["xmrig", "xmrig-notls"];

/// The largest mapping of its own memory on base pages: what it asks for at once, if it asks.
fn largest_mapping(program: &Program) -> Option<Bytes> {
    let own = |area: &&Area| area.is_private_data() && area.is_anonymous() && !area.is_hugetlb();
    let areas = program.areas().ok()?.iter().filter(own);
    areas.map(Area::size).max()
}

/// A program that asks by default, with a mapping on base pages for which the pool of the default size has not the pages.
fn refused(evidence: &Evidence, program: &Program) -> Result<Option<Case>, Reason> {
    if !ASK.contains(&program.pages.name.as_str()) {
        return Ok(None);
    }
    let (all, size) = (pools(evidence)?, default_size(evidence)?);
    let pool = all.iter().find(|pool| pool.size == size);
    let mapping = largest_mapping(program).filter(|mapping| *mapping >= WORTH);
    let (Some(pool), Some(mapping)) = (pool, mapping) else {
        return Ok(None);
    };
    let (pages, free) = (pages_for(mapping, size), available(pool)?);
    let is_set_up = all.iter().any(|pool| persistent(pool).is_ok_and(|pages| pages > 0));
    if !is_set_up || free >= pages {
        return Ok(None);
    }
    let missing = pages - free;
    let total = persistent(pool)?.saturating_add(missing);
    let size = size.exact();
    let need = || Need::More(pool.size, pages);
    let has_gigabytes = all
        .iter()
        .any(|pool| pool.size == Bytes::gib(1) && available(pool).is_ok_and(|free| free >= GIGABYTES));
    Ok(Some(
        Case::likely(format!(
            "{} asks for huge pages by default and gets none, as its mapping of {mapping} needs {pages} pages of {size}, and a mapping gets all of its pages or none: {free} are free",
            program.title(),
        ))
        .wants(pool.size)
        .seen(program.file("status"), "HugetlbPages", &program.pages.hugetlb)
        .seen(program.file("smaps"), "its largest mapping on base pages", mapping)
        .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
        .plan_with(need(), format!("pool:{size}={total}"))
        .fix_with(
            need(),
            format!("{missing} pages of {size} are missing for that mapping; then restart it"),
        )
        .fix_if(
            has_gigabytes,
            "or let it use the pages of 1G that are free: \"1gb-pages\": true in \"randomx\" of its config.json (3 on each NUMA node)",
        )
        .otherwise("give it less memory: the machine has no room for such a pool"),
    ))
}

/// A miner on pages of the default size whose options do not name these of 1 GiB.
fn without_gigabytes<'e>(evidence: &'e Evidence, pool: &Pool) -> Option<&'e Program> {
    let is_told = |program: &Program| {
        let mut words = program.arguments.known().into_iter().flatten();
        words.any(|word| word == "--randomx-1gb-pages")
    };
    let mut miners = running(evidence).filter(|program| ASK.contains(&program.pages.name.as_str()));
    let has_room = pool.size == Bytes::gib(1) && available(pool).is_ok_and(|free| free >= GIGABYTES);
    miners.find(|program| has_room && !is_told(program))
}

/// Pages of 1 GiB that RandomX's data set takes (xmrig/xmrig#2589).
const GIGABYTES: u64 = 3;

fn beside_case(evidence: &Evidence, program: &Program, pool: &Pool, memory: Bytes, base: Bytes) -> Case {
    let size = pool.size.exact();
    let largest = largest_mapping(program).filter(|mapping| *mapping > memory);
    let mapping = largest.map(|mapping| (mapping, pages_for(mapping, pool.size)));
    let case = Case::likely(format!(
        "{} has {base} backed by base pages while a pool of {memory} (pages of {size}) is idle: the program does not use it",
        program.title(),
    ))
    .seen(program.file("status"), "HugetlbPages", &program.pages.hugetlb)
    .seen_backing(program, PageKind::Base, base)
    .seen(pool_file(pool, "free_hugepages"), "", &pool.free);
    if let Some(value) = off_for_efa(program) {
        let case = case.seen(program.file("environ"), EFA, value).fix(format!(
            "leave {EFA} out: with it libfabric takes no pages (before Linux 5.13 only where the program does not fork)"
        ));
        return or_free(case, evidence, pool, "or free the pool");
    }
    if let Some(why) = takes_none(program) {
        return or_free(case, evidence, pool, "give the pool back").fix(why);
    }
    let case = case.when(mapping.is_some(), |case| case.wants(pool.size));
    let own = OWN_OPTIONS.iter().find(|(name, _)| *name == program.pages.name);
    let case = match own {
        Some((_, option)) => case
            .wants(pool.size)
            .fix(format!("let it ask: {option}; then restart it")),
        None => case.fix("enable the program's own option for huge pages, if it has one"),
    };
    if own.is_some() || segment_of(program).is_some_and(|segment| segment.size().0 >= base.0 / 2) {
        return case
            .fix("its memory is shared (System V or MAP_SHARED): malloc's tunables and libraries do not reach it");
    }
    let case = case.with(mapping, |case, (mapping, all)| {
        let missing = all.saturating_sub(memory.0 / pool.size.0.max(1));
        case.fix_with(
            Need::Pool(pool.size, all),
            format!("with {missing} pages more in the pool: its mapping of {mapping} needs {all}, and gets all of them or none"),
        )
    });
    by_malloc(case, evidence, program, mapping.is_some())
}
