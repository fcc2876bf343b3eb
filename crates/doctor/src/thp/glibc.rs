//! glibc's tunables for huge pages, and what came before them.

use host::snapshot::Pool;
use model::{Bytes, PageKind};
use programs::{Area, Evidence, Program, in_list};

use super::options;
use super::told::{Told, alone, told};
use crate::facts::{available, count, default_size, is_arm, known, policy, pool_file, pools, programs, thp_file};
use crate::kept::boot_pages;
use crate::remedy::{Count, Need};
use crate::rule::answers::{each_that_can, readable};
use crate::rule::{Answer, Case, Reason};

/// The value of a tunable in GLIBC_TUNABLES.
fn tunable<'a>(program: &'a Program, name: &str) -> Result<Option<&'a str>, Reason> {
    let all = program.tunable("GLIBC_TUNABLES")?;
    Ok(all.and_then(|all| in_list(all, name)))
}

fn glibc(program: &Program) -> Option<(u32, u32)> {
    program.details.as_ref()?.glibc.known().copied()
}

pub(super) fn auto_thp(evidence: &Evidence) -> Answer {
    let is_arm = is_arm(evidence)?;
    let policy = policy(evidence)?;
    if !is_arm || policy == "never" {
        return Ok(Vec::new());
    }
    let all = programs(evidence)?;
    let (grown, unread) = readable(all.iter().map(|program| Ok(is_grown(program)?.then_some(program))));
    let grown: Vec<&Program> = grown.into_iter().flatten().collect();
    let Some(first) = grown.first() else {
        return match unread {
            Some(reason) => Err(reason),
            None if all.iter().any(|program| glibc(program).is_some()) => Ok(Vec::new()),
            None => Err("the glibc version of no process could be read".into()),
        };
    };
    let bytes: Bytes = grown.iter().filter_map(|program| program.thp().ok()).sum();
    let case = Case::likely(format!(
        "{} {bytes} backed by THP, which malloc requests by default",
        count(grown.len() as u64, "small process has", "small processes have")
    ))
    .seen(first.file("smaps"), "glibc", "2.43 or later")
    .seen_backing(first, PageKind::Thp, first.thp()?)
    .seen(thp_file("enabled"), "", policy)
    .fix("for small programs: GLIBC_TUNABLES=glibc.malloc.hugetlb=0");
    Ok(vec![case])
}

/// Is it a small program with THP that a new glibc requested?
fn is_grown(program: &Program) -> Result<bool, Reason> {
    let is_default = tunable(program, "glibc.malloc.hugetlb")?.is_none();
    let is_small = *known(&program.pages.rss)? < Bytes::mib(256);
    if !is_default || !is_small || program.thp()?.0 == 0 {
        return Ok(false);
    }
    Ok(glibc(program).is_some_and(|version| version >= (2, 43)))
}

/// The variable that asks for pages of a pool, and its value.
pub(crate) fn asked_by(program: &Program) -> Option<(&'static str, String)> {
    let tunables = program.tunables.known()?;
    let told = told(|name| tunables.get(name).map(String::as_str))?;
    reads(program, &told)
        .is_ok_and(|reads| reads)
        .then_some((told.variable, told.value))
}

/// Does a variable ask for pages that no pool has?
pub(crate) fn asks_in_vain(evidence: &Evidence, program: &Program) -> bool {
    rooms(evidence).is_ok_and(|rooms| unmet_by(evidence, &rooms, program).is_ok_and(|unmet| unmet.is_some()))
}

/// Does the program read the variable, as far as its mappings show?
fn reads(program: &Program, told: &Told) -> Result<bool, Reason> {
    match told.read_by {
        None => Ok(true),
        Some(name) => Ok(program.areas()?.iter().any(|area| area.name.contains(name))),
    }
}

/// Pages that each pool has for more programs.
pub(super) fn rooms(evidence: &Evidence) -> Result<Vec<(Bytes, u64)>, Reason> {
    let room = |pool: &Pool| {
        let growth = known(&pool.overcommit)?.saturating_sub(*known(&pool.surplus)?);
        Ok((pool.size, available(pool)?.saturating_add(growth)))
    };
    pools(evidence)?.iter().map(room).collect()
}

