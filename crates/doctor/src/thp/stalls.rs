//! Page faults and allocations that wait for the kernel: for compaction, for reclaim on their own node, for NUMA balancing.

use host::snapshot::{Node, Thp};
use model::Bytes;
use programs::config::is_packaged;
use programs::{Evidence, Kind, Program};

use super::effort::vmstat;
use crate::facts::{advised, distribution, is_own, known, largest, looked_into, policy, running, thp, thp_file};
use crate::links;
use crate::numa::{is_confined, shares_cpus};
use crate::pools::is_starved;
use crate::remedy::Need;
use crate::rule::answers::{parts, readable};
use crate::rule::{Answer, Case, Reason};

pub(super) fn stalls(evidence: &Evidence) -> Answer {
    parts([
        for_compaction(evidence),
        for_own_node(evidence),
        for_balancing(evidence),
    ])
}

/// So many waits since boot matter.
const MANY: u64 = 1000;
/// Fewer are of no account on any machine.
const FEW: u64 = 100;

/// Do page faults wait for compaction often? More of it in the background is no help then.
pub(super) fn stalls_much(evidence: &Evidence) -> bool {
    vmstat(evidence, "compact_stall").is_ok_and(|stalls| stalls >= MANY)
        && for_compaction(evidence).is_ok_and(|cases| !cases.is_empty())
}

fn for_compaction(evidence: &Evidence) -> Answer {
    let thp = thp(evidence)?;
    let defrag = &known(&thp.defrag)?.chosen;
    if policy(evidence)? == "never"
        || matches!(defrag.as_str(), "never" | "defer")
        || is_starved(evidence)
        || is_confined(evidence)
    {
        return Ok(Vec::new());
    }
    let (stalls, failed) = (vmstat(evidence, "compact_stall")?, vmstat(evidence, "compact_fail")?);
    let is_always = defrag == "always";
    let least = if is_always { FEW } else { MANY };
    if stalls < least {
        return Ok(Vec::new());
    }
    // Elsewhere only memory that was advised waits.
    let advised = if is_always { None } else { most_advised(evidence)? };
    if !is_always && advised.is_none() {
        return Ok(Vec::new());
    }
    let who = advised
        .as_ref()
        .map_or("page faults wait".to_owned(), |(program, bytes)| {
            format!(
                "page faults in advised memory wait, of which {} has most ({bytes}),",
                program.title()
            )
        });
    let case = Case::likely(format!(
        "{who} for compaction: {stalls} waited since boot, {failed} of them without success, each for up to many milliseconds"
    ))
    .info_if(stalls < MANY)
    .seen(thp_file("defrag"), "", defrag)
    .seen("/proc/vmstat", "compact_stall", stalls)
    .seen("/proc/vmstat", "compact_fail", failed);
    Ok(vec![match advised {
        Some((program, bytes)) => case
            .seen(program.file("smaps"), "VmFlags: hg", bytes)
            .write("defrag", "defer")
            .fix("or let the program not advise: Go 1.21.1 and later do not, jemalloc thp:default, -XX:-UseTransparentHugePages, NUMPY_MADVISE_HUGEPAGE=0"),
        None => softer(case, thp),
    }])
}

/// With less waiting for memory that was not advised.
fn softer(case: Case, thp: &Thp) -> Case {
    let has_both = thp
        .defrag
        .known()
        .is_some_and(|choice| choice.offered.iter().any(|offered| offered == "defer+madvise"));
    let softer = if has_both { "defer+madvise" } else { "madvise" };
    case.write("defrag", softer)
        .otherwise("a newer kernel: its defrag offers `madvise` and `defer`")
}

/// The program with most memory that it advised.
pub(super) fn most_advised(evidence: &Evidence) -> Result<Option<(&Program, Bytes)>, Reason> {
    let (advised, unknown) = readable(looked_into(evidence)?.map(|examined| {
        let (program, _) = examined?;
        Ok((program, advised(program)?))
    }));
    match unknown {
        Some(reason) if advised.is_empty() => Err(reason),
        _ => Ok(largest(advised).filter(|(_, bytes)| *bytes >= WORTH_ADVISING)),
    }
}

