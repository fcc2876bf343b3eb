//! The limit of locked memory: where it matters, and where it comes from.

use std::collections::BTreeMap;

use host::snapshot::Feature;
use model::Bytes;
use model::findings::Severity;
use programs::config::{LimitLine, Setting, Unit, memlock_for};
use programs::vms::{Pinned, guest_size, pins};
use programs::{Area, Details, Evidence, Kind, Limit, Program, RDMA, REGISTERED};

use super::files::{self, of_run_time, what};
use super::partly::in_part;
use super::shm::{has_pool, shm_user, user_name};
use crate::facts::{
    self, container, default_size, each_looked_into, has, is_of_libvirt, known, programs, running, service,
};
use crate::rule::answers::{each, parts};
use crate::rule::{Answer, Case, Reason};

pub(super) fn too_low(evidence: &Evidence) -> Answer {
    parts([
        by_use(evidence),
        each_looked_into(evidence, |program, details| by_setting(evidence, program, details)),
    ])
}

/// A program that is to lock its memory by a setting of its own.
fn by_setting(evidence: &Evidence, program: &Program, details: &Details) -> Result<Option<Case>, Reason> {
    let Some(lock) = known(&details.lock)? else {
        return in_part(evidence, program, details);
    };
    let limit = *known(&details.memlock)?;
    if limit == Limit::Unlimited || program.may_lock()? {
        return Ok(None);
    }
    let need = lock.need(program)?;
    let has_locked = program.locked.known().is_some_and(|locked| *locked >= need);
    if limit >= Limit::Bytes(need.0) || has_locked {
        return Ok(None);
    }
    let name = &lock.setting.name;
    let case = Case::likely(format!(
        "{} is to lock {need} ({}, by {name}) and may lock {limit}: what is not locked can be swapped or dropped",
        program.title(),
        what(lock.what)
    ))
    .severity(Severity::Warning)
    .seen_line(&lock.setting)
    .seen(program.file("limits"), "Max locked memory", limit)
    .seen(program.file("status"), "VmLck", &program.locked)
    .seen(program.file("status"), "CapEff: CAP_IPC_LOCK", "no");
    Ok(Some(
        limit_fix(evidence, program, case, Some(need)).fix(format!("or switch {name} off, where it may be swapped")),
    ))
}

/// A program that has to lock what it uses: segments of huge pages, a guest's memory, buffers of RDMA.
fn by_use(evidence: &Evidence) -> Answer {
    let by_memlock = by_memlock(evidence)?;
    each(programs(evidence)?, |program| used(evidence, program, by_memlock))
}

/// Does the limit decide about segments of huge pages?
fn by_memlock(evidence: &Evidence) -> Result<bool, Reason> {
    Ok(!has(evidence, Feature::ShmWithoutMemlock)? && has_pool(evidence)?)
}

fn used(evidence: &Evidence, program: &Program, by_memlock: bool) -> Result<Option<Case>, Reason> {
    // Mappings that could not be read leave what the limits alone show.
    let registered = registers(evidence, program);
    if matches!(registered, Ok(Some(_))) {
        return registered;
    }
    let shm = if by_memlock { shm_user(program)? } else { None };
    let pinned = pinned(program)?;
    if (shm.is_none() && pinned.is_none()) || program.may_lock()? {
        return registered;
    }
    let Some(details) = &program.details else {
        return registered;
    };
    let limit = *known(&details.memlock)?;
    let is_part = shm.is_none() && pinned == Some(Pinned::Used);
    let need = match is_part {
        true => REGISTERED,
        false => need(program, shm.is_some())?,
    };
    // Has it such segments of huge pages already?
    let has_segments = || Ok::<_, Reason>(program.hugetlb()?.0 > 0 || segments(program).any(Area::is_hugetlb));
    if limit >= Limit::Bytes(need.0) || (shm.is_some() && has_segments()?) {
        return registered;
    }
    let what = match is_part {
        true => "what a mediated device (VFIO) uses of its guest's memory".to_owned(),
        false => format!("{need} ({})", shm.unwrap_or("its guest's memory, for VFIO devices")),
    };
    let case = Case::likely(format!("{} has to lock {what} and may lock {limit}", program.title()))
        .seen(program.file("limits"), "Max locked memory", limit)
        .seen(program.file("status"), "CapEff: CAP_IPC_LOCK", "no");
    let page = shm.map(|_| default_size(evidence)).transpose()?;
    let case = case.with(page, Case::wants);
    Ok(Some(limit_fix(evidence, program, case, Some(need))))
}

