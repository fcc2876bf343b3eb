//! Databases.

use host::snapshot::{Feature, PREEMPT, Pool};
use model::{Bytes, Reading};
use programs::Evidence;
use programs::config::given::FileKind;
use programs::postgres::{self, HugePages, no_mmap};
use programs::size::mysql::{Innodb, innodb};
use programs::{Area, Details, Kind, Limit, Program, Setting};

use super::explain::is_chunk;
use super::facts::{
    by_pool, default_page, each_looked_into, file_name, filled, has, known, pages_for, programs, running, shown_in, sum,
};
use super::kept::boot_fix;
use super::limits::barred;
use super::links;
use super::remedy::Need;
use super::rule::{Answer, Case, Checks, Reason};
use super::topics::Topic;

mod files;

#[cfg(test)]
mod tests;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_both("F01", fell_back, &[FileKind::Postgres], files::falls_back),
        Checks::of_files("F02", &[FileKind::Postgres], files::does_not_start),
        Checks::of_both("F03", oracle_amm, &[FileKind::Oracle], files::oracle_amm),
        Checks::of_both("F05", mysql, &[FileKind::Mysql], files::mysql),
        Checks::of_machine("F06", preempted),
    ],
};

/// The largest shared segment of PostgreSQL, if base pages back it. Of its processes the postmaster alone is examined, which has no parent of
/// its own kind.
fn segment_on_base(program: &Program) -> Result<Option<&Area>, Reason> {
    if !program.is(Kind::Postgres)? {
        return Ok(None);
    }
    let shared = program.areas()?.iter();
    let shared = shared.filter(|area| area.is_shared_data() && area.size() >= Bytes::mib(8));
    Ok(shared.max_by_key(|area| area.size()).filter(|area| !area.is_hugetlb()))
}

/// What a server needs of its pool, as the calculator counts it.
fn needs(pages: u64, page: Bytes, spare: u64) -> String {
    format!("it needs {pages} pages of {}, and {spare} are spare", page.exact())
}

fn fell_back(evidence: &Evidence) -> Answer {
    each_looked_into(evidence, |program, details| {
        let Some(segment) = segment_on_base(program)? else {
            return Ok(None);
        };
        let setting = known(&details.setting)?.as_ref();
        if details.is_off() {
            return Ok(None);
        }
        let has_pool = !filled(evidence)?.is_empty();
        let case = on_base(evidence, program, segment, setting, has_pool);
        Ok(Some(match segment.is_segment() {
            true => of_segment(details, case),
            false => fell_back_fix(evidence, program, (segment, details), setting, case),
        }))
    })
}

/// Does a server that runs lack this pool? Then it is not idle, it is too small or the server is to be started again.
pub(crate) fn lacks(evidence: &Evidence, page: Bytes) -> bool {
    fell_back(evidence).is_ok_and(|cases| cases.iter().any(|case| case.wants == Some(page)))
}

/// How much of a segment is resident: what the process has that touched most of it.
fn resident(evidence: &Evidence, segment: &Area) -> String {
    let (size, id) = (segment.size(), format!("{}:{}", segment.device, segment.inode));
    let own = running(evidence).flat_map(|program| &program.pages.segments);
    let most = own.filter(|own| own.id == id).map(|own| own.resident).max();
    match most {
        Some(most) if most.0 < size.0 / 10 * 9 => format!("{most} of {size}"),
        _ => size.to_string(),
    }
}

/// The size of the pages that PostgreSQL asks for.
fn page_of(evidence: &Evidence, details: &Details) -> Bytes {
    postgres::page(&details.settings).unwrap_or_else(|| default_page(evidence))
}

/// What leaves shared memory of the type that takes huge pages.
const NO_MMAP: &str = "leave shared_memory_type out: mmap is its default";

/// No pool helps a System V segment: with `huge_pages = on` such a server does not start.
fn of_segment(details: &Details, case: Case) -> Case {
    let Some(set) = no_mmap(&details.settings) else {
        return case.fix("upgrade it: without shared_memory_type only releases before 9.3 have System V memory for all of it, and they take no huge pages (9.4 and later do)");
    };
    case.seen(&set.place, "shared_memory_type", &set.value).fix(format!(
        "{NO_MMAP}, and System V memory takes no huge pages; then restart it"
    ))
}

