//! System V segments of huge pages, as files limit them.

use host::snapshot::Feature;
use model::Bytes;
use model::findings::Severity;
use programs::config::{Instance, Parameters, memlock_for};
use programs::{Evidence, Limit};

use super::memlock::by_login;
use crate::demand::{Room, make_no_segments};
use crate::facts::{default_page, has, known, running};
use crate::rule::answers::parts;
use crate::rule::{Answer, Case};

pub(super) fn too_small(evidence: &Evidence) -> Answer {
    let page = match evidence.has_machine {
        true => *known(&evidence.snapshot.kernel.base_page)?,
        false => Bytes::kib(4),
    };
    let all = evidence.files.sysctl.number("kernel.shmall")?;
    let by_sga = all.and_then(|(pages, line)| {
        let (case, need) = beyond(evidence, pages, page)?;
        let least = need.0.div_ceil(page.0);
        Some(case.seen_line(line).fix(format!(
            "remove {0}: the kernel's default has been practically unlimited since Linux 3.16; before, {0} = {least} or more",
            line.name
        )))
    });
    let limits = match by_sga {
        Some(_) => &[("kernel.shmmax", 1)][..],
        None => &[("kernel.shmmax", 1), ("kernel.shmall", page.0)],
    };
    parts([Ok(by_sga.into_iter().collect()), below_pool(evidence, limits)])
}

/// Limits, each with its unit, that are smaller than the pool.
fn below_pool(evidence: &Evidence, limits: &[(&str, u64)]) -> Answer {
    let room = Room::of(evidence)?;
    let pool = Bytes(room.pages(room.default).saturating_mul(room.default.0));
    let mut cases = Vec::new();
    for (name, unit) in limits {
        let Some((limit, line)) = evidence.files.sysctl.number(name)? else {
            continue;
        };
        let bytes = Bytes(limit.saturating_mul(*unit));
        if bytes < pool && !make_no_segments(evidence, &room) {
            cases.push(
                Case::likely(format!(
                    "System V segments cannot use the pool of {pool}: {name} allows {bytes}"
                ))
                .severity(Severity::Warning)
                .seen(&line.place, *name, limit)
                .fix(format!(
                    "remove {name}: the kernel's default has been practically unlimited since Linux 3.16"
                )),
            );
        }
    }
    Ok(cases)
}

/// The instance whose SGA is more than the limit of all segments allows, and its SGA: shmget() fails with ENOSPC, on huge pages too.
/// Whether several run together no file says: one may be a copy, or another node's.
pub(super) fn beyond(evidence: &Evidence, pages: u64, page: Bytes) -> Option<(Case, Bytes)> {
    let limit = Bytes(pages.saturating_mul(page.0));
    let all = to_start(evidence).into_iter();
    let (own, instance) = all.max_by_key(|(_, instance)| instance.in_granules())?;
    let sga = instance.in_granules();
    let case = Case::likely(format!(
        "the instance of {} does not start (ORA-27102): with pages of {} its SGA takes {} ({sga}), and kernel.shmall allows {pages} ({limit}) for all \
         segments",
        own.path,
        page.exact(),
        sga.0.div_ceil(page.0)
    ));
    (sga > limit).then(|| (case.seen_line(&instance.setting), sga))
}

/// Instances that do not run and take segments for their SGA: with automatic memory management it is in files of /dev/shm.
fn to_start(evidence: &Evidence) -> Vec<(&Parameters, Instance)> {
    let of_machine = evidence.config.instances.known().into_iter().flatten();
    let runs = |sid: &String| {
        let is_it = |(name, value): &(String, String)| name == "sid" && value == sid;
        running(evidence).any(|program| program.set_by_arguments().iter().any(is_it))
    };
    let all = of_machine.chain(&evidence.files.oracle);
    let all = all.filter(|own| own.memory_target().is_none() && !own.sid().is_some_and(|sid| runs(&sid)));
    all.filter_map(|own| Some((own, own.at_least()?))).collect()
}

/// Instances of Oracle whose SGA their user may not lock: by lock_sga, or since segments of huge pages count as locked before Linux 5.16.
/// Those that a group may make never do, and lock_sga passes them over (shmctl_do_lock()).
pub(super) fn instances(evidence: &Evidence) -> Vec<Case> {
    let name = "vm.hugetlb_shm_group";
    let of_files = evidence
        .files
        .sysctl
        .number(name)
        .ok()
        .flatten()
        .map(|(group, _)| group);
    let of_machine = || evidence.snapshot.sysctls.number(name).known().copied();
    let by_group = of_files.or_else(of_machine).is_some_and(|group: u64| group > 0);
    let by_memlock = has(evidence, Feature::ShmWithoutMemlock) != Ok(true);
    let may = |own: &&Parameters| match own.takes_pages() {
        true => !by_group && (by_memlock || own.locks_sga().is_some()),
        false => own.locks_sga().is_some(),
    };
    let instances = evidence.files.oracle.iter().filter(may);
    instances.filter_map(|own| instance(evidence, own)).collect()
}

/// The user and the groups of its guides.
fn instance(evidence: &Evidence, own: &Parameters) -> Option<Case> {
    let instance = own.at_least()?;
    let groups = ["oinstall", "dba", "oracle"].map(str::to_owned);
    let (limit, line) = memlock_for(&evidence.files.limits, "oracle", &groups)?;
    let (sga, lock) = (instance.in_granules(), own.locks_sga());
    // What is no granule takes a page more.
    let least = Bytes(sga.0.saturating_add(default_page(evidence).0));
    if limit >= Limit::Bytes(least.0) {
        return None;
    }
    let (outcome, severity) = match (lock, instance.is_strict) {
        (Some(_), _) => ("does not start (ORA-27102)", Severity::Error),
        (None, true) => ("does not start, as use_large_pages is ONLY", Severity::Error),
        (None, false) => ("takes base pages for most of its SGA", Severity::Warning),
    };
    let case = Case::likely(match lock {
        Some(_) => format!(
            "the instance of {} {outcome}: lock_sga locks its SGA of {sga} and a page more, and its user may lock {limit}",
            own.path
        ),
        None => format!(
            "before Linux 5.16 the instance of {} {outcome}: its user may lock {limit}, and segments of huge pages for its SGA of {sga} and a page more count as locked",
            own.path
        ),
    });
    let case = case.severity(severity).with(lock, Case::seen_line);
    let case = case.seen_line(&instance.setting).seen_limit(line);
    let case = by_login(evidence, &line.domain, case, Some(least));
    Some(match lock {
        Some(_) => case
            .fix("then log in again, and start it: the limit counts on every kernel")
            .fix("or leave lock_sga out, where the SGA is of huge pages: those are never swapped"),
        None => case.fix(
            "then log in again; from Linux 5.16 on it needs the group of vm.hugetlb_shm_group or CAP_IPC_LOCK instead",
        ),
    })
}
