//! The limit of locked memory: where it matters, and where it comes from.

use model::Bytes;
use programs::Evidence;
use programs::config::{Unit, memlock_for};
use programs::{Details, Kind, Limit, Program};

use super::shm::{has_pool, shm_user, user_name};
use crate::facts::{each, each_looked_into, kernel, known, programs};
use crate::rule::{Answer, Case, Reason};

pub(super) fn too_low(evidence: &Evidence) -> Answer {
    let by_memlock = kernel(evidence)? < (5, 16) && has_pool(evidence)?;
    each(programs(evidence)?, |program| {
        let shm = if by_memlock { shm_user(program)? } else { None };
        let vfio = known(&program.kind)?.is_some_and(Kind::is_hypervisor) && pins(program);
        if (shm.is_none() && !vfio) || program.may_lock()? {
            return Ok(None);
        }
        let Some(details) = &program.details else {
            return Ok(None);
        };
        let limit = *known(&details.memlock)?;
        let need = need(program)?;
        if limit >= Limit::Bytes(need.0) || (shm.is_some() && program.hugetlb()?.0 > 0) {
            return Ok(None);
        }
        let what = shm.unwrap_or("its guest's memory, for VFIO devices");
        let case = Case::likely(format!(
            "{} has to lock {need} ({what}) and may lock {limit}",
            program.title()
        ))
        .seen(program.file("limits"), "Max locked memory", limit)
        .seen(program.file("status"), "CapEff: CAP_IPC_LOCK", "no");
        Ok(Some(limit_fix(evidence, program, case)))
    })
}

fn pins(program: &Program) -> bool {
    program
        .arguments
        .known()
        .is_some_and(|arguments| arguments.iter().any(|argument| argument.contains("vfio-pci")))
}

/// A JVM's largest heap, or all that the process has.
fn need(program: &Program) -> Result<Bytes, Reason> {
    let heap = if program.is(Kind::Jvm)? {
        program.jvm()?.and_then(|jvm| jvm.heap_max)
    } else {
        None
    };
    match heap {
        Some(heap) => Ok(heap),
        None => known(&program.pages.resident).copied(),
    }
}

fn limit_fix(evidence: &Evidence, program: &Program, case: Case) -> Case {
    let service = program
        .details
        .as_ref()
        .and_then(|details| details.cgroup.known()?.service.clone());
    match service {
        Some(service) => case
            .fix(format!(
                "systemctl edit {service}, and there: [Service] LimitMEMLOCK=infinity"
            ))
            .fix(format!("systemctl restart {service}")),
        None => case
            .fix(format!(
                "echo '{} - memlock unlimited' > /etc/security/limits.d/60-memlock.conf",
                user_name(evidence, program)
            ))
            .fix("log in again, and restart it"),
    }
}

/// A process's unit, if it runs as a service.
fn unit(details: &Details) -> Result<Option<&Unit>, Reason> {
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
        let Some(user) = accounts.users.get(known(&program.pages.uid)?) else {
            return Ok(None);
        };
        let Some((promised, line)) = memlock_for(lines, user, &accounts.groups_of(user)) else {
            return Ok(None);
        };
        let has = *known(&details.memlock)?;
        // A line for all users is not meant for each service, only for those that could use it.
        let meant = line.domain != "*" || matches!(known(&program.kind)?, Some(kind) if *kind != Kind::Kubelet);
        if unit.memlock.is_some() || has >= promised || !meant {
            return Ok(None);
        }
        let case = Case::sure(format!(
            "{} may lock {has}, not {promised} as in limits.conf: that file applies to logins, not to services",
            program.title()
        ))
        .seen(
            &line.place,
            format!("{} {} memlock", line.domain, line.kind),
            &line.value,
        )
        .seen(program.file("limits"), "Max locked memory", has)
        .seen(program.file("cgroup"), "service", &unit.name);
        Ok(Some(limit_fix(evidence, program, case)))
    })
}

pub(super) fn changed_after_start(evidence: &Evidence) -> Answer {
    each_looked_into(evidence, |program, details| {
        let Some(unit) = unit(details)? else { return Ok(None) };
        let Some((wanted, place)) = &unit.memlock else {
            return Ok(None);
        };
        let has = *known(&details.memlock)?;
        if has == *wanted {
            return Ok(None);
        }
        let case = Case::likely(format!(
            "{} runs with a memlock limit of {has}; its unit sets {wanted}",
            program.title()
        ))
        .seen(place, "LimitMEMLOCK", wanted)
        .seen(program.file("limits"), "Max locked memory", has)
        .fix(format!("systemctl daemon-reload && systemctl restart {}", unit.name));
        Ok(Some(case))
    })
}
