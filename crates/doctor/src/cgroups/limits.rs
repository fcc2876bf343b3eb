//! Control groups that limit hugetlb pages.

use std::collections::BTreeMap;
use std::iter;

use host::groups::too_low;
use host::snapshot::{CgroupVersion, Feature, Pool};
use model::{Bytes, Reading};
use programs::{Area, Details, Evidence, GroupLevel, Groups, HugetlbLimit, Jvm, JvmKind, Kind, Limit, Program};

use super::kubernetes::is_stale;
use crate::facts::{asks_for_other, container, count, each_looked_into, filled, known, pools, programs, running};
use crate::rule::answers::parts;
use crate::rule::{Answer, Case, Reason};

pub(super) fn limit(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    known(&evidence.snapshot.cgroup.root)?;
    let of_programs = each_looked_into(evidence, |program, _| {
        let Some(groups) = program.cgroup()? else {
            return Ok(None);
        };
        let case = |pool: &Pool| refused_or_too_low(evidence, program, groups, pool.size).transpose();
        pools.iter().find_map(case).transpose()
    });
    parts([of_programs, refused_by_groups(evidence)])
}

/// Its hugetlb memory of a page size, mapped or configured, and the file that shows it.
fn need(program: &Program, page: Bytes) -> Result<(Bytes, &'static str), Reason> {
    if let Some(jvm) = program.jvm()?
        && jvm.wants_hugetlb()
        && jvm.page_size.is_none_or(|size| size == page)
        && let Some(heap) = jvm.heap_max
    {
        return Ok((heap, "cmdline"));
    }
    let of_page = program.areas()?.iter().filter(|area| area.hugetlb_page() == Some(page));
    Ok((of_page.map(Area::size).sum(), "smaps"))
}

/// Is this program the only one of its group that asks for hugetlb pages?
fn asks_alone(evidence: &Evidence, program: &Program, groups: &Groups) -> Result<bool, Reason> {
    if !may_draw(program)? {
        return Ok(false);
    }
    let is_beside = |other: &&Program| {
        let own = other.cgroup().ok().flatten();
        other.pid() != program.pid() && own.is_some_and(|own| own.path == groups.path)
    };
    let mut others = running(evidence).filter(is_beside);
    Ok(!others.any(|other| may_draw(other).unwrap_or(true)))
}

fn refused_or_too_low(
    evidence: &Evidence,
    program: &Program,
    groups: &Groups,
    page: Bytes,
) -> Result<Option<Case>, Reason> {
    let limits: Vec<&HugetlbLimit> = groups.limits(page).collect();
    let Some((Limit::Bytes(max), tightest)) = tightest(&limits)? else {
        return Ok(None);
    };
    let need = need(program, page)?;
    let own = limits.iter().find(|limit| limit.is_of(groups));
    let refused = own.map_or(Ok(0), |own| own.refused.or_if_absent(0))?;
    if refused > 0 && asks_alone(evidence, program, groups)? {
        let case = Case::sure(format!(
            "{} was refused hugetlb pages {}: each is a SIGBUS, or a mapping that failed",
            program.title(),
            count(refused, "time", "times")
        ));
        let counter = own.map_or("", |own| own.counter.as_str());
        return Ok(Some(limited(
            program,
            tightest,
            need,
            case.seen(counter, field_of(counter), refused),
        )));
    }
    let (bytes, _) = need;
    if bytes.0 <= max {
        return Ok(None);
    }
    let case = Case::likely(format!(
        "{} needs {bytes} of hugetlb memory and its control group is limited to {}: touching more ends in SIGBUS",
        program.title(),
        Bytes(max)
    ));
    Ok(Some(limited(program, tightest, need, case)))
}

/// v2 counts in a line `max`, v1 in a file of its own.
fn field_of(counter: &str) -> &'static str {
    match counter.ends_with(".failcnt") {
        true => "",
        false => "max",
    }
}