fn on_base(evidence: &Evidence, program: &Program, segment: &Area, setting: Option<&Setting>, has_pool: bool) -> Case {
    let size = segment.size();
    // Releases whose memory is in segments by default know no such setting.
    let default = ("postgresql.conf", "try (default)");
    let shown = setting.map(|set| (set.place.as_str(), set.value.as_str()));
    let shown = shown.or_else(|| (!segment.is_segment()).then_some(default));
    let expected = has_pool || setting.is_some() || size >= Bytes::gib(1);
    Case::sure(format!(
        "{} of shared memory of {} is backed by base pages, which every session maps with page tables of its own",
        resident(evidence, segment),
        program.title()
    ))
    .info_if(!expected)
    .seen_mapping(program, segment)
    .with(shown, |case, (place, value)| case.seen(place, "huge_pages", value))
}

/// The pool that it needs, of the size that it asks for; a restart alone, where it is there.
fn fell_back_fix(
    evidence: &Evidence,
    program: &Program,
    (segment, details): (&Area, &Details),
    setting: Option<&Setting>,
    case: Case,
) -> Case {
    let asked = details.settings.last("huge_page_size");
    let page = page_of(evidence, details);
    let pages = pages_for(segment.size(), page);
    let need = || Need::More(page, pages);
    let pool = evidence.snapshot.pool(page).filter(|pool| pool.nr.known().is_some());
    // With enough spare pages a restart is all it takes.
    let spare = pool.and_then(Pool::available).filter(|spare| *spare < pages);
    case.wants(page)
        .with(asked, |case, set| case.seen(&set.place, &set.name, &set.value))
        .seen_free(evidence)
        .raise_limits(program, page, pages)
        .with(spare, |case, spare| {
            case.plan_with(need(), format!("postgres:pid={}", program.pid()))
                .fix_with(need(), needs(pages, page, spare))
                .raise(evidence, page, pages)
        })
        .fix_with(need(), started_again(setting))
        .otherwise("lower shared_buffers: the machine has no room for them in the pool")
}

/// With `on` a server does not start on base pages: one that is on them was started before that was set.
fn started_again(setting: Option<&Setting>) -> String {
    let is_on = |set: &&Setting| HugePages::of(&set.value) == Some(HugePages::On);
    match setting.filter(is_on) {
        Some(set) => format!(
            "restart it: it was started before huge_pages = on was set ({})",
            set.place
        ),
        None => format!(
            "huge_pages = on {}, so that it fails instead of falling back; then restart it",
            set_in(setting)
        ),
    }
}

/// Where a server is set so that it counts: what its command line and ALTER SYSTEM set wins over its file.
fn set_in(setting: Option<&Setting>) -> String {
    let place = setting.map_or("postgresql.conf", |set| &set.place);
    match () {
        () if place.starts_with("/proc/") => "on its command line".to_owned(),
        () if place.contains("/postgresql.auto.conf:") => "by ALTER SYSTEM".to_owned(),
        () => format!("in {}", file_name(place)),
    }
}

/// So many sessions contend for the locks of the buffers.
const MANY_SESSIONS: usize = 32;
/// Smaller buffers have few page tables.
const LARGE_BUFFERS: Bytes = Bytes::gib(8);

/// Lazy preemption takes the CPU from a session that faults while it holds a spinlock, and the others spin.
fn preempted(evidence: &Evidence) -> Answer {
    let lazily = lazily(evidence);
    if lazily == Ok(None) {
        return Ok(Vec::new());
    }
    let all = programs(evidence)?;
    let choice = evidence.snapshot.kernel.preemption.known();
    let can_less = choice.is_some_and(|choice| choice.offered.iter().any(|offered| offered == "none"));
    each_looked_into(evidence, |program, details| {
        let Some(segment) = segment_on_base(program)?.filter(|area| area.size() >= LARGE_BUFFERS) else {
            return Ok(None);
        };
        let is_session = |other: &&Program| other.parent.known() == Some(&program.pid());
        let sessions = all.iter().filter(is_session).count();
        if sessions < MANY_SESSIONS {
            return Ok(None);
        }
        let Some(seen) = lazily.clone()? else {
            return Ok(None);
        };
        let case = Case::likely(format!(
            "{} has {} of shared memory on base pages and {sessions} processes: this kernel preempts itself lazily, and a session that is interrupted in a page fault holds up the others",
            program.title(),
            segment.size()
        ))
        .seen(seen.0, "", seen.1)
        .seen(shown_in(program, segment), segment.name.to_string(), segment.size())
        .seen("/proc", "processes below the postmaster", sessions);
        let page = page_of(evidence, details);
        let need = Need::More(page, pages_for(segment.size(), page));
        Ok(Some(
            case.plan_with(need, format!("postgres:pid={}", program.pid()))
                .fix("back the shared memory by huge pages: then its pages hardly fault, and the throughput is that of older kernels")
                .fix_if(can_less, format!("or preempt less: echo none > {PREEMPT}"))
                .fix_if(can_less, format!("and to keep it: {}", boot_fix(evidence, "preempt=none"))),
        ))
    })
}