/// What of its guest's memory a hypervisor pins.
fn pinned(program: &Program) -> Result<Option<Pinned>, Reason> {
    let is_hypervisor = known(&program.kind)?.is_some_and(Kind::is_hypervisor);
    let arguments = program.arguments.known().filter(|_| is_hypervisor);
    Ok(arguments.and_then(|argv| pins(argv)))
}

/// Its System V segments.
fn segments(program: &Program) -> impl Iterator<Item = &Area> {
    let areas = program.areas().unwrap_or_default().iter();
    areas.filter(|area| area.is_segment())
}

/// Has a program of this kind to lock its segments of huge pages, and may not?
pub(crate) fn bars_segments(evidence: &Evidence, kind: Kind) -> bool {
    let mut own = running(evidence).filter(|program| program.is(kind) == Ok(true));
    by_memlock(evidence) == Ok(true) && own.any(|program| matches!(used(evidence, program, true), Ok(Some(_))))
}

/// With the limit of a program that is to have such a segment of huge pages, and how it is raised, where it is below that.
pub(crate) fn raised_for(evidence: &Evidence, program: &Program, case: Case, segment: Bytes) -> Case {
    let limit = program.details.as_ref().and_then(|details| details.memlock.known());
    let decides = has(evidence, Feature::ShmWithoutMemlock) == Ok(false) && program.may_lock() == Ok(false);
    match limit.filter(|limit| decides && **limit < Limit::Bytes(segment.0)) {
        Some(limit) => {
            let case = case.seen(program.file("limits"), "Max locked memory", *limit);
            limit_fix(evidence, program, case, Some(segment))
        }
        None => case,
    }
}

/// One with a device of RDMA open: what it registers there is locked (ib_umem_get()). Those like it are one case.
fn registers(evidence: &Evidence, program: &Program) -> Result<Option<Case>, Reason> {
    let Some((device, limit)) = registering(program)? else {
        return Ok(None);
    };
    let is_like = |other: &&Program| {
        are_alike(program, other) && registering(other).is_ok_and(|found| found.is_some_and(|(_, own)| own == limit))
    };
    let like: Vec<&Program> = running(evidence).filter(is_like).collect();
    if like.first().is_some_and(|first| first.pid() != program.pid()) {
        return Ok(None);
    }
    let who = match like.len() {
        0 | 1 => format!("{} registers", program.title()),
        many => format!("{} and {} more like it register", program.title(), many - 1),
    };
    let case = Case::likely(format!(
        "{who} memory with an RDMA device, which locks it, and may lock {limit}: registration may fail"
    ))
    .severity(Severity::Warning)
    .seen(program.file("smaps"), device, "mapped")
    .seen(program.file("limits"), "Max locked memory", limit)
    .seen(program.file("status"), "VmPin", &program.pinned);
    let service = service(program).filter(|service| !service.starts_with(program.pages.name.as_str()));
    Ok(Some(limit_fix(evidence, program, case, None).fix_if(
        service.is_some(),
        "start the job again: a process keeps the limit that it was started with",
    )))
}

/// The device of RDMA that a program has mapped, and its limit, where that is too low for what it may register.
fn registering(program: &Program) -> Result<Option<(&str, Limit)>, Reason> {
    let Some(details) = &program.details else {
        return Ok(None);
    };
    let is_enough = |limit: &Limit| *limit >= Limit::Bytes(REGISTERED.0);
    // What it has registered already fits.
    let has_registered = program.pinned.known().is_some_and(|pinned| pinned.0 > 0);
    if has_registered || details.memlock.known().is_some_and(is_enough) {
        return Ok(None);
    }
    let mut areas = program.areas()?.iter();
    let Some(device) = areas.find(|area| area.name.starts_with(RDMA)) else {
        return Ok(None);
    };
    let (limit, resident) = (*known(&details.memlock)?, *known(&program.pages.resident)?);
    if program.may_lock()? || limit >= Limit::Bytes(resident.min(REGISTERED).0) {
        return Ok(None);
    }
    Ok(Some((&*device.name, limit)))
}

