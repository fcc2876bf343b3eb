//! Services and the environment of programs: limits, transparent pages, tunables.

use host::config::given::FileKind;
use host::config::{Setting, memlock_for};
use model::findings::Severity;

use super::demand::Room;
use super::{Check, Scope};
use crate::rule::{Answer, Case};
use crate::thp::drift::conflicting;
use crate::thp::glibc::in_list;

const STARTERS: &[FileKind] = &[FileKind::Unit, FileKind::Pod];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "B03",
        of: &[FileKind::Limits],
        look: not_for_services,
    },
    Check {
        id: "D12",
        of: &[FileKind::Unit],
        look: except_advised,
    },
    Check {
        id: "D15",
        of: STARTERS,
        look: empty_pool,
    },
    Check {
        id: "D16",
        of: STARTERS,
        look: mid_size_gap,
    },
    Check {
        id: "D18",
        of: STARTERS,
        look: morecore,
    },
    Check {
        id: "D22",
        of: &[FileKind::Cmdline, FileKind::Unit],
        look: |scope| Ok(conflicting(&scope.given.policies)),
    },
];

fn not_for_services(scope: &Scope<'_>) -> Answer {
    if !scope.given.has(FileKind::Unit) {
        return Err("no file of that kind was given: unit".into());
    }
    let services = scope
        .given
        .services
        .iter()
        .filter(|service| service.unit.memlock.is_none());
    let cases = services.filter_map(|service| {
        let user = service.user.as_ref()?;
        let (promised, line) = memlock_for(&scope.given.limits, &user.value, &[])?;
        let severity = if line.domain == "*" { Severity::Info } else { Severity::Warning };
        Some(
            Case::sure(format!(
                "{} does not get the {promised} of locked memory that limits.conf gives {}: that file is for logins, not for services",
                service.name, user.value
            ))
            .severity(severity)
            .seen(&line.place, format!("{} {} memlock", line.domain, line.kind), &line.value)
            .seen(&user.place, "User", &user.value)
            .seen(&service.path, "LimitMEMLOCK", "not set")
            .fix(format!("systemctl edit {}, and there: [Service] LimitMEMLOCK=infinity", service.name)),
        )
    });
    Ok(cases.collect())
}

fn except_advised(scope: &Scope<'_>) -> Answer {
    let cases = scope.given.services.iter().filter_map(|service| {
        let (value, place) = service.unit.thp.as_ref().filter(|(value, _)| value == "madvise")?;
        Some(
            Case::sure(format!(
                "{} will have transparent pages only where it asks for them, which no file of /proc shows",
                service.name
            ))
            .seen(place, "MemoryTHP", value)
            .fix("if it should have them everywhere: MemoryTHP=inherit"),
        )
    });
    Ok(cases.collect())
}

/// Lines of GLIBC_TUNABLES with the value of one tunable.
fn tunables<'a>(scope: &Scope<'a>, name: &'a str) -> impl Iterator<Item = (&'a Setting, &'a str)> {
    let lines = scope.given.environment().filter(|line| line.name == "GLIBC_TUNABLES");
    lines.filter_map(move |line| Some((line, in_list(&line.value, name)?)))
}

const HUGETLB: &str = "glibc.malloc.hugetlb";

fn empty_pool(scope: &Scope<'_>) -> Answer {
    let asking: Vec<_> = tunables(scope, HUGETLB)
        .filter(|(_, value)| value.parse::<u64>().is_ok_and(|value| value >= 2))
        .collect();
    if asking.is_empty() {
        return Ok(Vec::new());
    }
    let room = Room::of(scope)?;
    if room.filled().next().is_some() {
        return Ok(Vec::new());
    }
    let cases = asking.into_iter().map(|(line, value)| {
        Case::sure("malloc will take base pages: it is told to use a pool, and none has pages")
            .seen(&line.place, format!("GLIBC_TUNABLES: {HUGETLB}"), value)
            .fix("set pages aside: vm.nr_hugepages in /etc/sysctl.d")
            .fix(format!("or use transparent pages: GLIBC_TUNABLES={HUGETLB}=1"))
    });
    Ok(cases.collect())
}

fn mid_size_gap(scope: &Scope<'_>) -> Answer {
    let alone = |line: &Setting| in_list(&line.value, "glibc.malloc.mmap_threshold").is_none();
    let cases = tunables(scope, HUGETLB)
        .filter(|(line, value)| *value == "1" && alone(line))
        .map(|(line, _)| {
            Case::hint("blocks of 128 KiB to 2 MiB will stay on base pages: each gets a mapping of its own")
                .severity(Severity::Info)
                .seen(&line.place, "GLIBC_TUNABLES", &line.value)
                .fix("add :glibc.malloc.mmap_threshold=1073741824:glibc.malloc.top_pad=67108864, and look at its pages")
        });
    Ok(cases.collect())
}

fn morecore(scope: &Scope<'_>) -> Answer {
    let dead = |line: &&Setting| match line.name.as_str() {
        "HUGETLB_MORECORE" => line.value != "no",
        "LD_PRELOAD" => line.value.contains("libhugetlbfs"),
        _ => false,
    };
    let cases = scope.given.environment().filter(dead).map(|line| {
        Case::likely("malloc stays on base pages with glibc 2.34 and later, which have no __morecore")
            .seen(&line.place, &line.name, &line.value)
            .fix(format!("with glibc 2.35 and later: GLIBC_TUNABLES={HUGETLB}=2 instead"))
    });
    Ok(cases.collect())
}