/// Does the kernel preempt itself lazily? If so, the file that shows it, and what it says. What was chosen at boot and what the kernel
/// was built with decide, and one file shows both; without it the boot line does, and from Linux 7.0 on there is nothing less, only `full`.
fn lazily(evidence: &Evidence) -> Result<Option<(&str, &str)>, Reason> {
    let kernel = &evidence.snapshot.kernel;
    if let Reading::Known(choice) = &kernel.preemption {
        return Ok((choice.chosen == "lazy").then_some((PREEMPT, "lazy")));
    }
    let release = known(&kernel.release)?;
    let line = kernel.command_line.known().map_or("", String::as_str);
    let mut chosen = line.split_whitespace().filter_map(|word| word.strip_prefix("preempt="));
    let chosen = chosen.next_back();
    if has(evidence, Feature::NoPreemptNone)? {
        let of_release = ("/proc/sys/kernel/osrelease", release.as_str());
        return Ok((chosen != Some("full")).then_some(of_release));
    }
    match chosen {
        _ if !has(evidence, Feature::PreemptLazy)? => Ok(None),
        Some("lazy") => Ok(Some(("/proc/cmdline", "preempt=lazy"))),
        Some(_) => Ok(None),
        None => known(&kernel.preemption).map(|_| None),
    }
}

fn oracle_amm(evidence: &Evidence) -> Answer {
    let idle = sum(&by_pool(evidence, |pool| Ok(*known(&pool.free)?))?);
    each_looked_into(evidence, |program, details| {
        if !program.is(Kind::Oracle)? || idle.0 == 0 {
            return Ok(None);
        }
        let areas = program.areas()?.iter();
        let in_files = areas.filter(|area| area.name.starts_with("/dev/shm/ora_"));
        let size: Bytes = in_files.map(Area::size).sum();
        if size.0 == 0 {
            return Ok(None);
        }
        let limit = details.memlock.known();
        let is_low = limit.is_some_and(|limit| *limit < Limit::Bytes(size.0)) && !program.may_lock()?;
        let case = Case::sure(format!("the SGA of {} ({size}) is in /dev/shm on base pages, while {idle} in hugetlb pools is idle", program.title()))
            .wants(default_page(evidence))
            .seen(program.file("smaps"), "/dev/shm/ora_*", size)
            .seen("/sys/kernel/mm/hugepages", "free", idle)
            .fix_if(
                is_low,
                format!("first raise the memlock limit of its user to {size} or more: with ONLY it does not start below"),
            )
            .fix("ALTER SYSTEM RESET memory_target SCOPE=SPFILE; ALTER SYSTEM RESET memory_max_target SCOPE=SPFILE;")
            .fix("ALTER SYSTEM SET sga_target=... SCOPE=SPFILE; ALTER SYSTEM SET use_large_pages='ONLY' SCOPE=SPFILE; and restart");
        Ok(Some(case))
    })
}

