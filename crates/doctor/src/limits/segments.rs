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
use crate::rule::{Answer, Case, Reason};

pub(super) fn too_small(evidence: &Evidence) -> Answer {
    parts([
        below_pool(evidence, "kernel.shmmax", |bytes, _| Ok(Bytes(bytes))),
        of_all(evidence),
    ])
}

fn of_all(evidence: &Evidence) -> Answer {
    let name = "kernel.shmall";
    let page = base_page(evidence);
    let by_sga = evidence.files.sysctl.number(name)?.and_then(|(pages, line)| {
        let page = *page.as_ref().ok()?;
        let (case, need) = beyond(evidence, pages, page)?;
        let least = need.0.div_ceil(page.0);
        Some(case.seen_line(line).fix(format!(
            "remove {name}: the kernel's default has been practically unlimited since Linux 3.16; before, {name} = {least} or more"
        )))
    });
    match by_sga {
        Some(case) => Ok(vec![case]),
        None => below_pool(evidence, name, |pages, pool| at_least(evidence, pages, pool)),
    }
}

/// Files alone are taken for those of x86.
fn base_page(evidence: &Evidence) -> Result<Bytes, Reason> {
    match evidence.has_machine {
        true => known(&evidence.snapshot.kernel.base_page).copied(),
        false => Ok(Bytes::kib(4)),
    }
}

/// So many base pages, for the pool and for each instance. Where their size is not known, 4K, which is the least, may do.
pub(super) fn at_least(evidence: &Evidence, pages: u64, pool: Bytes) -> Result<Bytes, Reason> {
    let least = Bytes(pages.saturating_mul(Bytes::kib(4).0));
    let sga = largest(evidence).map_or(Bytes(0), |(_, instance)| instance.in_granules());
    let enough = pool.max(sga);
    match base_page(evidence) {
        Ok(page) => Ok(Bytes(pages.saturating_mul(page.0))),
        Err(_) if least >= enough => Ok(least),
        Err(why) => Err(why),
    }
}

/// A limit that is smaller than the pool, in bytes.
fn below_pool(evidence: &Evidence, name: &str, bytes: impl Fn(u64, Bytes) -> Result<Bytes, Reason>) -> Answer {
    let Some((limit, line)) = evidence.files.sysctl.number(name)? else {
        return Ok(Vec::new());
    };
    let room = Room::of(evidence)?;
    let pool = Bytes(room.pages(room.default).saturating_mul(room.default.0));
    let bytes = bytes(limit, pool)?;
    if bytes >= pool || make_no_segments(evidence, &room) {
        return Ok(Vec::new());
    }
    let case = Case::likely(format!(
        "System V segments cannot use the pool of {pool}: {name} allows {bytes}"
    ));
    let case = case
        .severity(Severity::Warning)
        .seen(&line.place, name, limit)
        .fix(format!(
            "remove {name}: the kernel's default has been practically unlimited since Linux 3.16"
        ));
    Ok(vec![case])
}

/// The instance whose SGA is more than the limit of all segments allows, and its SGA: shmget() fails with ENOSPC, on huge pages too.
/// Whether several run together no file says: one may be a copy, or another node's.
pub(super) fn beyond(evidence: &Evidence, pages: u64, page: Bytes) -> Option<(Case, Bytes)> {
    let limit = Bytes(pages.saturating_mul(page.0));
    let (own, instance) = largest(evidence)?;
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

/// The instance that does not run with the largest SGA.
fn largest(evidence: &Evidence) -> Option<(&Parameters, Instance)> {
    let all = to_start(evidence).into_iter();
    all.max_by_key(|(_, instance)| instance.in_granules())
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