/// The limit that holds, and what to do about it. A limit of 0 is meant, and is not written again.
fn limited(program: &Program, limit: &HugetlbLimit, (need, file): (Bytes, &str), case: Case) -> Case {
    let max = limit.max.known().copied().unwrap_or(Limit::Unlimited);
    let case = case.seen(&limit.file, "", max);
    let case = case.when(need.0 > 0, |case| {
        case.wants(limit.page).seen(program.file(file), "hugetlb needed", need)
    });
    let raise = need.round_up_to(limit.page);
    let can = is_of_pod(&limit.file) || Limit::Bytes(raise.0) > max;
    let or = if can { "or " } else { "" };
    case.when(can, |case| raised(case, &[&limit.file], limit.page, raise))
        .fix(format!("{or}let the program not ask for them: {}", switch(program)))
}

fn is_of_pod(file: &str) -> bool {
    file.contains("kubepods")
}

/// With a limit of one group, in these files, raised to so much, where it is set.
fn raised(case: Case, files: &[&str], page: Bytes, bytes: Bytes) -> Case {
    if files.iter().any(|file| is_of_pod(file)) {
        let page = page.exact();
        return case.fix(format!(
            "request hugepages-{page}i in the pod's resources: the kubelet sets the limit"
        ));
    }
    let echo = |case: Case, file: &&str| case.fix(format!("echo {} > {file}", bytes.0));
    files
        .iter()
        .fold(case, echo)
        .fix("and in what sets it: the options of the container's run-time, or the unit")
}

impl Case {
    /// With the limits of a program's control groups that so many pages are beyond: before they are raised no pool and no restart helps.
    pub(crate) fn raise_limits(self, program: &Program, page: Bytes, pages: u64) -> Self {
        let need = Bytes(page.0.saturating_mul(pages));
        let groups = program.cgroup().ok().flatten();
        let limits = groups.map_or_else(Vec::new, |groups| too_low(&groups.levels, page, need));
        limits.into_iter().fold(self, |case, limit| {
            let open = groups.and_then(|groups| open_beside(groups, &limit.file, need));
            let files: Vec<&str> = iter::once(limit.file.as_str()).chain(open).collect();
            raised(case.seen(&limit.file, "", limit.allows), &files, page, need)
        })
    }
}

/// The limit of reservations beside that of pages in use, if it allows more than so much: it is to be as that one, and not as that was.
fn open_beside<'a>(groups: &'a Groups, file: &str, need: Bytes) -> Option<&'a str> {
    let mut limits = groups.levels.iter().flat_map(|level| &level.hugetlb);
    let limit = limits.find(|limit| limit.file == file)?;
    let is_open = limit
        .reserved_max
        .known()
        .is_some_and(|max| *max > Limit::Bytes(need.0));
    is_open.then_some(&limit.reserved_file)
}

/// How a program is told not to ask.
fn switch(program: &Program) -> &'static str {
    let is_openj9 = |jvm: &Jvm| jvm.kind == JvmKind::OpenJ9;
    let kind = program.kind.known().copied().flatten();
    if let Some(server) = kind.and_then(Kind::server) {
        return server.off;
    }
    match kind {
        Some(Kind::Jvm) if program.jvm().ok().flatten().is_some_and(is_openj9) => "without -Xlp",
        Some(Kind::Jvm) => "-XX:-UseLargePages",
        _ => "its own option for huge pages",
    }
}

