//! What meminfo alone shows, where the directory of the kernel's pools is not known.

use model::Bytes;
use programs::Evidence;

use super::asked::is_part;
use super::meant::{meant_for, start};
use super::size::{self, unnamed};
use super::used::{self, WORTH, idle_text, is_idle};
use crate::demand::is_asked_for;
use crate::facts::{bytes, default_size, of_meminfo, persistent};
use crate::rule::{Answer, Case};

pub(super) fn pool_idle(evidence: &Evidence) -> Answer {
    match evidence.snapshot.pools.is_absent() {
        true => idle(evidence),
        false => used::pool_idle(evidence),
    }
}

pub(super) fn wrong_default(evidence: &Evidence) -> Answer {
    match evidence.snapshot.pools.is_absent() {
        true => other_sizes(evidence),
        false => size::wrong_default(evidence),
    }
}

fn idle(evidence: &Evidence) -> Answer {
    let pool = of_meminfo(evidence)?;
    // A program of a file that was given is not running yet, nor one that waits for the rest of the pool.
    let is_waited_for = is_asked_for(evidence, pool.size).unwrap_or(false)
        || evidence.files.takes_by_files().is_some()
        || is_part(evidence, &pool);
    if is_waited_for || !is_idle(&pool)? {
        return Ok(Vec::new());
    }
    let memory = bytes(&pool, persistent(&pool)?);
    let meant = meant_for(evidence, &pool, memory);
    let case = Case::likely(idle_text(&pool, memory, !meant.is_empty()))
        .info_if(memory < WORTH || !meant.is_empty())
        .seen("/proc/meminfo", "HugePages_Total", &pool.nr)
        .seen("/proc/meminfo", "HugePages_Free", &pool.free)
        .seen("/proc/meminfo", "HugePages_Rsvd", &pool.reserved);
    Ok(vec![match meant.is_empty() {
        false => start(case, &meant),
        true => case
            .fix("start the program that the pool is meant for, and look again")
            .fix("if no program is to use it, ask for fewer pages where they are asked for: sysctl.d, or the boot command line"),
    }])
}

/// It counts the default pool page by page, and all pools together in `Hugetlb`.
fn other_sizes(evidence: &Evidence) -> Answer {
    let memory = &evidence.snapshot.memory;
    let default = default_size(evidence)?;
    let all = memory.get("Hugetlb").into_result()?;
    let own = memory.pages("HugePages_Total").into_result()?;
    let elsewhere = all.0.saturating_sub(own.saturating_mul(default.0));
    if own > 0 || elsewhere == 0 {
        return Ok(Vec::new());
    }
    let case = unnamed(default, Bytes(elsewhere), "another size")
    .seen("/proc/meminfo", "Hugepagesize", default)
    .seen("/proc/meminfo", "HugePages_Total", own)
    .seen("/proc/meminfo", "Hugetlb", all)
    .fix("look at the pools of all sizes: grep . /sys/kernel/mm/hugepages/*/*_hugepages")
    .fix("name that size in the program (PostgreSQL huge_page_size, Java -XX:LargePageSizeInBytes), or make it the default: default_hugepagesz=");
    Ok(vec![case])
}
