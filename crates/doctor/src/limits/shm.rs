//! System V shared memory on hugetlb pages: which programs may use it, and how much.

use std::iter;

use host::snapshot::{Feature, Pool, sysctl};
use model::Bytes;
use model::findings::Severity;
use programs::{Area, Evidence, Kind, Limit, Program};

use super::segments::{at_least, beyond};
use crate::facts::{
    bytes, container, counted, default_size, distribution, has, known, largest, persistent, pools, programs, running,
};
use crate::pools::is_miscounted;
use crate::rule::answers::{each_that_can, parts};
use crate::rule::{Answer, Case, Reason};

/// Why a program is known to use System V segments backed by huge pages; `None` if it does not.
pub(super) fn shm_user(program: &Program) -> Result<Option<&'static str>, Reason> {
    if program.is(Kind::Oracle)? && program.details.is_some() {
        return Ok(Some("Oracle's SGA"));
    }
    if program.is(Kind::Jvm)? {
        let uses = program.jvm()?.is_some_and(|jvm| jvm.shm && jvm.large_pages);
        return Ok(uses.then_some("-Xlp or -XX:+UseSHM"));
    }
    let asked = program.tunable("HUGETLB_SHM")? == Some("yes");
    Ok(asked.then_some("HUGETLB_SHM=yes"))
}

