//! Memory limits that keep huge pages from being charged.

use model::Bytes;
use programs::Evidence;
use programs::Limit;

use crate::facts::programs;
use crate::rule::{Answer, Case};

pub(super) fn blocked(evidence: &Evidence) -> Answer {
    let memory = &evidence.snapshot.memory;
    let refused = memory.count("thp_fault_fallback_charge").into_result()?;
    let given = memory.count("thp_fault_alloc").into_result()?;
    if refused < 100 || refused.saturating_mul(100) < given {
        return Ok(Vec::new());
    }
    let mut full: Vec<(&str, Bytes, Bytes)> = Vec::new();
    for program in programs(evidence)? {
        let Ok(Some(groups)) = program.cgroup() else { continue };
        for level in &groups.levels {
            let (Some(Limit::Bytes(max)), Some(now)) = (level.memory_max.known(), level.memory_current.known()) else {
                continue;
            };
            if now.0 as f64 >= *max as f64 * 0.95 && !full.iter().any(|(directory, ..)| *directory == level.directory) {
                full.push((&level.directory, *now, Bytes(*max)));
            }
        }
    }
    let confidence = if full.is_empty() { Case::hint } else { Case::likely };
    let case = confidence(format!(
        "{refused} page faults since boot got base pages because a memory limit had no room for a huge page"
    ))
    .info_if(full.is_empty())
    .seen("/proc/vmstat", "thp_fault_fallback_charge", refused)
    .seen("/proc/vmstat", "thp_fault_alloc", given);
    let case = full.iter().take(4).fold(case, |case, (directory, now, max)| {
        case.seen(format!("{directory}/memory.current"), "", now)
            .seen(format!("{directory}/memory.max"), "", max)
    });
    Ok(vec![case.fix(
        "raise memory.max of the groups that run close to it by a tenth, or reduce the program's memory",
    )])
}
