//! Transparent huge pages as the files of services and pods ask for them.

use model::findings::Severity;
use programs::Evidence;
use programs::config::Setting;
use programs::config::given::FileKind;

use super::drift::conflicting;
use super::glibc::{Told, in_list, told};
use super::sizes::dropped_in_files;
use crate::demand::Room;
use crate::rule::{Answer, Case};

pub(super) const STARTERS: &[FileKind] = &[FileKind::Unit, FileKind::Pod, FileKind::Compose];

pub(super) fn conflict(evidence: &Evidence) -> Answer {
    let mut cases = conflicting(&evidence.files.policies);
    cases.extend(dropped_in_files(evidence));
    Ok(cases)
}

pub(super) fn except_advised(evidence: &Evidence) -> Answer {
    let cases = evidence.files.services.iter().filter_map(|service| {
        let (value, place) = service.unit.thp.as_ref().filter(|(value, _)| value == "madvise")?;
        Some(
            Case::sure(format!(
                "{} will get THP only for memory that it advises, which no file of /proc shows",
                service.name
            ))
            .seen(place, "MemoryTHP", value)
            .fix("if it should get THP everywhere: MemoryTHP=inherit"),
        )
    });
    Ok(cases.collect())
}

/// Lines of GLIBC_TUNABLES with the value of one tunable.
fn tunables<'a>(evidence: &'a Evidence, name: &'a str) -> impl Iterator<Item = (&'a Setting, &'a str)> {
    let lines = evidence
        .files
        .environment()
        .filter(|line| line.name == "GLIBC_TUNABLES");
    lines.filter_map(move |line| Some((line, in_list(&line.value, name)?)))
}

const HUGETLB: &str = "glibc.malloc.hugetlb";

pub(super) fn empty_pool(evidence: &Evidence) -> Answer {
    let all = || evidence.files.environment();
    let asking: Vec<(&Setting, Told)> = all()
        .filter_map(|line| {
            // The limit of a heap may stand on another line.
            let is_its = |set: &&Setting, name: &str| {
                set.name == name && (set.place == line.place || name.ends_with("HeapHardLimit"))
            };
            let told = told(|name| Some(all().find(|set| is_its(set, name))?.value.as_str()))?;
            told.variable.starts_with(&line.name).then_some((line, told))
        })
        .collect();
    let case = |line: &Setting, told: &Told, why: &str| {
        Case::sure(format!("{} will use base pages: {why}", told.what)).seen(&line.place, told.variable, &told.value)
    };
    let instead = |told: &Told| format!("or use THP: {}", told.instead);
    let incomplete = asking.iter().filter_map(|(line, told)| {
        let other = told.lacks?;
        let why = format!("{} needs {other}, without which .NET 6 and later do not start outside of containers with a limit of memory", told.variable);
        Some(case(line, told, &why).fix(format!("set {other} (in hexadecimal bytes) too")).fix(instead(told)))
    });
    let mut cases: Vec<Case> = incomplete.collect();
    if cases.len() == asking.len() {
        return Ok(cases);
    }
    let room = Room::of(evidence)?;
    let is_short = |told: &Told| match told.page {
        Some(page) => room.pages(page) < told.pages,
        None => room.filled().next().is_none(),
    };
    let complete = asking.iter().filter(|(_, told)| told.lacks.is_none() && is_short(told));
    cases.extend(complete.map(|(line, told)| {
        let fill = match told.page {
            Some(page) => format!(
                "hugepagesz={} hugepages={} on the boot command line",
                page.exact(),
                told.pages
            ),
            None => "vm.nr_hugepages in /etc/sysctl.d".to_owned(),
        };
        case(line, told, "it is configured to use a pool, and none has the pages")
            .fix(format!("fill the pool: {fill}"))
            .fix(instead(told))
    }));
    Ok(cases)
}

pub(super) fn mid_size_gap(evidence: &Evidence) -> Answer {
    let alone = |line: &Setting| in_list(&line.value, "glibc.malloc.mmap_threshold").is_none();
    let cases = tunables(evidence, HUGETLB)
        .filter(|(line, value)| *value == "1" && alone(line))
        .map(|(line, _)| {
            Case::hint("blocks of 128 KiB to 2 MiB will be backed by base pages: each gets a mapping of its own")
                .severity(Severity::Info)
                .seen(&line.place, "GLIBC_TUNABLES", &line.value)
                .fix("add :glibc.malloc.mmap_threshold=1073741824:glibc.malloc.top_pad=67108864, and check its page kinds: hugewise ps PID")
        });
    Ok(cases.collect())
}

pub(super) fn morecore(evidence: &Evidence) -> Answer {
    let dead = |line: &&Setting| match line.name.as_str() {
        "HUGETLB_MORECORE" => line.value != "no",
        "LD_PRELOAD" => line.value.contains("libhugetlbfs"),
        _ => false,
    };
    let cases = evidence.files.environment().filter(dead).map(|line| {
        Case::likely("malloc uses base pages with glibc 2.34 and later, which have no __morecore")
            .seen(&line.place, &line.name, &line.value)
            .fix(format!("with glibc 2.35 and later: GLIBC_TUNABLES={HUGETLB}=2 instead"))
    });
    Ok(cases.collect())
}