/// Has any pool pages, or may it grow?
pub(super) fn has_pool(evidence: &Evidence) -> Result<bool, Reason> {
    for pool in pools(evidence)? {
        if persistent(pool)? > 0 || *known(&pool.overcommit)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn eperm(evidence: &Evidence) -> Answer {
    if !has(evidence, Feature::ShmWithoutMemlock)? || !has_pool(evidence)? {
        return Ok(Vec::new());
    }
    let group: u32 = evidence.snapshot.sysctls.number("vm.hugetlb_shm_group").into_result()?;
    let all = programs(evidence)?;
    let is_refused = |program: &&Program| matches!(refused(program, group), Ok(Some(_)));
    let shared = shared_group(evidence, &all.iter().filter(is_refused).collect::<Vec<_>>());
    each_that_can(all, |program| {
        let Some(why) = refused(program, group)? else {
            return Ok(None);
        };
        let groups: Vec<String> = known(&program.groups)?.iter().map(u32::to_string).collect();
        let case = Case::sure(format!(
            "{} may not create segments backed by huge pages ({why}): the kernel answers EPERM, whatever the memlock limit is",
            program.title()
        ))
        .seen("/proc/sys/vm/hugetlb_shm_group", "", group)
        .seen(program.file("status"), "Gid and Groups", groups.join(" "))
        .seen(program.file("status"), "CapEff: CAP_IPC_LOCK", "no")
        .wants(default_size(evidence)?);
        let case = case.with(program.details.as_ref(), |case, details| {
            case.seen(program.file("limits"), "Max locked memory", &details.memlock)
        });
        let control = program.cgroup().ok().flatten();
        if control.is_some_and(|control| control.is_container) {
            return Ok(Some(case.fix(
                "start the container with --cap-add IPC_LOCK (Kubernetes: capabilities: add: [IPC_LOCK])",
            )));
        }
        let in_service = control.is_some_and(|control| control.service.is_some());
        Ok(Some(
            in_group(evidence, program, case, (group, shared), !in_service)
                .fix_if(in_service, "or in its unit: AmbientCapabilities=CAP_IPC_LOCK")
                .fix("then restart it"),
        ))
    })
}

/// Why a program needs a right to segments of huge pages that it has not: it is not in the group that may make them.
fn refused(program: &Program, group: u32) -> Result<Option<&'static str>, Reason> {
    let Some(why) = shm_user(program)? else { return Ok(None) };
    let may = program.may_lock()? || known(&program.groups)?.contains(&group) || program.hugetlb()?.0 > 0;
    Ok((!may).then_some(why))
}

/// Groups of all users: what they may, everybody may.
const OF_ALL: [&str; 4] = ["users", "nogroup", "nobody", "root"];

/// A group that all of these programs have. The kernel takes one group: one for each program would undo the others.
fn shared_group(evidence: &Evidence, programs: &[&Program]) -> Option<u32> {
    let (first, others) = programs.split_first()?;
    let serves = |gid: u32| gid != 0 && group_name(evidence, gid).is_none_or(|name| !OF_ALL.contains(&name));
    let has = |program: &&Program, gid| program.groups.known().is_some_and(|groups| groups.contains(&gid));
    let mut own = first.groups.known()?.iter().copied();
    own.find(|gid| serves(*gid) && others.iter().all(|other| has(other, *gid)))
}

fn group_name(evidence: &Evidence, gid: u32) -> Option<&str> {
    let accounts = evidence.config.accounts.known()?;
    Some(accounts.group(gid)?.name.as_str())
}

/// With how a program comes to be in the group that may: by the group that is set, by one that all have, else by a new one.
fn in_group(
    evidence: &Evidence,
    program: &Program,
    case: Case,
    (set, shared): (u32, Option<u32>),
    by_login: bool,
) -> Case {
    let user = user_name(evidence, program);
    let again = "log in again: a session keeps its groups";
    let set_name = group_name(evidence, set).filter(|_| set != 0);
    if let Some(name) = set_name {
        return case.fix(format!("usermod -aG {name} {user}")).fix_if(by_login, again);
    }
    if let Some(own) = shared.filter(|_| set == 0) {
        let whose = group_name(evidence, own).map_or_else(String::new, |name| format!(" ({name})"));
        return case.fix(format!(
            "it has the group {own}{whose} already; in /etc/sysctl.d, and at once: sysctl -w vm.hugetlb_shm_group={own}"
        ));
    }
    // A directory such as LDAP may have it.
    let case = case.fix_if(
        set != 0,
        format!("if the group {set} exists outside of /etc/group: add {user} to it there, in place of what follows"),
    );
    case.fix(format!("groupadd -f hugetlb && usermod -aG hugetlb {user}"))
        .fix("in /etc/sysctl.d, and at once: sysctl -w vm.hugetlb_shm_group=$(getent group hugetlb | cut -d: -f3)")
        .fix_if(by_login, again)
}

/// The group that would let a program make System V segments of huge pages, if it is not in it and has no other right to. Before
/// Linux 5.16 a limit of locked memory that holds them is one.
pub(crate) fn barred(evidence: &Evidence, program: &Program, bytes: Bytes) -> Result<Option<u32>, Reason> {
    let group: u32 = evidence.snapshot.sysctls.number("vm.hugetlb_shm_group").into_result()?;
    if program.may_lock()? || known(&program.groups)?.contains(&group) {
        return Ok(None);
    }
    let Some(details) = &program.details else {
        return Ok(None);
    };
    let by_limit = !has(evidence, Feature::ShmWithoutMemlock)? && *known(&details.memlock)? >= Limit::Bytes(bytes.0);
    Ok((!by_limit).then_some(group))
}

/// The name of a program's user, or its id.
pub(super) fn user_name(evidence: &Evidence, program: &Program) -> String {
    let uid = program.pages.uid.known().copied();
    let named = uid.and_then(|uid| Some(evidence.config.accounts.known()?.user(uid)?.name.clone()));
    named
        .or(uid.map(|uid| uid.to_string()))
        .unwrap_or_else(|| "USER".to_owned())
}

pub(super) fn too_small(evidence: &Evidence) -> Answer {
    let of_instances = || {
        evidence.config.instances.as_ref().map(drop).or_if_absent(())?;
        Ok(Vec::new())
    };
    parts([low_limits(evidence), of_instances()])
}

fn low_limits(evidence: &Evidence) -> Answer {
    let sysctls = &evidence.snapshot.sysctls;
    let one = sysctls.number("kernel.shmmax").into_result();
    let pages = sysctls.number("kernel.shmall").into_result();
    let base = known(&evidence.snapshot.kernel.base_page);
    let pool = pool_to_keep(evidence)?;
    match (one, pages, base.clone()) {
        (Ok(one), Ok(pages), Ok(base)) => Ok(both(evidence, pool, one, (pages, *base)).into_iter().collect()),
        (one, pages, _) => {
            let one = one.map(|one: u64| low(evidence, pool, ("kernel.shmmax", Bytes(one)), 1));
            let all = pages
                .map_err(Reason::from)
                .and_then(|pages| at_least(evidence, pages, pool));
            let unit = base.map_or(1, |base| base.0);
            let all = all.map(|all| low(evidence, pool, ("kernel.shmall", all), unit));
            parts([one.map_err(Reason::from), all].map(|found| Ok(found?.into_iter().collect())))
        }
    }
}

/// One of both limits, where the other is not known.
fn low(evidence: &Evidence, pool: Bytes, (name, limit): (&str, Bytes), unit: u64) -> Option<Case> {
    let case = below_pool(evidence, pool, &format!("{name} allows {limit}")).filter(|_| limit < pool)?;
    let case = case.seen(sysctl::path(name), "in bytes", limit.0);
    let least = pool.0.div_ceil(unit.max(1));
    Some(raised(evidence, case, iter::once((name, least))))
}

fn both(evidence: &Evidence, pool: Bytes, one: u64, (pages, base): (u64, Bytes)) -> Option<Case> {
    let all = Bytes(pages.saturating_mul(base.0));
    let is_low = one < pool.0 || all < pool;
    let limits = format!("the limits are {} for one and {all} for all", Bytes(one));
    let (case, need) = match beyond(evidence, pages, base) {
        Some((case, sga)) => (case, sga.max(pool)),
        None => (below_pool(evidence, pool, &limits).filter(|_| is_low)?, pool),
    };
    let case = case
        .seen("/proc/sys/kernel/shmmax", "", one)
        .seen("/proc/sys/kernel/shmall", "in bytes", all);
    let needs = [
        ("kernel.shmmax", Bytes(one), pool, 1),
        ("kernel.shmall", all, need, base.0),
    ];
    let low = needs.into_iter().filter(|(_, has, need, _)| has < need);
    let low = low.map(|(name, _, need, unit)| (name, need.0.div_ceil(unit.max(1))));
    Some(raised(evidence, case, low))
}

/// The largest pool. One that a count for another size made is to go.
fn pool_to_keep(evidence: &Evidence) -> Result<Bytes, Reason> {
    let pages = |pool: &Pool| match is_miscounted(evidence, pool) {
        true => Ok(0),
        false => persistent(pool),
    };
    let pools = counted(evidence)?;
    let pools = pools.iter().map(|pool| Ok((pool, bytes(pool, pages(pool)?))));
    let pools = pools.collect::<Result<Vec<_>, Reason>>()?;
    Ok(largest(pools).map_or(Bytes(0), |(_, bytes)| bytes))
}

/// Segments that cannot have the pool, where a program may want them.
fn below_pool(evidence: &Evidence, pool: Bytes, limits: &str) -> Option<Case> {
    let user = running(evidence).find(|program| matches!(shm_user(program), Ok(Some(_))));
    if user.is_none() && takes_no_segments(evidence) {
        return None;
    }
    let who = user.map_or(String::new(), |program| format!(" such as {}'s", program.title()));
    let case = Case::sure(format!(
        "System V segments{who} cannot use the pool of {pool}: {limits}"
    ));
    Some(case.when(user.is_none(), |case| case.severity(Severity::Warning)))
}

/// Do programs take pages of a pool, while none has a segment or is MySQL, which may be of a release that makes some?
fn takes_no_segments(evidence: &Evidence) -> bool {
    const WORTH: Bytes = Bytes::mib(1);
    let is_segment = |area: &Area| area.is_segment() && area.size() >= WORTH;
    let has_none = |program: &Program| program.areas().is_ok_and(|areas| !areas.iter().any(is_segment));
    let may = |program: &Program| program.is(Kind::Mysql) == Ok(true) && !program.is_mariadb();
    let takes = |program: &Program| program.hugetlb().is_ok_and(|bytes| bytes.0 > 0);
    let mut all = running(evidence).filter(|program| program.details.is_some());
    running(evidence).any(takes) && all.all(|program| has_none(program) && !may(program))
}

/// With limits that hold the pool: those of the kernel, where they are large, else these numbers.
fn raised<'n>(evidence: &Evidence, case: Case, needs: impl Iterator<Item = (&'n str, u64)>) -> Case {
    if evidence.snapshot.kernel.has(Feature::LargeSegments) != Some(false) {
        let names = ["kernel.shmmax", "kernel.shmall"].into_iter();
        let names = names.filter(|name| evidence.snapshot.sysctls.text(name).known().is_some());
        let names: Vec<&str> = names.collect();
        let set: Vec<String> = names
            .iter()
            .map(|name| format!("{name}=18446744073692774399"))
            .collect();
        return case
            .fix(format!(
                "remove {} from /etc/sysctl.conf and /etc/sysctl.d: the kernel's defaults are larger",
                names.join(" and ")
            ))
            .fix(format!("sysctl -w {}", set.join(" ")));
    }
    let files = evidence.config.sysctl.known();
    needs.fold(case, |case, (name, least)| {
        let keep = match files.and_then(|files| files.last(name)) {
            Some(line) => format!("{name} = {least} or more in place of {} in {}", line.value, line.place),
            None => distribution(evidence).keep_setting(name, least),
        };
        case.fix(format!("sysctl -w {name}={least}")).fix(format!(
            "to keep it: {keep}; before Linux 3.16 the kernel's own limits may be 32M for one segment and 8G for all"
        ))
    })
}

