//! Transparent huge pages as the files of services and pods ask for them.

use model::Bytes;
use model::findings::Severity;
use programs::config::{Boot, Setting};
use programs::{Evidence, in_list};

use super::advice::by_advice_alone;
use super::drift::conflicting;
use super::glibc::without_room;
use super::in_vain::has_thp;
use super::options;
use super::refusing::meant;
use super::sizes::dropped_in_files;
use super::told::{Told, alone, told, told_dotnet};
use crate::demand::Room;
use crate::facts::{any_size, distribution};
use crate::remedy::Need;
use crate::rule::{Answer, Case};

pub(super) fn conflict(evidence: &Evidence) -> Answer {
    let mut cases = conflicting(&evidence.files.policies);
    cases.extend(dropped_in_files(evidence));
    Ok(cases)
}

/// Allocators that advise their memory, under a policy that no advice changes.
pub(super) fn never_but_requested(evidence: &Evidence) -> Answer {
    let mut asking = evidence
        .files
        .environment()
        .filter(|line| asks_for_thp(line))
        .peekable();
    if asking.peek().is_none() {
        return Ok(Vec::new());
    }
    let (place, policy) = meant(evidence)?;
    let has_sizes = match evidence.has_machine {
        true => any_size(evidence)?,
        false => evidence.files.boot.iter().any(|line| !line.boot.thp_sizes.is_empty()),
    };
    if policy != "never" || has_sizes {
        return Ok(Vec::new());
    }
    let cases = asking.map(|line| {
        let case =
            Case::likely("malloc requests THP and will use base pages: the THP policy is `never`").seen_line(line);
        let case = case.seen(&place, "THP policy", &policy);
        let case = match evidence.has_machine {
            true => case.madvise(),
            false => case.fix(format!("`madvise` in place of `never` in {place}")),
        };
        case.fix(format!("or leave that out of {}", line.name)).fix_if(
            line.name == "MALLOC_CONF",
            "a jemalloc that is built with a prefix does not read it (that of Redis's own source: JE_MALLOC_CONF)",
        )
    });
    Ok(cases.collect())
}

/// Does a variable have glibc's malloc or jemalloc advise all of its memory?
fn asks_for_thp(line: &Setting) -> bool {
    match &*line.name {
        "GLIBC_TUNABLES" => in_list(&line.value, HUGETLB) == Some("1"),
        "MALLOC_CONF" | "JE_MALLOC_CONF" | "_RJEM_MALLOC_CONF" => has_thp(&line.value),
        _ => false,
    }
}

pub(super) fn except_advised(evidence: &Evidence) -> Answer {
    let cases = evidence.files.services.iter().filter_map(|service| {
        let (value, place) = service.unit.thp.as_ref().filter(|(value, _)| value == "madvise")?;
        Some(by_advice_alone(Case::sure, &service.name, &service.name, value, place))
    });
    Ok(cases.collect())
}

const HUGETLB: &str = "glibc.malloc.hugetlb";

pub(super) fn empty_pool(evidence: &Evidence) -> Answer {
    let all: Vec<&Setting> = evidence.files.environment().collect();
    let options = options::in_files(evidence);
    let mut asking = by_variables(&all, |get| told(get));
    asking.extend(options.iter().map(|(line, told)| (line, told.clone())));
    let of_dotnet = by_variables(&all, |get| told_dotnet(get));
    let is_limited = |line: &Setting| {
        all.iter().any(|set| set.name.contains("GCHeapHardLimit")) || evidence.files.limits_memory(line)
    };
    let open = of_dotnet.iter().filter(|(line, _)| !is_limited(line));
    let mut cases: Vec<Case> = open.map(|(line, told)| without_limit(line, told)).collect();
    if asking.is_empty() && cases.len() == of_dotnet.len() {
        return Ok(cases);
    }
    let room = Room::of(evidence)?;
    let is_short = |told: &Told| match told.size(Some(room.default)) {
        Some(page) => room.pages(page) < told.least(),
        None => room.filled().next().is_none(),
    };
    let is_short = |told: &Told| is_short(told) && !told.has_always(evidence);
    let why = "it is configured to use a pool, and none has the pages";
    let of_malloc = asking
        .iter()
        .map(|asked| (asked, format!("{} will use {}: {why}", asked.1.what, asked.1.falls_to)));
    let of_dotnet = of_dotnet.iter().filter(|(line, _)| is_limited(line));
    let of_dotnet = of_dotnet.map(|asked| (asked, format!("the program does not start: {why}")));
    let short = of_malloc.chain(of_dotnet).filter(|((_, told), _)| is_short(told));
    cases.extend(short.map(|((line, told), what)| unfilled(evidence, line, told, what, room.default)));
    Ok(cases)
}

