//! Limits as files of services, pam_limits and sysctl set them.

use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::given::FileKind;
use programs::config::memlock_for;

use crate::demand::Room;
use crate::rule::{Answer, Case};

pub(super) fn not_for_services(evidence: &Evidence) -> Answer {
    if !evidence.files.has(FileKind::Unit) {
        return Err("no file of that kind was given: unit".into());
    }
    let cases = evidence.files.services.iter().filter_map(|service| {
        let user = service.user.as_ref()?;
        let (promised, line) = memlock_for(&evidence.files.limits, &user.value, &[])?;
        let (has, place) = match &service.unit.memlock {
            Some((limit, _)) if *limit >= promised => return None,
            Some((limit, place)) => (limit.to_string(), place),
            None => ("not set".to_owned(), &service.path),
        };
        let text = match service.unit.memlock {
            None => format!(
                "{} does not get the limit of locked memory that limits.conf sets for {} ({promised}): that file applies to logins, not to services",
                service.name, user.value
            ),
            Some(_) => format!(
                "{} may lock {has}, and limits.conf sets {promised} for {}: a number in LimitMEMLOCK= counts bytes, and in limits.conf KiB",
                service.name, user.value
            ),
        };
        Some(
            Case::sure(text)
                .info_if(line.domain == "*")
                .seen(&line.place, format!("{} {} memlock", line.domain, line.kind), &line.value)
                .seen(&user.place, "User", &user.value)
                .seen(place, "LimitMEMLOCK", has)
                .fix(format!("systemctl edit {}, and there: [Service] LimitMEMLOCK=infinity", service.name)),
        )
    });
    Ok(cases.collect())
}

pub(super) fn shm_limits(evidence: &Evidence) -> Answer {
    let room = Room::of(evidence)?;
    let pool = Bytes(room.pages(room.default).saturating_mul(room.default.0));
    let in_pages = |pages: u64| pages.saturating_mul(4096);
    let mut cases = Vec::new();
    for (name, bytes) in [
        ("kernel.shmmax", (|bytes| bytes) as fn(u64) -> u64),
        ("kernel.shmall", in_pages),
    ] {
        let Some((limit, line)) = evidence.files.sysctl.number(name)? else {
            continue;
        };
        if pool.0 > 0 && bytes(limit) < pool.0 {
            cases.push(
                Case::likely(format!(
                    "System V segments cannot use the pool of {pool}: {name} allows {}",
                    Bytes(bytes(limit))
                ))
                .severity(Severity::Warning)
                .seen(&line.place, name, limit)
                .fix(format!(
                    "remove {name}: the kernel's default has been practically unlimited since Linux 3.16"
                )),
            );
        }
    }
    Ok(cases)
}