/// Advice on less memory causes few faults.
const WORTH_ADVISING: Bytes = Bytes::mib(16);

/// A counter of vmstat that kernels without it do not count.
fn counted(evidence: &Evidence, name: &str) -> Result<u64, Reason> {
    Ok(evidence.snapshot.memory.count(name).or_if_absent(0)?)
}

/// The nodes, and a mode that matters only with several: 0 elsewhere.
fn mode_of<'e>(evidence: &'e Evidence, name: &str) -> Result<(u64, &'e [Node]), Reason> {
    let mode = evidence.snapshot.sysctls.number::<u64>(name).or_if_absent(0)?;
    if mode == 0 {
        return Ok((0, &[]));
    }
    let nodes: &[Node] = known(&evidence.snapshot.topology.nodes)?;
    Ok(if nodes.len() < 2 { (0, nodes) } else { (mode, nodes) })
}

/// With another value of that setting: at once, and at boot in the line that sets it. What is in /etc/sysctl.d holds before a package's own file.
fn set(case: Case, evidence: &Evidence, name: &'static str, value: u64) -> Case {
    let case = case.fix_with(Need::Sysctl(name), format!("sysctl -w {name}={value}"));
    let line = evidence.config.sysctl.known().and_then(|files| files.last(name));
    let case = case.with(line, Case::seen_line);
    match line.filter(|line| !is_packaged(&line.place)) {
        Some(line) => case.fix(format!(
            "and {name} = {value} in {}, in place of {}",
            line.place, line.value
        )),
        None => case.fix(format!(
            "to keep it: {}",
            distribution(evidence).keep_setting(name, value)
        )),
    }
}

/// A node that is full gives up page cache, or swaps, before memory of another one is taken. A program that fills its own node alone may want
/// it, as profiles for HPC do: the mode alone is no fault. MongoDB's production notes ask for 0.
fn for_own_node(evidence: &Evidence) -> Answer {
    let name = "vm.zone_reclaim_mode";
    let (mode, _) = mode_of(evidence, name)?;
    if mode == 0 {
        return Ok(Vec::new());
    }
    let is_mongo = |program: &&Program| program.kind.known().copied().flatten() == Some(Kind::Mongo);
    let mongo = running(evidence).find(is_mongo);
    let (done, failed) = (
        counted(evidence, "zone_reclaim_success")?,
        counted(evidence, "zone_reclaim_failed")?,
    );
    let waits = done.saturating_add(failed);
    if mongo.is_none() && waits < MANY {
        return Ok(Vec::new());
    }
    let who = mongo.map_or_else(String::new, |program| {
        format!("; MongoDB asks for 0, and {} is running", program.title())
    });
    // Documentation/admin-guide/sysctl/vm.rst: 1 reclaims, 2 writes dirty pages out, 4 swaps.
    let how = match (mode & 4 > 0, mode & 2 > 0) {
        (true, _) => "gives up page cache and swaps",
        (false, true) => "gives up page cache and writes it out",
        (false, false) => "gives up page cache",
    };
    let case = Case::likely(format!(
        "allocations wait while their own node {how}, even if other nodes have free memory{who}"
    ))
    .info_if(mongo.is_none())
    .link(Some(links::SYSCTL))
    .seen("/proc/sys/vm/zone_reclaim_mode", "", mode)
    .when(waits > 0, |case| {
        case.seen("/proc/vmstat", "zone_reclaim_success", done)
            .seen("/proc/vmstat", "zone_reclaim_failed", failed)
    });
    Ok(vec![set(case, evidence, name, 0)])
}