/// Groups that counted refusals of which no program is known to be the cause: it has ended, or several ask.
fn refused_by_groups(evidence: &Evidence) -> Answer {
    let mut own: BTreeMap<&str, (Refusals<'_>, bool)> = BTreeMap::new();
    for program in programs(evidence)? {
        let Ok(Some(groups)) = program.cgroup() else { continue };
        for level in groups.levels.iter().filter(|level| !is_stale(evidence, level)) {
            for limit in &level.hugetlb {
                // The sum over all groups below says nothing of the group itself.
                let counts = limit.is_of(groups) || limit.counter != limit.counter_below;
                let times = limit.refused.known().copied().filter(|&times| counts && times > 0);
                if let Some(times) = times {
                    let has_cause = limit.is_of(groups) && has_cause(evidence, level);
                    own.insert(&limit.counter, ((limit, &limit.counter, times), has_cause));
                }
            }
        }
    }
    let levels = evidence.refused_pods.iter();
    for limit in levels
        .filter(|level| !is_stale(evidence, level))
        .flat_map(|level| &level.hugetlb)
    {
        if let Some(&times @ 1..) = limit.refused.known() {
            own.entry(&limit.counter)
                .or_insert(((limit, &limit.counter, times), false));
        }
    }
    let of_pods = pods_that_ended(evidence, &own);
    let unexplained = own.into_values().filter(|(_, has_cause)| !has_cause);
    let unexplained = unexplained.map(|(refusals, _)| refusals);
    Ok(unexplained.chain(of_pods).take(4).map(unexplained_case).collect())
}

/// What a group counted: at which limit, in which file, how many times.
type Refusals<'e> = (&'e HugetlbLimit, &'e str, u64);

fn unexplained_case((limit, counter, times): Refusals<'_>) -> Case {
    let group = limit.file.rsplit_once('/').map_or("", |(group, _)| group);
    Case::likely(format!(
        "a program of the control group {group} was refused hugetlb pages {}: it has ended (SIGBUS), or is one of several that may ask",
        count(times, "time", "times")
    ))
    .seen(counter, field_of(counter), times)
    .seen(&limit.file, "", &limit.max)
    .fix("find what was restarted since (kubectl get pods -A, journalctl): request the pages for it, or let it not ask for them")
}

/// What all pods together were refused, beyond what the groups that are there now count.
fn pods_that_ended<'e>(evidence: &'e Evidence, own: &BTreeMap<&str, (Refusals<'e>, bool)>) -> Vec<Refusals<'e>> {
    let mut ended: Vec<Refusals<'e>> = Vec::new();
    for level in evidence.pods.iter().filter(|level| !is_stale(evidence, level)) {
        for limit in &level.hugetlb {
            let Some(&all) = limit.refused_below.known() else {
                continue;
            };
            let counts = own.values().map(|(counts, _)| counts);
            let below =
                counts.filter(|(own, counter, _)| own.page == limit.page && counter.starts_with(&level.directory));
            let counted = below.map(|(.., times)| *times).fold(0, u64::saturating_add);
            if all > counted {
                ended.push((limit, &limit.counter_below, all - counted));
            }
        }
    }
    ended
}

/// Is a program of that group reported as the one that was refused?
fn has_cause(evidence: &Evidence, level: &GroupLevel) -> bool {
    let mut members = running(evidence).filter_map(|program| Some((program, program.cgroup().ok()??)));
    members.any(|(program, groups)| {
        let own = groups
            .levels
            .first()
            .is_some_and(|own| own.directory == level.directory);
        own && asks_alone(evidence, program, groups).unwrap_or(false)
    })
}

pub(super) fn reservation(evidence: &Evidence) -> Answer {
    let filled = filled(evidence)?;
    if filled.is_empty() {
        return Ok(Vec::new());
    }
    known(&evidence.snapshot.cgroup.root)?;
    each_looked_into(evidence, |program, _| {
        let Some(groups) = program.cgroup()?.filter(|groups| groups.is_container) else {
            return Ok(None);
        };
        if !may_draw(program)? {
            return Ok(None);
        }
        for pool in filled.iter().filter(|pool| !asks_for_other(program, pool.size)) {
            let limits: Vec<&HugetlbLimit> = groups.limits(pool.size).collect();
            if let Some(limit) = open_above(&limits)?
                && !is_settled(program, limit)?
            {
                return Ok(Some(open_case(evidence, program, limit)?));
            }
        }
        Ok(None)
    })
}

/// The limit that holds: the least of all levels.
fn tightest<'a>(limits: &[&'a HugetlbLimit]) -> Result<Option<(Limit, &'a HugetlbLimit)>, Reason> {
    let all = limits.iter().map(|limit| Ok((*known(&limit.max)?, *limit)));
    let all = all.collect::<Result<Vec<_>, Reason>>()?;
    Ok(all.into_iter().min_by_key(|(max, _)| *max))
}

