//! Settings that differ between files, the running kernel, and the time when a program started.

use host::snapshot::Pool;
use model::findings::Severity;
use model::{Bytes, PageKind};
use programs::Evidence;
use programs::config::Setting;

use super::sizes::dropped;
use super::vendors::against_always;
use crate::facts::{bytes, default_size, known, lacks_thp, persistent, pool_file, pools, programs, thp, thp_file};
use crate::kept::boot_again;
use crate::kept::keep_pool;
use crate::links;
use crate::pools::{is_written, request, starves};
use crate::remedy::Count;
use crate::rule::answers::{each, parts};
use crate::rule::{Answer, Case, Reason};

pub(super) fn conflict(evidence: &Evidence) -> Answer {
    let lines = known(&evidence.config.thp_policy);
    parts([lines.map(|lines| conflicting(lines)), dropped(evidence)])
}

fn agree(lines: &[Setting]) -> bool {
    lines.windows(2).all(|two| two[0].value == two[1].value)
}

/// Places that do not agree.
pub(crate) fn conflicting(lines: &[Setting]) -> Vec<Case> {
    if agree(lines) {
        return Vec::new();
    }
    let case = Case::sure(format!(
        "{} places set the THP policy to different values: it depends on their order",
        lines.len()
    ));
    let case = lines.iter().fold(case, |case, line| {
        case.seen(&line.place, "transparent_hugepage", &line.value)
    });
    vec![case.fix("keep one of them, best the boot command line, and remove the others")]
}

pub(super) fn drift(evidence: &Evidence) -> Answer {
    let of_pools = pools(evidence).and_then(|pools| each(pools, |pool| pool_drift(evidence, pool)));
    parts([each([policy_drift(evidence)], |case| case), of_pools])
}

fn policy_drift(evidence: &Evidence) -> Result<Option<Case>, Reason> {
    let lines = known(&evidence.config.thp_policy)?;
    let Some(last) = lines.last() else { return Ok(None) };
    if lacks_thp(evidence) {
        return Ok((last.value != "never").then(|| without_thp(last)));
    }
    let now = &known(&thp(evidence)?.enabled)?.chosen;
    // Where they disagree, D22 says so.
    if !agree(lines) || *now == last.value {
        return Ok(None);
    }
    let next = evidence.config.next_boot.as_ref();
    let case = match next.is_some_and(|next| next.place == last.place) {
        true => not_booted_with(evidence, now, last),
        false => Case::sure(format!(
            "the THP policy is `{now}` now and will be `{}` after the next boot",
            last.value
        ))
        .write_as("enabled", &last.value, |command| format!("to revert: {command}")),
    };
    let case = case.seen(thp_file("enabled"), "", now);
    let case = case.seen(&last.place, "transparent_hugepage", &last.value);
    Ok(Some(case.fix_if(
        !is_unwanted(evidence, now),
        format!("or to keep `{now}`: set it in {}", last.place),
    )))
}

/// Do other findings ask for another policy, for a program that runs?
fn is_unwanted(evidence: &Evidence, policy: &str) -> bool {
    policy == "always" && against_always(evidence, false).is_some()
}

/// A policy for a kernel without THP.
fn without_thp(line: &Setting) -> Case {
    Case::sure(format!(
        "the THP policy `{}` of {} has no effect: this kernel was built without THP",
        line.value, line.place
    ))
    .seen(&line.place, "transparent_hugepage", &line.value)
    .seen(thp_file("enabled"), "", "not there")
    .fix("take it out there, or start a kernel with CONFIG_TRANSPARENT_HUGEPAGE (kernels with PREEMPT_RT have none)")
}

/// The defaults of GRUB are not the boot line: what wrote them there did not write the boot loader's configuration.
fn not_booted_with(evidence: &Evidence, now: &str, line: &Setting) -> Case {
    let parameter = format!("transparent_hugepage={}", line.value);
    Case::sure(format!(
        "the THP policy is `{now}`: `{parameter}` stands in {}, and the running kernel was started without it",
        line.place
    ))
    .seen("/proc/cmdline", "transparent_hugepage", "not set")
    .fix(format!("to have it at boot: {}", boot_again(evidence, &parameter)))
    .write_as("enabled", &line.value, |command| {
        format!("at once, until then: {command}")
    })
}

/// More pages than requested; fewer are reported by A01, and those that starve the machine by A03.
fn pool_drift(evidence: &Evidence, pool: &Pool) -> Result<Option<Case>, Reason> {
    let is_default = default_size(evidence)? == pool.size;
    let file = known(&evidence.config.sysctl)?.number("vm.nr_hugepages")?;
    if file.is_none() || !is_default {
        known(&evidence.config.boot)?;
    }
    known(&evidence.config.pool_lines)?;
    let asked = request(evidence, pool)?;
    let now = persistent(pool)?;
    if starves(evidence, pool) || is_written(evidence, pool) {
        return Ok(None);
    }
    let size = pool.size.exact();
    Ok(match asked {
        Some((pages, line)) if now > pages => Some(
            Case::sure(format!(
                "the pool of {size} pages has {now} pages now and will have {pages} after the next boot"
            ))
            .link(Some(links::HUGETLB))
            .seen(pool_file(pool, "nr_hugepages"), "", now)
            .seen(line.place, "requested", pages)
            .fix(format!("to keep it: raise the number there to {}", Count::kept(pool.size))),
        ),
        None if now > 0 && !is_for_enclaves(evidence, bytes(pool, now)) => Some(
            Case::hint(format!(
                "no file requests the pool of {} in pages of {size}: unless a unit or an agent does, it is gone after the next boot",
                bytes(pool, now)
            ))
            .severity(Severity::Info)
            .link(Some(links::HUGETLB))
            .seen(pool_file(pool, "nr_hugepages"), "", now)
            .fix(keep_pool(evidence, pool.size, Count::kept(pool.size))),
        ),
        _ => None,
    })
}

/// Does the allocator of Nitro enclaves make such a pool whenever it starts?
fn is_for_enclaves(evidence: &Evidence, memory: Bytes) -> bool {
    let mib: Option<u64> = evidence.config.enclaves.as_ref().and_then(|set| set.value.parse().ok());
    mib.is_some_and(|mib| Bytes::mib(mib) >= memory)
}

pub(super) fn newer(evidence: &Evidence) -> Answer {
    let policy = thp_file("enabled");
    let applied = known(&evidence.applied)?.iter().rfind(|applied| applied.path == policy);
    let Some(applied) = applied.filter(|applied| applied.value != "never") else {
        return Ok(Vec::new());
    };
    each(programs(evidence)?, |program| {
        let Some(details) = program.details.as_ref() else {
            return Ok(None);
        };
        let backing = known(&program.pages.backing)?;
        let base = backing.of(PageKind::Base);
        let old = *known(&details.started)? < applied.at;
        if !old || base < Bytes::mib(64) || backing.of(PageKind::Thp) >= base || program.hugetlb()?.0 > 0 {
            return Ok(None);
        }
        let case = Case::likely(format!(
            "{} started before the policy was changed: {base} of it is still backed by base pages",
            program.title()
        ))
        .seen("journal", &applied.path, &applied.value)
        .seen(program.file("stat"), "started, seconds after boot", &details.started)
        .seen_backing(program, PageKind::Base, base)
        .fix(format!("restart {}", program.pages.name))
        .collapse("or", program.pid());
        Ok(Some(case))
    })
}