/// Fewer page faults for it, of each CPU in a second, are usual: the kernel looks at all memory of a busy process once a minute or more often, also
/// where each page is where it belongs. One takes a microsecond or two.
const MANY_HINTS: f64 = 1000.0;
/// A shorter time since boot has the start of programs in it, when pages do move.
const SETTLED: f64 = 3600.0;
/// If fewer of a hundred such faults move a page, pages are where they can be, or used from all nodes.
const WORTH_MOVING: f64 = 0.01;
/// A smaller program is no reason for many of them.
const WORTH: Bytes = Bytes::gib(1);

/// Automatic NUMA balancing takes mappings away so that the next access faults and shows its node. It pays off where pages move then.
fn for_balancing(evidence: &Evidence) -> Answer {
    let name = "kernel.numa_balancing";
    let (mode, nodes) = mode_of(evidence, name)?;
    let (faults, moved) = (
        counted(evidence, "numa_hint_faults")?,
        counted(evidence, "numa_pages_migrated")?,
    );
    // Without its first bit it is for tiers of memory alone.
    if mode & 1 == 0 || faults == 0 {
        return Ok(Vec::new());
    }
    let share = moved as f64 / faults as f64;
    if share >= WORTH_MOVING {
        return Ok(Vec::new());
    }
    let (uptime, cpus) = counted_for(evidence)?;
    let rate = faults as f64 / uptime.max(1.0);
    let of_cpu = rate / cpus;
    if uptime < SETTLED || of_cpu < MANY_HINTS {
        return Ok(Vec::new());
    }
    let spread = spread(evidence, nodes);
    let others = spread.len().saturating_sub(1) as u64;
    let program = largest(spread).map(|(program, _)| program);
    let who = program.map_or_else(String::new, |program| match others {
        0 => format!(". {} runs on CPUs of several nodes", program.title()),
        _ => format!(". {} and {others} more run on CPUs of several nodes", program.title()),
    });
    let case = Case::likely(format!(
        "automatic NUMA balancing has caused {rate:.0} page faults a second since boot, {of_cpu:.0} on each CPU, each of which holds up a thread. Only {:.1} % of these faults moved a page{who}",
        share * 100.0
    ))
    .info_if(program.is_none())
    .link(Some(links::SYSCTL_KERNEL))
    .seen("/proc/sys/kernel/numa_balancing", "", mode)
    .seen("/proc/vmstat", "numa_pte_updates", counted(evidence, "numa_pte_updates")?)
    .seen("/proc/vmstat", "numa_hint_faults", faults)
    .seen("/proc/vmstat", "numa_pages_migrated", moved)
    .seen("/proc/uptime", "", uptime)
    .with(program, |case, program| {
        case.seen(program.file("status"), "Cpus_allowed_list", &program.cpus)
    });
    // Its second bit, which moves pages between tiers of memory, stays.
    Ok(vec![set(case, evidence, name, mode & !1).fix(
        "and keep each process on one node instead: numactl --cpunodebind=NODE --membind=NODE, or a cpuset",
    )])
}

/// Seconds and CPUs that the counters of /proc/vmstat are of: the machine's, in a container too.
fn counted_for(evidence: &Evidence) -> Result<(f64, f64), Reason> {
    if evidence.config.is_inside {
        return Err("a container shows neither the machine's CPUs nor its time since boot".into());
    }
    let cpus = known(&evidence.snapshot.topology.online)?.len().max(1);
    Ok((*known(&evidence.uptime)?, cpus as f64))
}

/// Programs that may run on CPUs of several nodes, with their memory.
fn spread<'e>(evidence: &'e Evidence, nodes: &[Node]) -> Vec<(&'e Program, Bytes)> {
    let is_spread = |program: &&Program| {
        let cpus = program.cpus.known();
        cpus.is_some_and(|cpus| nodes.iter().filter(|node| shares_cpus(node, cpus)).count() > 1)
    };
    let spread = running(evidence).filter(|program| !is_own(program)).filter(is_spread);
    let sized = spread.filter_map(|program| Some((program, *program.pages.rss.known()?)));
    sized.filter(|(_, rss)| *rss >= WORTH).collect()
}