/// What its options and its environment ask for.
fn asked_of(evidence: &Evidence, program: &Program) -> Result<Vec<Told>, Reason> {
    let options = options::told(evidence, program);
    let variables = known(&program.tunables).map(|set| Vec::from_iter(told(|name| set.get(name).map(String::as_str))));
    match (options, variables) {
        (Ok(options), Ok(variables)) => Ok([options, variables].concat()),
        (Ok(told), Err(_)) | (Err(_), Ok(told)) if !told.is_empty() => Ok(told),
        (Err(why), _) | (_, Err(why)) => Err(why),
    }
}

/// Has it pages of that size? Where no mapping shows a size, those of any size count.
fn has_pages(program: &Program, page: Option<Bytes>) -> Result<bool, Reason> {
    let has_any = program.hugetlb()?.0 > 0;
    let Some(page) = page.filter(|_| has_any) else {
        return Ok(has_any);
    };
    let sizes: Vec<Bytes> = program.areas()?.iter().filter_map(Area::hugetlb_page).collect();
    Ok(sizes.is_empty() || sizes.contains(&page))
}

/// What a program asks for, where the pools have too little room for it, and how much they have.
pub(super) fn unmet_by(
    evidence: &Evidence,
    rooms: &[(Bytes, u64)],
    program: &Program,
) -> Result<Option<(Told, u64)>, Reason> {
    for told in asked_of(evidence, program)? {
        if !reads(program, &told)? {
            continue;
        }
        let page = told.size(default_size(evidence).ok());
        let own = rooms.iter().filter(|(size, _)| page.is_none_or(|page| page == *size));
        let room = own.fold(0_u64, |sum, (_, room)| sum.saturating_add(*room));
        let is_met = room >= told.least() || has_pages(program, page)? || told.has_always(evidence);
        if !is_met {
            return Ok(Some((told, room)));
        }
    }
    Ok(None)
}

pub(super) fn empty_pool(evidence: &Evidence) -> Answer {
    let rooms = rooms(evidence)?;
    each_that_can(programs(evidence)?, |program| {
        let asked = unmet_by(evidence, &rooms, program)?;
        let case = |(told, room): (Told, u64)| named(unmet(evidence, program, &told, room), &told, &rooms);
        Ok(asked.map(case))
    })
}

/// Why it has none, where pools have so much room.
fn why_unmet(evidence: &Evidence, told: &Told, room: u64) -> String {
    if told.or_always {
        return "it takes pages of a pool, or THP under the policy `always` alone, and has neither".to_owned();
    }
    let asked = match (told.page, told.size(default_size(evidence).ok())) {
        (Some(page), _) if told.pages == 0 => format!("pages of {}", page.exact()),
        (Some(page), _) => format!("{} of {}", count(told.pages, "page", "pages"), page.exact()),
        (None, Some(page)) => format!("pages of {}, the default size", page.exact()),
        (None, None) => "pages of a pool".to_owned(),
    };
    let is_lacking = told.pages == 0 && told.page.is_some_and(|page| is_lacking(evidence, page));
    let room = match is_lacking {
        true => format!("this kernel has none of that size: it has those of {}", sizes(evidence)),
        false => format!("{room} can be had"),
    };
    format!("it is configured to take {asked}, and {room}")
}

/// Are there no pages of that size, and some of others?
fn is_lacking(evidence: &Evidence, page: Bytes) -> bool {
    evidence.snapshot.pool(page).is_none() && !sizes(evidence).is_empty()
}

/// The sizes that the machine has.
fn sizes(evidence: &Evidence) -> String {
    let pools = evidence.snapshot.pools.known().into_iter().flatten();
    let sizes: Vec<String> = pools.map(|pool| pool.size.exact()).collect();
    sizes.join(" and ")
}