/// A program that asks for pages, where no pool has them.
fn unfilled(evidence: &Evidence, line: &Setting, told: &Told, what: String, default: Bytes) -> Case {
    let counted = match told.pages {
        0 => "PAGES".to_owned(),
        pages => pages.to_string(),
    };
    let fill = match told.page {
        Some(page) => format!(
            "hugepagesz={} hugepages={counted} on the boot command line",
            page.exact()
        ),
        None if evidence.config.is_sysctl_unread => distribution(evidence).keep_setting("vm.nr_hugepages", "PAGES"),
        None => "vm.nr_hugepages in /etc/sysctl.d".to_owned(),
    };
    let page = told.page.unwrap_or(default);
    let exists = Boot::SIZES.contains(&page);
    let instead = told.instead.map(|text| if exists { text } else { alone(text) });
    Case::sure(what)
        .link(told.link)
        .seen(&line.place, told.variable, &told.value)
        .when(exists, |case| {
            case.fix_with(Need::More(page, told.least()), format!("fill the pool: {fill}"))
        })
        .otherwise(without_room(evidence, page))
        .with(instead, Case::fix)
}

/// Lines whose variables ask for pages of a pool, with what they say.
fn by_variables<'a>(
    all: &[&'a Setting],
    told: impl Fn(&dyn Fn(&str) -> Option<&'a str>) -> Option<Told>,
) -> Vec<(&'a Setting, Told)> {
    let asking = |line: &&'a Setting| {
        let line = *line;
        let told = told(&|name| (line.name == name).then_some(line.value.as_str()))?;
        Some((line, told))
    };
    all.iter().filter_map(asking).collect()
}

/// .NET refuses large pages without a limit of its heap (CLR_E_GC_LARGE_PAGE_MISSING_HARD_LIMIT of gc.cpp).
fn without_limit(line: &Setting, told: &Told) -> Case {
    Case::likely(
        "the program does not start unless its runtimeconfig.json, or a memory limit around it, limits the heap",
    )
    .link(told.link)
    .seen(&line.place, told.variable, &told.value)
    .seen(&line.place, "GCHeapHardLimit", "not set")
    .fix("set DOTNET_GCHeapHardLimit (in hexadecimal bytes) too, with a pool that holds as much")
    .with(told.instead, Case::fix)
}

pub(super) fn mid_size_gap(evidence: &Evidence) -> Answer {
    let is_alone = |line: &&Setting| {
        let is_set = line.name == "GLIBC_TUNABLES" && in_list(&line.value, HUGETLB) == Some("1");
        is_set && in_list(&line.value, "glibc.malloc.mmap_threshold").is_none()
    };
    let cases = evidence.files.environment().filter(is_alone).map(|line| {
        Case::hint("blocks of 128 KiB to 2 MiB will be backed by base pages: each gets a mapping of its own")
            .severity(Severity::Info)
            .seen_line(line)
            .fix("add :glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad=67108864, and check its page kinds: hugewise ps PID")
    });
    Ok(cases.collect())
}

pub(super) fn morecore(evidence: &Evidence) -> Answer {
    let is_asked = |line: &&Setting| line.name == "HUGETLB_MORECORE" && line.value != "no";
    let is_loaded = |line: &&Setting| line.name == "LD_PRELOAD" && line.value.contains("libhugetlbfs");
    let after = match evidence.files.pods.is_empty() {
        true => "",
        false => ", once the pod requests the pages: without a request it ends with SIGBUS",
    };
    // One fault, whether the library is loaded by a variable too or by the linker.
    let asked = evidence.files.environment().filter(is_asked).count();
    let dead = |line: &&Setting| is_asked(line) || (asked == 0 && is_loaded(line));
    let cases = evidence.files.environment().filter(dead).map(|line| {
        Case::likely("malloc uses base pages with glibc 2.34 and later, which have no __morecore")
            .seen_line(line)
            .fix(format!(
                "with glibc 2.35 and later: GLIBC_TUNABLES={HUGETLB}=2 instead{after}"
            ))
    });
    Ok(cases.collect())
}
