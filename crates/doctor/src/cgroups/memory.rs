//! Memory limits that keep huge pages from being charged.

use std::collections::BTreeMap;

use model::Bytes;
use programs::{Area, Evidence, Limit};

use crate::facts::{each_looked_into, known, programs};
use crate::rule::{Answer, Case};

/// hugetlb pages that count against memory.max, where the rest of them no longer fits.
pub(super) fn counts_hugetlb(evidence: &Evidence) -> Answer {
    known(&evidence.snapshot.cgroup.version)?;
    if !evidence.snapshot.cgroup.counts_hugetlb {
        return Ok(Vec::new());
    }
    each_looked_into(evidence, |program, _| {
        let mapped = program.areas()?.iter().filter(|area| area.is_hugetlb());
        let mapped: Bytes = mapped.map(Area::size).sum();
        let Some(groups) = program.cgroup()?.filter(|_| mapped.0 > 0) else {
            return Ok(None);
        };
        let untouched = mapped.0.saturating_sub(program.hugetlb()?.0);
        let tight = groups.levels.iter().find_map(|level| {
            let (Limit::Bytes(max), now) = (*level.memory_max.known()?, *level.memory_current.known()?) else {
                return None;
            };
            (now.0.saturating_add(untouched) > max).then_some((level, Bytes(max), now))
        });
        Ok(tight.map(|(level, max, now)| {
            Case::sure(format!(
                "{} can still touch {} of hugetlb pages, and its control group has {now} of {max}: here hugetlb pages count against memory.max",
                program.title(),
                Bytes(untouched)
            ))
            .seen("/proc/self/mounts", "cgroup2", "memory_hugetlb_accounting")
            .seen(format!("{}/memory.max", level.directory), "", max)
            .seen(format!("{}/memory.current", level.directory), "", now)
            .seen_hugetlb(program, program.hugetlb().unwrap_or_default())
            .fix(format!(
                "raise memory.max of {} by what the program maps of hugetlb pages ({mapped})",
                level.directory
            ))
            .fix("or mount the hierarchy without memory_hugetlb_accounting")
        }))
    })
}

pub(super) fn blocked(evidence: &Evidence) -> Answer {
    let memory = &evidence.snapshot.memory;
    let refused = memory.count("thp_fault_fallback_charge").into_result()?;
    let given = memory.count("thp_fault_alloc").into_result()?;
    if refused < 100 || refused.saturating_mul(100) < given {
        return Ok(Vec::new());
    }
    let all = programs(evidence)?.iter();
    let groups = all.filter_map(|program| program.cgroup().ok().flatten());
    let full = groups.flat_map(|groups| &groups.levels).filter_map(|level| {
        let (Limit::Bytes(max), now) = (*level.memory_max.known()?, *level.memory_current.known()?) else {
            return None;
        };
        (now.0 as f64 >= max as f64 * 0.95).then_some((level.directory.as_str(), (now, Bytes(max))))
    });
    let full: BTreeMap<&str, (Bytes, Bytes)> = full.collect();
    let confidence = if full.is_empty() { Case::hint } else { Case::likely };
    let case = confidence(format!(
        "{refused} page faults since boot got base pages because a memory limit had no room for a huge page"
    ))
    .info_if(full.is_empty())
    .seen("/proc/vmstat", "thp_fault_fallback_charge", refused)
    .seen("/proc/vmstat", "thp_fault_alloc", given);
    let case = full.iter().take(4).fold(case, |case, (directory, (now, max))| {
        case.seen(format!("{directory}/memory.current"), "", now)
            .seen(format!("{directory}/memory.max"), "", max)
    });
    Ok(vec![case.fix(
        "raise memory.max of the groups that run close to it by a tenth, or reduce the program's memory",
    )])
}