/// InnoDB takes its buffer pool in chunks, each of which falls back by itself.
fn mysql(evidence: &Evidence) -> Answer {
    each_looked_into(evidence, |program, details| {
        if !program.is(Kind::Mysql)? || !asks_for_large_pages(details)? {
            return Ok(None);
        }
        // What is reserved for it and not touched yet is its own as well.
        let reserved = program.areas()?.iter();
        let reserved = reserved.filter(|area| area.is_hugetlb() && area.has("nr") != Some(true));
        let has = program.hugetlb()?.max(reserved.map(Area::size).sum());
        let chunks = program.areas()?.iter().filter(|area| is_chunk(area));
        let (huge, small): (Vec<&Area>, Vec<&Area>) = chunks.partition(|area| area.is_hugetlb());
        if in_segments(program, details.innodb)? {
            return Ok(None);
        }
        let size = |chunks: &[&Area]| chunks.iter().map(|area| area.size()).sum::<Bytes>();
        let (base, all) = (size(&small), size(&small).0 + size(&huge).0);
        let barred = match has.0 == 0 && !program.is_mariadb() {
            true => barred(evidence, program, base)?,
            false => None,
        };
        let what = match has.0 {
            0 if barred.is_some() => "no page of a pool backs its memory: it has no right to SHM_HUGETLB, which MySQL before 8.0.27 takes them by".to_owned(),
            0 => "no page of a pool backs its memory".to_owned(),
            _ if base.0 < all / 10 || small.is_empty() => return Ok(None),
            _ => format!(
                "{} of its {} large allocations ({base}) fell back to base pages",
                small.len(),
                small.len() + huge.len()
            ),
        };
        let text = format!("{} is configured to use huge pages, and {what}", program.title());
        let case = Case::sure(text)
            .link(program.is_mariadb().then_some(links::MARIADB))
            .seen(program.file("smaps"), "large mappings on base pages", base)
            .seen_hugetlb(program, has)
            .seen_free(evidence);
        let case = case.with(barred, |case, group| {
            case.seen(program.file("status"), "CapEff: CAP_IPC_LOCK", "no").seen(
                "/proc/sys/vm/hugetlb_shm_group",
                "",
                group,
            )
        });
        Ok(Some(mysql_fix(
            evidence,
            (program, has),
            details.innodb,
            case,
            barred.is_some(),
        )))
    })
}

/// Is all of its buffer pool in segments of huge pages, as before MySQL 8.0.27? What else is large is no part of it.
fn in_segments(program: &Program, settings: Option<Innodb>) -> Result<bool, Reason> {
    let segments = program.areas()?.iter();
    let segments = segments.filter(|area| area.is_shared_data() && area.is_hugetlb());
    let mapped: Bytes = segments.map(Area::size).sum();
    Ok(settings.is_some_and(|settings| mapped >= settings.pool))
}

/// The pool that its settings need, by the calculator; a restart alone, where it is there.
fn mysql_fix(
    evidence: &Evidence,
    (program, has): (&Program, Bytes),
    settings: Option<Innodb>,
    case: Case,
    is_barred: bool,
) -> Case {
    let page = default_page(evidence);
    let pages = settings.and_then(|settings| innodb(&settings, page).ok()?.whole("pages"));
    let own = has.0 / page.0.max(1);
    let spare = evidence.snapshot.pool(page).and_then(Pool::available);
    let goal = format!("mysql:pid={}", program.pid());
    let case = case
        .wants(page)
        .with(pages, |case, pages| case.raise_limits(program, page, pages));
    let case = match (pages, spare) {
        (Some(pages), Some(spare)) if spare.saturating_add(own) >= pages => {
            case.when(is_barred, |case| case.plan(goal))
        }
        (Some(pages), Some(spare)) => {
            let more = pages.saturating_sub(own);
            let need = || Need::More(page, more);
            case.plan_with(need(), goal)
                .fix_with(need(), needs(pages, page, spare.saturating_add(own)))
                .when(!is_barred, |case| case.raise(evidence, page, more))
        }
        _ => case.plan(goal),
    };
    if !is_barred {
        return case.fix("restart it: such memory is taken at the start only");
    }
    case.fix("or in its unit: AmbientCapabilities=CAP_IPC_LOCK (CapabilityBoundingSet= alone gives none)")
        .fix("then restart it; MySQL 8.0.27 and later take them with mmap, which needs no right: for them a restart is enough")
}

/// By its command line, or else by its option files, which may ask for them even where they could not be read.
fn asks_for_large_pages(details: &Details) -> Result<bool, Reason> {
    let setting = known(&details.setting)?.as_ref();
    Ok(setting.is_some_and(|setting| programs::config::mysql::is_on(&setting.value)))
}