/// It asks for pages of pools that have so much room, which is too little.
fn unmet(evidence: &Evidence, program: &Program, told: &Told, room: u64) -> Case {
    let (what, why) = (told.what, why_unmet(evidence, told, room));
    let case = Case::sure(format!("{what} of {} uses {}: {why}", program.title(), told.falls_to))
        .link(told.link)
        .seen(program.file(told.source), told.variable, &told.value)
        .with(options::line_of(evidence, told), |case, line| case.seen_line(&line))
        .seen(program.file("status"), "HugetlbPages", &program.pages.hugetlb)
        .seen_free(evidence);
    let page = told.page.or_else(|| default_size(evidence).ok());
    let case = match page {
        Some(page) => {
            let counted = told.page.is_some() && told.pages > 0;
            let more = told.pages.saturating_sub(room);
            let what = match counted {
                true => format!("{} of {}", count(more, "more page", "more pages"), page.exact()),
                false => format!("fill the pool of {}", page.exact()),
            };
            let text = format!("{what}{}", fill(evidence, page, counted.then_some(more)));
            let pages = told.least();
            // A request of a file counts after the reboot.
            let lowered = options::lowered(evidence, program, told);
            let texts = lowered.into_iter().chain([text]);
            texts
                .fold(case, |case, text| case.fix_with(Need::More(page, pages), text))
                .otherwise(without_room(evidence, page))
        }
        None => case.fix("fill the pool, then restart it"),
    };
    let is_only = told.page.is_some_and(|page| is_lacking(evidence, page));
    let instead = told.instead.map(|text| if is_only { alone(text) } else { text });
    let default = default_size(evidence).ok().filter(|_| is_only);
    case.with(instead, Case::fix).with(default, Case::wants)
}

/// Where the pool of that size cannot have the pages.
pub(super) fn without_room(evidence: &Evidence, page: Bytes) -> String {
    let (page, has) = match evidence.snapshot.pool(page) {
        Some(_) => return "ask for fewer: the machine has no room for such a pool".to_owned(),
        None => (page.exact(), sizes(evidence)),
    };
    match has.is_empty() {
        true => format!("leave it out: this machine has no pages of {page}"),
        false => format!("ask for another size: this machine has no pages of {page}, and has those of {has}"),
    }
}

/// With the name of another size that has room.
fn named(case: Case, told: &Told, rooms: &[(Bytes, u64)]) -> Case {
    let other = told.sizes.iter().find_map(|(name, size)| {
        let has_room = |(page, room): &&(Bytes, u64)| page == size && *room >= told.least();
        Some((name, rooms.iter().find(has_room)?))
    });
    case.with(other, |case, (name, (page, room))| {
        case.wants(*page).fix(format!(
            "or name the size that has pages: {}={name} ({room} can be had)",
            told.variable
        ))
    })
}

/// How a pool gets so many more pages, up to the end of the sentence. Those of 1G are made at boot, before memory is fragmented.
fn fill(evidence: &Evidence, page: Bytes, more: Option<u64>) -> String {
    let pool = evidence.snapshot.pool(page);
    let has = pool.and_then(|pool| pool.nr.known().copied()).unwrap_or(0);
    let pages = more.map_or_else(
        || "PAGES".to_owned(),
        |more| Count::of(page, has.saturating_add(more)).to_string(),
    );
    match pool.filter(|_| page < Bytes::gib(1)) {
        Some(pool) => format!(", then restart it: echo {pages} > {}", pool_file(pool, "nr_hugepages")),
        None => format!(": {}", boot_pages(evidence, page, pages)),
    }
}

pub(super) fn mid_size_gap(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    each_that_can(programs(evidence)?, |program| {
        let alone = tunable(program, "glibc.malloc.hugetlb")? == Some("1")
            && tunable(program, "glibc.malloc.mmap_threshold")?.is_none();
        if !alone || policy == "never" {
            return Ok(None);
        }
        let backing = known(&program.pages.backing)?;
        let (huge, base) = (backing.of(PageKind::Thp), backing.of(PageKind::Base));
        if base < Bytes::mib(64) || huge >= base {
            return Ok(None);
        }
        let share = backing.share(PageKind::Thp).unwrap_or(0.0) * 100.0;
        let case = Case::likely(format!("{share:.0} % of {} is backed by huge pages, {base} is not: blocks of 128 KiB to 2 MiB get none", program.title()))
            .seen(program.file("environ"), "GLIBC_TUNABLES: glibc.malloc.hugetlb", 1)
            .seen_backing(program, PageKind::Thp, huge)
            .seen_backing(program, PageKind::Base, base)
            .fix("GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad=67108864, then restart it")
            .fix("and check its page kinds again: hugewise ps PID");
        Ok(Some(case))
    })
}
