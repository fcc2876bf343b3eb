//! What a reader wants to know first: the answer, the parts of memory, the pools, and why memory is on base pages.

use doctor::explain::{InUse, Part, PartKind, PoolState, Usage, Why};
use model::{Backing, Cause, Reading};

use super::super::ps::by_sort;
use super::mapped::code;
use super::parts::{in_numbers, kinds, mixed, title};
use draw::{counted, or, or_empty};

/// What a reader wants to know first, each under a label.
pub(super) fn facts(usage: &Usage) -> Vec<(String, String)> {
    let fact = |label: &str, text: String| (label.to_owned(), text);
    let parts = usage.parts.iter();
    let parts = parts.map(|part| fact(title(part.what), in_numbers(part) + &of_processes(usage, part)));
    let asked = usage.of_process.as_ref().map(|process| {
        let backing = match &process.backing {
            Reading::Known(backing) => format!("{} without shared memory: {}", backing.total(), mixed(backing)),
            Reading::Unread(why) => format!("could not be read: {why}"),
        };
        fact(
            &format!("process {}", process.pid),
            format!("{}, {backing}", process.name),
        )
    });
    let resident = usage.resident.known().and_then(by_sort);
    let resident = resident.map(|text| fact("resident", text));
    let code = usage.mapped.as_ref().and_then(code).map(|text| fact("code", text));
    let pools = usage.pools.iter().filter(|pool| matters(usage, pool));
    let pools = pools.map(|one| fact(&format!("{} pool", one.page), pool(one)));
    let why = usage.why.iter().enumerate();
    let label = |number| match (number, usage.in_use) {
        (0, InUse::Yes) => "but",
        (0, _) => "why base",
        _ => "",
    };
    let is_older = usage.why.iter().any(|why| matches!(why, Why::StartedBefore { .. }));
    let why = why.map(|(number, why)| fact(label(number), reason(why, is_older)));
    std::iter::once(fact("in use?", short(usage)))
        .chain(parts)
        .chain(asked)
        .chain(resident)
        .chain(code)
        .chain(pools)
        .chain(why)
        .collect()
}

/// Private memory is that of all processes.
fn of_processes(usage: &Usage, part: &Part) -> String {
    let all = usage.others + 1;
    match part.what {
        PartKind::PrivateMemory | PartKind::MappedFiles if all > 1 && part.backing.known().is_some() => {
            let counted = match usage.counted {
                counted if counted >= all => format!("all {all}"),
                counted => format!("{counted} of {all}"),
            };
            format!(" (of {counted} processes)")
        }
        _ => String::new(),
    }
}

/// `PostgreSQL, postgres (4711) and 5 more processes`.
pub(super) fn name(usage: &Usage) -> String {
    let program = or_empty(usage.program.as_ref().map(|program| format!("{program}, ")));
    let others = (usage.others > 0).then(|| format!(" and {}", counted(usage.others as usize, "more process")));
    let others = or_empty(others);
    format!("{program}{} ({}){others}", usage.name, usage.pid)
}

pub(super) fn answer(usage: &Usage) -> String {
    format!("{}: {}", name(usage), short(usage))
}

/// `no: shared memory is backed by base pages`.
fn short(usage: &Usage) -> String {
    let what = usage.parts.first().map_or("its memory", |part| title(part.what));
    let kinds = or_empty(usage.parts.first().map(kinds));
    let denied = usage.parts.first().is_some_and(|part| part.backing.unread().is_some());
    if let (InUse::Yes, Some(bytes), true) = (usage.in_use, usage.hugetlb, denied) {
        return format!("yes: {bytes} is backed by hugetlb pages; what backs the rest takes root to read");
    }
    match usage.in_use {
        InUse::Yes => format!("yes: {what} is backed by {kinds}"),
        InUse::Partly => format!("in part: {what} is backed by {kinds}"),
        InUse::No if usage.parts.first().is_some_and(has_large) => format!("hardly: {what} is backed by {kinds}"),
        InUse::No => format!("no: {what} is backed by {kinds}"),
        InUse::Unknown if usage.parts.first().is_some_and(is_absent) => format!("unknown: {what} was not found"),
        InUse::Unknown if denied => "unknown: its mappings could not be read".to_owned(),
        InUse::Unknown => format!("unknown: {what} could not be read or is not touched yet"),
    }
}

