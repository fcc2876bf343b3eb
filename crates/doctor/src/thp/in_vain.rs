//! Variables for huge pages that have no effect.

use model::findings::Severity;
use model::{Bytes, PageKind};
use programs::{Area, Evidence, Kind, Program};

use crate::facts::{counted_areas, default_size, known, policy, pools, programs};
use crate::pools::uses_malloc;
use crate::rule::answers::each_that_can;
use crate::rule::{Answer, Case, Reason};

pub(super) fn in_vain(evidence: &Evidence) -> Answer {
    each_that_can(programs(evidence)?, |program| {
        if let Some(case) = morecore(evidence, program)? {
            return Ok(Some(case));
        }
        match no_such_size(evidence, program)? {
            Some(case) => Ok(Some(case)),
            None => unread_conf(evidence, program),
        }
    })
}

/// libhugetlbfs warns of a page size that the kernel has not, and leaves malloc on base pages.
pub(crate) fn no_such_size(evidence: &Evidence, program: &Program) -> Result<Option<Case>, Reason> {
    const NAMES: [&str; 2] = ["HUGETLB_DEFAULT_PAGE_SIZE", "HUGETLB_MORECORE"];
    let set = |name: &'static str| Some((name, program.tunable(name).ok().flatten()?));
    if program.tunable(NAMES[0])?.is_none() && set(NAMES[1]).is_none() {
        return Ok(None);
    }
    let has_library = program
        .areas()?
        .iter()
        .any(|area| area.name.contains("/libhugetlbfs.so"));
    let sizes: Vec<Bytes> = pools(evidence)?.iter().map(|pool| pool.size).collect();
    // HUGETLB_MORECORE may be `yes` too.
    let is_lacking = |value: &str| {
        let size = value.parse::<Bytes>().ok();
        size.is_some_and(|size| size >= Bytes::kib(64) && !sizes.contains(&size))
    };
    let mut asked = NAMES.into_iter().filter_map(set);
    let asked = asked.find(|&(_, value)| is_lacking(value));
    let Some((name, value)) = asked.filter(|_| has_library) else {
        return Ok(None);
    };
    if program.hugetlb()?.0 > 0 {
        return Ok(None);
    }
    let page = default_size(evidence)?;
    let sizes: Vec<String> = sizes.iter().map(|size| size.exact()).collect();
    Ok(Some(
        Case::sure(format!(
            "{} uses base pages: {name} is {value}, and this kernel has huge pages of {}",
            program.title(),
            sizes.join(" and ")
        ))
        .wants(page)
        .link(Some("https://github.com/libhugetlbfs/libhugetlbfs/blob/master/HOWTO"))
        .seen(program.file("environ"), name, value)
        .seen(program.file("status"), "HugetlbPages", &program.pages.hugetlb)
        .fix(format!(
            "{name}={}, or without it (Cray's modules craype-hugepages8M and their like set it), then restart it",
            page.exact()
        )),
    ))
}

/// glibc 2.34 took __morecore away.
fn morecore(evidence: &Evidence, program: &Program) -> Result<Option<Case>, Reason> {
    let set = |name: &'static str| Ok::<_, Reason>(program.tunable(name)?.map(|value| (name, value)));
    let variable = set("HUGETLB_MORECORE")?.filter(|(_, value)| *value != "no");
    let preload = set("LD_PRELOAD")?.filter(|(_, value)| value.contains("libhugetlbfs"));
    let Some((name, value)) = variable.or(preload) else {
        return Ok(None);
    };
    if program.hugetlb()?.0 > 0 {
        return Ok(None);
    }
    let Some(details) = &program.details else {
        return Ok(None);
    };
    let version = *known(&details.glibc)?;
    if version < (2, 34) {
        return Ok(None);
    }
    let page = default_size(evidence).unwrap_or(Bytes::mib(2));
    let case = Case::sure(format!(
        "{} uses base pages: {name} has had no effect since glibc 2.34, and no message reports it",
        program.title()
    ))
    .wants(page)
    .seen(program.file("environ"), name, value)
    .seen(program.file("maps"), "glibc", format!("{}.{}", version.0, version.1))
    .seen(program.file("status"), "HugetlbPages", &program.pages.hugetlb)
    .fix(format!(
        "unset {name}, and start it with GLIBC_TUNABLES=glibc.malloc.hugetlb=2 (pool) or =1 (THP)"
    ));
    Ok(Some(case))
}

/// Do options of jemalloc have it advise its memory?
pub(super) fn has_thp(options: &str) -> bool {
    options.split(',').any(|option| option.trim() == "thp:always")
}

/// jemalloc with `thp:always` advises all of its memory. Where none is advised, nothing read the variable: a build with a prefix has one of its own.
pub(crate) fn unread_conf(evidence: &Evidence, program: &Program) -> Result<Option<Case>, Reason> {
    const NAME: &str = "MALLOC_CONF";
    const WORTH: Bytes = Bytes::mib(64);
    let Some(value) = program.tunable(NAME)?.filter(|value| has_thp(value)) else {
        return Ok(None);
    };
    // A heap of Java is not malloc's.
    if policy(evidence)? != "madvise" || program.is(Kind::Jvm)? || !uses_malloc(program) {
        return Ok(None);
    }
    let base: Bytes = counted_areas(program)?
        .iter()
        .filter(|area| area.is_private_data())
        .filter_map(Area::base)
        .sum();
    // All processes of a container inherit its variables: it is meant for one of them, most likely the largest.
    let all = programs(evidence)?.iter();
    let with_it: Vec<&Program> = all.filter(|other| other.tunable(NAME) == Ok(Some(value))).collect();
    let size = |program: &Program| program.pages.rss.known().copied();
    let has_larger = with_it
        .iter()
        .any(|other| (size(other), other.pid()) > (size(program), program.pid()));
    if base < WORTH || has_larger || with_it.iter().any(|other| reads_conf(other)) {
        return Ok(None);
    }
    Ok(Some(
        Case::likely(format!(
            "{base} of {} is backed by base pages and none of it is advised: no allocator of it reads {NAME}",
            program.title()
        ))
        .severity(Severity::Warning)
        .link(Some("https://github.com/tikv/jemallocator/issues/65"))
        .seen(program.file("environ"), NAME, value)
        .seen(program.file("smaps"), "VmFlags: hg", "none")
        .seen_backing(program, PageKind::Base, base)
        .fix("a jemalloc that is built with a prefix has a variable of its own: _RJEM_MALLOC_CONF for that of Rust (tikv-jemallocator); then restart it")
        .fix("if it has no jemalloc: LD_PRELOAD=libjemalloc.so.2"),
    ))
}

/// Does it have jemalloc's library, or memory that is or may be advised?
fn reads_conf(program: &Program) -> bool {
    let mut areas = program.areas().into_iter().flatten();
    areas.any(|area| area.name.contains("/libjemalloc") || area.has("hg") != Some(false))
}