pub(super) fn group_invalid(evidence: &Evidence) -> Answer {
    let group: u32 = evidence.snapshot.sysctls.number("vm.hugetlb_shm_group").into_result()?;
    // 0 is the default: root's group only.
    if group == 0 || known(&evidence.config.accounts)?.group(group).is_some() {
        return Ok(Vec::new());
    }
    let is_member = |program: &Program| program.groups.known().is_some_and(|groups| groups.contains(&group));
    if running(evidence).any(is_member) {
        return Ok(Vec::new());
    }
    // A container has groups of its own, which /etc/group of the host does not show.
    let files = &evidence.files;
    let has_containers = !evidence.pods.is_empty() || !files.pods.is_empty() || !files.runs.is_empty();
    let of_image = has_containers || running(evidence).any(is_of_containers);
    let new: fn(String) -> Case = if of_image { Case::hint } else { Case::likely };
    let what = match of_image {
        true => "right if it is one of a container's image",
        false => "no user is a member",
    };
    let case = new(format!(
        "vm.hugetlb_shm_group is {group}, which is no group of this host: {what}"
    ))
    .info_if(of_image)
    .seen("/proc/sys/vm/hugetlb_shm_group", "", group)
    .seen("/etc/group", "gid", format!("no {group}"));
    Ok(vec![match of_image {
        true => case.fix(format!(
            "look for {group} among the groups of the container's user: id -G there"
        )),
        false => case.fix("groupadd -f hugetlb, add the users that need it, and set vm.hugetlb_shm_group to its id"),
    }])
}

/// Is it in a container, or does it start some?
fn is_of_containers(program: &Program) -> bool {
    let starts = ["containerd", "crio", "dockerd", "kubelet", "podman"].contains(&program.pages.name.as_str());
    starts || container(program).is_some()
}