/// Are both of one name, user and service, and outside of containers? One step raises the limit of both.
fn are_alike(one: &Program, other: &Program) -> bool {
    let user = |program: &Program| program.pages.uid.known().copied();
    let is_outside = |program: &Program| {
        program
            .cgroup()
            .is_ok_and(|groups| groups.is_none_or(|groups| !groups.is_container))
    };
    one.pid() == other.pid()
        || (one.pages.name == other.pages.name
            && user(one) == user(other)
            && service(one) == service(other)
            && [one, other].into_iter().all(is_outside))
}

/// A JVM's largest heap, the segments of a program that shares its memory, or all that the process has.
fn need(program: &Program, is_shared: bool) -> Result<Bytes, Reason> {
    let heap = program.jvm()?.and_then(|jvm| jvm.heap_max);
    if is_shared {
        program.areas()?;
    }
    let shared: Bytes = segments(program).map(Area::size).sum();
    match heap.or((is_shared && shared.0 > 0).then_some(shared)) {
        Some(need) => Ok(need),
        None => known(&program.pages.resident).copied(),
    }
}

/// With how the limit is raised, to `need` or more where that is known.
pub(super) fn limit_fix(evidence: &Evidence, program: &Program, case: Case, need: Option<Bytes>) -> Case {
    if is_of_libvirt(program) {
        let memory = program.arguments.known().and_then(|argv| guest_size(argv));
        return by_libvirt(case, memory)
            .fix("then start the guest anew: limits.conf has no say in what a service starts");
    }
    if let Some(groups) = container(program) {
        let raise = match groups.path.contains("kubepods") {
            true => format!(
                "Kubernetes: raise the default limit of the container run-time ({}), and start the pod again",
                of_run_time(evidence, &groups.path)
            ),
            false => {
                "start the container with --ulimit memlock=-1 (docker, podman), or set it for all: default-ulimits in /etc/docker/daemon.json".to_owned()
            }
        };
        return case.fix(raise).fix("limits.conf and logins have no say in containers");
    }
    match service(program) {
        Some(service) => in_service(program, case, service),
        None => by_login(evidence, &user_name(evidence, program), case, need).fix("log in again, and restart it"),
    }
}

/// How a guest of libvirt gets a higher limit.
pub(super) fn by_libvirt(case: Case, memory: Option<Bytes>) -> Case {
    let most = |memory: Bytes| memory.0.div_ceil(Bytes::gib(1).0).saturating_add(2);
    case.fix("in its definition, <hostdev> (type='pci', or 'mdev' with model='vfio-pci') in place of <qemu:commandline>: libvirt raises the limit for devices that it knows")
        .instead(memory.map(|memory| {
            format!(
                "or <memtune><hard_limit unit='GiB'>{}</hard_limit></memtune> there: also the most memory that QEMU gets",
                most(memory)
            )
        }))
        .unlimited("or systemctl edit libvirtd (or virtqemud)")
        .fix("then restart that service")
}

/// How a user who logs in gets a higher limit: by its own lines, where it has some that are too low.
pub(super) fn by_login(evidence: &Evidence, user: &str, case: Case, need: Option<Bytes>) -> Case {
    let lines = evidence.config.limits.known().into_iter().flatten();
    let lines = lines.chain(&evidence.files.limits);
    let own = lines.filter(|line| line.item == "memlock" && line.domain == user);
    // pam_limits takes the last line of a user.
    let last: BTreeMap<&str, &LimitLine> = own.map(|line| (line.kind.as_str(), line)).collect();
    if last.is_empty() {
        return case.fix(format!(
            "echo '{user} - memlock unlimited' >> /etc/security/limits.d/60-memlock.conf"
        ));
    }
    let is_low = |line: &&LimitLine| need.is_none_or(|need| line.memlock() < Some(Limit::Bytes(need.0)));
    let amount = need.map_or_else(String::new, |need| {
        format!(" (or {} and more: it counts KiB)", need.0.div_ceil(1024))
    });
    last.into_values().filter(is_low).fold(case, |case, line| {
        case.fix(format!(
            "in {}: `{user} {} memlock unlimited`{amount}, in place of {} (a line of a new file that is sorted before it loses)",
            line.place, line.kind, line.value
        ))
    })
}