fn has_large(part: &Part) -> bool {
    let is_backed = |backing: &Backing| backing.large().0 > 0;
    part.hugetlb.is_some() || part.backing.known().is_some_and(is_backed)
}

fn is_absent(part: &Part) -> bool {
    part.backing.unread().is_some_and(|why| why.unread == Cause::Absent)
}

/// Does the pool hold pages, or could it have served the program?
fn matters(usage: &Usage, pool: &PoolState) -> bool {
    let pages = |part: &Part| [part.needs.map(|needs| needs.page), part.hugetlb.map(|pages| pages.page)];
    let is_filled = pool.pages.known().is_some_and(|pages| *pages > 0);
    is_filled || usage.parts.iter().flat_map(pages).any(|page| page == Some(pool.page))
}

fn pool(pool: &PoolState) -> String {
    let pages = pool.pages.known().map(|pages| counted(*pages as usize, "page"));
    let pages = or(pages, "size unknown");
    let spare = or(pool.spare.map(|spare| format!("{spare} spare")), "spare unknown");
    let on_demand = or_empty(pool.on_demand.map(|added| {
        let which = match pool.spare == Some(added) {
            true => String::new(),
            false => format!(" {added} of them"),
        };
        format!(",{which} added by the kernel on demand if it finds memory")
    }));
    format!("{pages}, {spare}{on_demand}")
}

/// A reason in words. One that was started before it asked has not fallen back.
fn reason(why: &Why, is_older: bool) -> String {
    match why {
        Why::NotAsked { setting } => format!("it does not ask for huge pages ({setting})"),
        Why::SwitchedOff { option } => {
            format!("{option} switches off the huge pages that it asks for: a restart with that option changes nothing")
        }
        Why::PoolShort { needs, spare } => format!(
            "the {} pool has room for {spare} of {} needed{}",
            needs.page,
            counted(needs.pages as usize, "page"),
            if is_older {
                ""
            } else {
                ", and the program fell back to base pages"
            }
        ),
        Why::StartedBefore { setting, place } => {
            format!("it was started before {setting} was set ({place}): with that it does not start on base pages")
        }
        Why::Restart { needs, spare } => format!(
            "the {} pool has {spare} spare pages now, and {} are needed: the program takes them at its start only, so restart it",
            needs.page, needs.pages
        ),
        Why::Barred { group } => format!(
            "it has no right to SHM_HUGETLB (CAP_IPC_LOCK, or group {group} of vm.hugetlb_shm_group), by which a JVM with -XX:+UseSHM \
             or -Xlp and MySQL before 8.0.27 take their pages; MySQL 8.0.27 and later needs none"
        ),
        Why::NoRoomToGrow { needs, spare } => format!(
            "the heap takes its pages as it grows: the JVM may need {} of {}, the pool has {spare} for it, and without more the \
             JVM lowers the maximum of its heap",
            counted(needs.pages as usize, "page"),
            needs.page
        ),
        Why::Lowered { asked, granted } => {
            format!(
                "the pool had too few pages when it started, and the JVM lowered the maximum of its heap from {asked} to {granted}"
            )
        }
        Why::Limited { needs, allows, file } => format!(
            "its control group allows {allows} in pages of {}, and {} are needed ({}): neither a restart nor a setting of the \
             program changes that ({file})",
            needs.page,
            needs.bytes(),
            counted(needs.pages as usize, "page"),
        ),
        Why::HeapFile { directory } => format!(
            "its heap is a file in {directory} (-XX:AllocateHeapAt): the file system decides how far huge pages back it"
        ),
        Why::Thp { part, reason, bytes } => format!("{bytes} of {}: {reason}", title(*part)),
    }
}
