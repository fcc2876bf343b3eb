//! What meminfo alone shows, where the directory of the kernel's pools is not known.

use model::Bytes;
use programs::Evidence;

use super::size::{self, unnamed};
use super::used::{self, WORTH};
use crate::facts::default_size;
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

/// It shows the pool of the default size, and not whose it is.
fn idle(evidence: &Evidence) -> Answer {
    let pages = |name: &str| evidence.snapshot.memory.pages(name).into_result();
    let (nr, free) = (pages("HugePages_Total")?, pages("HugePages_Free")?);
    // Kernels before 2.6.24 have no surplus pages, and no such line.
    let (reserved, surplus) = (pages("HugePages_Rsvd")?, pages("HugePages_Surp").unwrap_or(0));
    let size = default_size(evidence)?;
    if nr <= surplus || free < nr || reserved > 0 {
        return Ok(Vec::new());
    }
    let memory = Bytes(nr.saturating_mul(size.0));
    let case = Case::likely(format!(
        "{memory} in the pool of {} pages is idle: no program uses it, and it cannot serve as other memory",
        size.exact()
    ));
    let case = case
        .info_if(memory < WORTH)
        .seen("/proc/meminfo", "HugePages_Total", nr)
        .seen("/proc/meminfo", "HugePages_Free", free)
        .seen("/proc/meminfo", "HugePages_Rsvd", reserved)
        .fix("start the program that the pool is meant for, and look again")
        .fix("if no program is to use it, ask for fewer pages where they are asked for: sysctl.d, or the boot command line");
    Ok(vec![case])
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