/// How a service gets a higher limit. Its unit may have a line for it: one that systemd ignores, or that is newer than the process.
fn in_service(program: &Program, case: Case, service: &str) -> Case {
    let unit = facts::unit(program);
    let again = format!("systemctl daemon-reload && systemctl restart {service}");
    let own = unit.and_then(|unit| unit.memlock.as_ref());
    let outside = unit.and_then(|unit| unit.outside.as_ref()).filter(|_| own.is_none());
    let ignored = |case: Case, line: &Setting| {
        let value = format!("{}, which systemd ignores", line.value);
        case.seen(&line.place, &line.name, value)
    };
    match (own, outside) {
        (_, Some(line)) => ignored(case, line)
            .fix(format!(
                "write [Service] above {}: a limit outside of that section has no effect",
                line.place
            ))
            .fix(again),
        (Some((Limit::Unlimited, place)), _) => case
            .seen(place, "LimitMEMLOCK", Limit::Unlimited)
            .fix(format!("its unit sets no limit, and the process is older: {again}")),
        _ => case
            .with(unit.and_then(|unit| unit.of_init.as_ref()), |case, line| {
                ignored(case, line).fix(format!(
                    "{} of {} is for an init script: systemd takes the limit of the unit",
                    line.name, line.place
                ))
            })
            .unlimited(&format!("systemctl edit {service}"))
            .fix(format!("systemctl restart {service}")),
    }
}

/// A process's unit, if it runs as a service; its control group shows it.
fn unit(details: &Details) -> Result<Option<&Unit>, Reason> {
    details.cgroup.as_ref().map(drop).or_if_absent(())?;
    details.unit.as_ref().map(known).transpose()
}

pub(super) fn unlike_limits_conf(evidence: &Evidence) -> Answer {
    let lines = known(&evidence.config.limits)?;
    if lines.iter().all(|line| line.item != "memlock") {
        return Ok(Vec::new());
    }
    let accounts = known(&evidence.config.accounts)?;
    each_looked_into(evidence, |program, details| {
        let Some(unit) = unit(details)? else { return Ok(None) };
        let Some(user) = accounts.user(*known(&program.pages.uid)?) else {
            return Ok(None);
        };
        let Some((promised, line)) = memlock_for(lines, &user.name, &accounts.groups_of(&user.name)) else {
            return Ok(None);
        };
        let has = *known(&details.memlock)?;
        // A line for all users is not meant for each service, only for those that could use it.
        let meant = line.domain != "*" || matches!(known(&program.kind)?, Some(kind) if *kind != Kind::Kubelet);
        if unit.memlock.is_some() || has >= promised || !meant {
            return Ok(None);
        }
        let case = files::unlike_limits_conf(&program.title(), &has.to_string(), promised, line)
            .seen(program.file("limits"), "Max locked memory", has)
            .seen(program.file("cgroup"), "service", &unit.name);
        Ok(Some(limit_fix(evidence, program, case, None)))
    })
}

pub(super) fn changed_after_start(evidence: &Evidence) -> Answer {
    each_looked_into(evidence, |program, details| {
        let Some(unit) = unit(details)? else { return Ok(None) };
        let Some((name, (wanted, place))) = unit.limit() else {
            return Ok(None);
        };
        let has = *known(&details.memlock)?;
        if has == *wanted {
            return Ok(None);
        }
        let (whose, reload) = match unit.memlock {
            None => ("systemd's default for services is", "daemon-reexec"),
            Some(_) => ("its unit sets", "daemon-reload"),
        };
        let case = Case::likely(format!(
            "{} runs with a memlock limit of {has}; {whose} {wanted}",
            program.title()
        ))
        .seen(place, name, wanted)
        .seen(program.file("limits"), "Max locked memory", has)
        .fix(format!("systemctl {reload} && systemctl restart {}", unit.name));
        Ok(Some(case))
    })
}