/// The tightest limit, if more than that can be reserved: the tightest of all levels holds, for each of the two.
fn open_above<'a>(limits: &[&'a HugetlbLimit]) -> Result<Option<&'a HugetlbLimit>, Reason> {
    let Some((max, tightest)) = tightest(limits)? else {
        return Ok(None);
    };
    // Before Linux 5.7 there was no limit of reservations.
    let reserved = limits.iter().filter_map(|limit| limit.reserved_max.known());
    let reserved = reserved.min().copied().unwrap_or(Limit::Unlimited);
    Ok((max < Limit::Unlimited && reserved > max).then_some(tightest))
}

/// On a kernel without limits of reservations: does all fit that the program has mapped, or is to map?
fn is_settled(program: &Program, limit: &HugetlbLimit) -> Result<bool, Reason> {
    if limit.reserved_max.known().is_some() {
        return Ok(false);
    }
    let (asked, _) = need(program, limit.page)?;
    Ok(asked.0 > 0 && *known(&limit.max)? >= Limit::Bytes(asked.0))
}

/// Does it use hugetlb pages, or try to?
fn may_draw(program: &Program) -> Result<bool, Reason> {
    if program.hugetlb()?.0 > 0 {
        return Ok(true);
    }
    let off = || program.details.as_ref().is_some_and(Details::is_off);
    Ok(match known(&program.kind)? {
        Some(Kind::Postgres) => !off(),
        Some(Kind::Jvm) => program
            .jvm()?
            .is_some_and(|jvm| jvm.wants_hugetlb() || jvm.kind == JvmKind::OpenJ9),
        _ => false,
    })
}

fn open_case(evidence: &Evidence, program: &Program, limit: &HugetlbLimit) -> Result<Case, Reason> {
    let (max, page) = (*known(&limit.max)?, limit.page.exact());
    let has_file = limit.reserved_max.known().is_some();
    let case = Case::sure(format!(
        "{} can reserve more pages of {page} than the {max} that it may touch: a touch beyond that ends in SIGBUS instead of a fallback",
        program.title()
    ))
    .seen(&limit.file, "", max);
    let case = match &limit.reserved_max {
        Reading::Known(reserved) => case.seen(&limit.reserved_file, "", reserved),
        Reading::Unread(_) => case.seen("/proc/sys/kernel/osrelease", "", &evidence.snapshot.kernel.release),
    };
    let is_old = evidence.snapshot.kernel.has(Feature::ReservationLimits) == Some(false);
    Ok(case
        .fix_if(
            has_file,
            "update the container run-time to one that sets rsvd limits (runc, containerd, Incus: see the link)",
        )
        .fix_if(
            has_file,
            format!("until then: cat {} > {}", limit.file, limit.reserved_file),
        )
        .fix_if(
            is_old && !has_file,
            format!(
                "request the pages for it (hugepages-{page}i in a pod): Linux before 5.7 has no limit of reservations"
            ),
        )
        .fix(format!("or let the program not try: {}", switch(program))))
}

pub(super) fn no_controller(evidence: &Evidence) -> Answer {
    if *known(&evidence.snapshot.cgroup.hugetlb)? {
        return Ok(Vec::new());
    }
    let filled = filled(evidence)?;
    let mut all = programs(evidence)?.iter();
    let contained = all.find_map(|program| Some((program, container(program)?)));
    let Some((program, groups)) = contained.filter(|_| !filled.is_empty()) else {
        return Ok(Vec::new());
    };
    let cgroup = &evidence.snapshot.cgroup;
    let is_v1 = cgroup.version.known() == Some(&CgroupVersion::V1);
    let (file, fix) = match &cgroup.root {
        Reading::Known(root) if !is_v1 => (
            format!("{root}/cgroup.controllers"),
            "it needs a kernel with CONFIG_CGROUP_HUGETLB, and no cgroup_disable=hugetlb on its command line",
        ),
        _ => (
            "/proc/self/mounts".to_owned(),
            "mkdir -p /sys/fs/cgroup/hugetlb && mount -t cgroup -o hugetlb none /sys/fs/cgroup/hugetlb, if the kernel has the controller (CONFIG_CGROUP_HUGETLB)",
        ),
    };
    let case = Case::sure("any container can take all pages of the pools: hugetlb pages cannot be limited here")
        .seen(file, "hugetlb", "not there")
        .seen(program.file("cgroup"), "", &groups.path)
        .fix(fix);
    Ok(vec![case])
}
