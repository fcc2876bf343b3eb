//! Pools by NUMA node.

use host::CpuList;
use host::snapshot::{Feature, Pool};
use model::Bytes;
use programs::config::given::{FileKind, pages_at};
use programs::config::{Setting, is_of_node};
use programs::{Area, Evidence, Kind, Program};

use super::confined::shares_cpus;
use crate::demand::{Shortage, is_bound, is_no_hugetlbfs, shortages};
use crate::facts::{absent, bytes, is_own, known, node_file, pages_for, pool_file, pools, programs, running};
use crate::kept::{boot_fix, filled_from_cma, keep_files};
use crate::pools::{is_written_by_node, mount_there};
use crate::remedy::{Need, Remedy};
use crate::rule::answers::{each, parts};
use crate::rule::{Answer, Case, Reason};

pub(super) fn imbalance(evidence: &Evidence) -> Answer {
    let by_node = known(&evidence.config.boot)?.is_by_node();
    each(pools(evidence)?, |pool| {
        if by_node || *known(&pool.nr)? == 0 {
            return Ok(None);
        }
        let nodes = known(&pool.nodes)?;
        let without = without_cpus(evidence)?;
        let all = nodes.iter().map(|node| Ok((node.node, *known(&node.nr)?)));
        let all = all.collect::<Result<Vec<(u32, u64)>, Reason>>()?.into_iter();
        let (far, counts): (Vec<_>, Vec<_>) = all.partition(|(node, _)| without.contains(node));
        if let Some(case) = far_away(evidence, pool, &counts, &far) {
            return Ok(Some(case));
        }
        let least = counts.iter().min_by_key(|(_, pages)| *pages);
        let most = counts.iter().max_by_key(|(_, pages)| *pages);
        let (Some(&(poor, least)), Some(&(rich, most))) = (least, most) else {
            return Ok(None);
        };
        // A remainder of one page per node is how an odd number is shared out.
        if most - least <= 1 || most as f64 <= least as f64 * 1.2 || is_meant(evidence, pool, &counts) {
            return Ok(None);
        }
        Ok(Some(lopsided(evidence, pool, &counts, (poor, least), (rich, most))))
    })
}

/// Are the pages on purpose where they are: written by node, for programs of files that are bound to nodes, or most of them in use by programs
/// that stay on such a node?
fn is_meant(evidence: &Evidence, pool: &Pool, counts: &[(u32, u64)]) -> bool {
    let mut lines = evidence.config.pool_lines.known().into_iter().flatten();
    if lines.any(|line| line.is_by_node && line.size == Some(pool.size))
        || evidence.files.sysctl.iter().any(|line| is_of_node(line, pool.size))
        || is_written_by_node(evidence, pool)
        || is_bound(evidence, pool.size)
    {
        return true;
    }
    let mut applied = evidence.applied.known().into_iter().flatten();
    if applied.any(|applied| counts.iter().any(|(node, _)| applied.path == node_file(pool, *node))) {
        return true;
    }
    let all = sum(counts);
    let has_share = |home: u32| {
        let own = counts.iter().find(|(node, _)| *node == home);
        own.is_some_and(|(_, pages)| pages.saturating_mul(counts.len() as u64) >= all)
    };
    let holders = running(evidence).filter(|program| program.hugetlb().is_ok_and(|has| has.0 > 0));
    let homes: Option<Vec<u32>> = holders.map(|program| home(evidence, program)).collect();
    pool.taken().is_some_and(|taken| taken >= all.div_ceil(2))
        && homes.is_some_and(|homes| !homes.is_empty() && homes.into_iter().all(has_share))
}

/// The one node that a program may take memory from, or on whose CPUs alone it runs.
fn home(evidence: &Evidence, program: &Program) -> Option<u32> {
    if let Some(nodes) = program.nodes.known().filter(|nodes| nodes.len() == 1) {
        return nodes.first();
    }
    let cpus = program.cpus.known()?;
    let nodes = evidence.snapshot.topology.nodes.known()?.iter();
    let mut nodes = nodes.filter(|node| shares_cpus(node, cpus));
    let first = nodes.next()?.node;
    nodes.next().is_none().then_some(first)
}

/// Nodes of memory alone: CXL, persistent memory, that of accelerators.
fn without_cpus(evidence: &Evidence) -> Result<Vec<u32>, Reason> {
    let nodes = evidence.snapshot.topology.nodes.as_ref().if_present()?;
    let mut without = Vec::new();
    for node in nodes.into_iter().flatten() {
        if node.cpus.as_ref().map(CpuList::is_empty).or_if_absent(false)? {
            without.push(node.node);
        }
    }
    Ok(without)
}

/// Nodes of memory alone that have the share of any other: the pool was requested without a node. Other counts were written by node.
fn far_away(evidence: &Evidence, pool: &Pool, near: &[(u32, u64)], far: &[(u32, u64)]) -> Option<Case> {
    let counts: Vec<(u32, u64)> = near.iter().chain(far).copied().collect();
    let pages = || counts.iter().map(|(_, pages)| *pages);
    let (least, most) = (pages().min()?, pages().max()?);
    if far.is_empty() || near.is_empty() || least == 0 || most - least > 1 {
        return None;
    }
    let pages = sum(far);
    let names: Vec<String> = far.iter().map(|(node, _)| format!("node {node}")).collect();
    let mut case = Case::likely(format!(
        "{pages} pages of {} are on {}, which {} memory and no CPUs (CXL, persistent memory, an accelerator): the kernel spreads a pool over all nodes, \
         and programs use that memory as if it were near",
        pool.size.exact(),
        names.join(" and "),
        if far.len() == 1 { "has" } else { "have" }
    ));
    for (node, pages) in far {
        let file = node_file(pool, *node);
        case = case
            .seen(&file, "", *pages)
            .seen(format!("/sys/devices/system/node/node{node}/cpulist"), "", "empty")
            .fix_if(!is_for_boot(evidence, pool), format!("echo 0 > {file}"));
    }
    Some(shared_out(case, evidence, pool, near, sum(&counts)))
}

/// Pages of this size that are freed are hardly made again before the next boot.
fn is_for_boot(evidence: &Evidence, pool: &Pool) -> bool {
    pool.size >= Bytes::gib(1) && filled_from_cma(evidence, pool.size).is_none()
}

/// Pages on all of these nodes.
fn sum(shares: &[(u32, u64)]) -> u64 {
    shares.iter().map(|(_, pages)| *pages).fold(0, u64::saturating_add)
}

fn writes(pool: &Pool, shares: &[(u32, u64)]) -> String {
    let write = |(node, pages): &(u32, u64)| format!("echo {pages} > {}", node_file(pool, *node));
    shares.iter().map(write).collect::<Vec<_>>().join(" && ")
}

/// So many pages on each node, from the kernel's start on.
fn at_boot(case: Case, evidence: &Evidence, pool: &Pool, shares: &[(u32, u64)]) -> Case {
    if filled_from_cma(evidence, pool.size).is_some() {
        return case;
    }
    let list: Vec<String> = shares.iter().map(|(node, pages)| format!("{node}:{pages}")).collect();
    let parameters = format!("hugepagesz={} hugepages={}", pool.size.exact(), list.join(","));
    let text = format!("from the next boot on: {}", boot_fix(evidence, &parameters));
    // What waits for more of these pages asks for a larger pool.
    let remedy = Remedy::new(text).need(Need::Feature(Feature::NodePages));
    let unit = format!(
        "have a unit do it at boot, before any service starts, where the boot line cannot name nodes (before Linux 5.16): {}",
        writes(pool, shares)
    );
    let unwanted = || Need::Unwanted(pool.size);
    case.remedy(remedy.need(unwanted()))
        .remedy(Remedy::new(unit).last().need(unwanted()))
}

/// With the way to have so many pages on these nodes alone: the first ones take what remains of an even share.
fn shared_out(case: Case, evidence: &Evidence, pool: &Pool, near: &[(u32, u64)], all: u64) -> Case {
    let nodes = near.len().max(1) as u64;
    let shares = (1..=nodes).map(|nth| all.saturating_add(nodes - nth) / nodes);
    let shares: Vec<(u32, u64)> = near.iter().map(|(node, _)| *node).zip(shares).collect();
    let case = case.when(!is_for_boot(evidence, pool), |case| {
        case.fix_with(Need::Pool(pool.size, all), writes(pool, &shares))
            .fix("the same at each boot by a unit before the programs")
    });
    at_boot(case, evidence, pool, &shares)
}

fn lopsided(evidence: &Evidence, pool: &Pool, counts: &[(u32, u64)], poor: (u32, u64), rich: (u32, u64)) -> Case {
    let file = |node: u32| node_file(pool, node);
    let pages = sum(counts);
    let fair = pages.div_ceil(counts.len().max(1) as u64);
    let missing = Bytes(pool.size.0.saturating_mul(fair.saturating_sub(poor.1)));
    let case = Case::likely(format!(
        "node {} has {missing} less in pages of {} than its share: programs there use remote memory or get no pages",
        poor.0,
        pool.size.exact()
    ))
    .seen(file(poor.0), "", poor.1)
    .seen(file(rich.0), "", rich.1);
    if is_for_boot(evidence, pool) {
        return shared_out(case, evidence, pool, counts, pages);
    }
    // No node loses pages: programs may wait for all of them.
    let shares: Vec<(u32, u64)> = counts.iter().map(|(node, pages)| (*node, (*pages).max(fair))).collect();
    let raised: Vec<(u32, u64)> = shares.iter().copied().filter(|share| !counts.contains(share)).collect();
    let need = || Need::Pool(pool.size, sum(&shares));
    let case = case
        .fix_with(need(), writes(pool, &raised))
        .fix_with(need(), keep_nodes(evidence, pool, &raised));
    at_boot(case, evidence, pool, &shares)
}

/// How so many pages are on these nodes after the next boot too.
fn keep_nodes(evidence: &Evidence, pool: &Pool, shares: &[(u32, u64)]) -> String {
    let files = shares.iter().map(|(node, pages)| (node_file(pool, *node), *pages));
    format!("to keep it: {}", keep_files(evidence, &files.collect::<Vec<_>>()))
}

pub(super) fn mismatch(evidence: &Evidence) -> Answer {
    let pools: Vec<&Pool> = pools(evidence)?.iter().collect();
    let is_spread = |pool: &&&Pool| pool.nodes.known().is_some_and(|nodes| nodes.len() > 1);
    let spread: Vec<&Pool> = pools.iter().filter(is_spread).copied().collect();
    if spread.is_empty() {
        // One node only: nothing can be bound away from the pool. Unless the nodes could not be read.
        for pool in &pools {
            known(&pool.nodes)?;
            known(&pool.free)?;
        }
    }
    each(programs(evidence)?, |program| {
        if program.details.is_none() || is_own(program) {
            known(&program.kind)?;
            return Ok(None);
        }
        if let Some(case) = socket_mem(program, &pools)? {
            return Ok(Some(case));
        }
        let case = |pool: &&Pool| starved(program, pool).transpose();
        spread.iter().find_map(case).transpose()
    })
}

/// Programs of DPDK that files start.
pub(super) fn in_files(evidence: &Evidence) -> Answer {
    if evidence.files.socket_mem().is_empty() {
        return Ok(Vec::new());
    }
    let refused = evidence.files.asked_twice_of_dpdk().into_iter().map(|set| {
        Case::sure(format!(
            "the DPDK program of {} does not start: {} and --socket-mem cannot be specified at the same time",
            set.place, set.name
        ))
        .seen_line(&set)
        .fix(format!("--socket-mem alone, or {} alone", set.name))
    });
    let case = |short: Shortage<'_>| short.case(format!("{} does not start: it {}", short.demand.who, short.text()));
    let short: Answer = shortages(evidence, FileKind::Dpdk).map(|short| short.into_iter().map(case).collect());
    let cases = refused.chain(on_no_mount(evidence)).collect();
    parts([Ok(cases), short])
}

/// Programs of DPDK whose directory for pages (`--huge-dir`, dpdk-hugepage-dir) is no hugetlbfs: they look for pages nowhere else.
fn on_no_mount(evidence: &Evidence) -> Vec<Case> {
    let asked = evidence.files.socket_mem().into_iter();
    let asked = asked.filter_map(|(set, directory)| Some((set, directory?)));
    let cases = asked.filter(|(_, directory)| is_no_hugetlbfs(directory, evidence));
    let case = |(set, directory): (Setting, String)| {
        let case = Case::sure(format!(
            "the DPDK program of {} does not start: {directory}, whose pages it is to take, is on no hugetlbfs of this machine",
            set.place
        ));
        let size = pages_at(&directory, None).flatten();
        mount_there(
            case.seen(&set.place, "directory", &directory),
            evidence,
            &directory,
            size,
        )
    };
    cases.map(case).collect()
}

/// A DPDK program without pages yet, and what it asks of each node (`--socket-mem`, in MiB), against what is free there.
fn socket_mem(program: &Program, pools: &[&Pool]) -> Result<Option<Case>, Reason> {
    if !program.is(Kind::Dpdk)? || program.hugetlb()?.0 > 0 {
        return Ok(None);
    }
    let arguments = known(&program.arguments)?;
    let Some(list) = programs::socket_mem(arguments) else {
        return Ok(None);
    };
    let is_filled = |pool: &&&Pool| pool.nr.known().is_some_and(|pages| *pages > 0);
    let Some(pool) = pools.iter().rfind(is_filled).or(pools.first()) else {
        return Ok(None);
    };
    let asked = list.split(',').map(|mib| Bytes::mib(mib.trim().parse().unwrap_or(0)));
    for (node, asked) in (0_u32..).zip(asked) {
        let mut free = None;
        for own in pools {
            if let Some(part) = known(&own.nodes)?.iter().find(|part| part.node == node) {
                let sum = free.get_or_insert(Bytes(0));
                sum.0 = sum.0.saturating_add(bytes(own, *known(&part.free)?).0);
            }
        }
        let who = format!("{} asks for {asked} on node {node} (--socket-mem)", program.title());
        let case = match free {
            None if asked.0 > 0 => no_node(&who, (node, asked), list),
            Some(free) if free < asked => too_few_on(&who, pool, (node, asked, free)),
            _ => continue,
        };
        let case = case.wants(pool.size);
        return Ok(Some(case.seen(program.file("cmdline"), "--socket-mem", list)));
    }
    Ok(None)
}

fn no_node(who: &str, (node, asked): (u32, Bytes), list: &str) -> Case {
    let there: Vec<&str> = list.split(',').take(node as usize).collect();
    let is_asked = |mib: &&str| mib.trim().parse::<u64>().is_ok_and(|mib| mib > 0);
    let there = match there.iter().any(is_asked) {
        true => there.join(","),
        // All of it was to be on nodes that are not there.
        false => (asked.0 >> 20).to_string(),
    };
    Case::likely(format!("{who}, and this machine has no such node: it does not start"))
        .seen("/sys/devices/system/node", format!("node{node}"), "not there")
        .fix_if(
            node > 0,
            format!("ask for the nodes that are there alone: --socket-mem {there}"),
        )
        .fix("in a virtual machine: or give it as many nodes as its programs ask for")
}

fn too_few_on(who: &str, pool: &Pool, (node, asked, free): (u32, Bytes, Bytes)) -> Case {
    let (pages, file) = (pages_for(asked, pool.size), node_file(pool, node));
    Case::likely(format!(
        "{who}, and {free} in hugetlb pages is free there: it does not start"
    ))
    .seen(&file, "free on the node", free)
    .fix_with(
        Need::More(pool.size, pages),
        format!("echo {pages} > {file} (beside those in use there)"),
    )
    .otherwise(format!(
        "ask for less of node {node}: the machine has no room for such a pool"
    ))
}

/// Does it still wait for pages of this pool that its nodes do not have?
fn starved(program: &Program, pool: &Pool) -> Result<Option<Case>, Reason> {
    let missing = missing(program, pool.size)?;
    if missing.0 == 0 {
        return Ok(None);
    }
    let allowed = known(&program.nodes)?;
    let free = known(&pool.nodes)?
        .iter()
        .map(|part| Ok((part.node, *known(&part.free)?)));
    let free = free.collect::<Result<Vec<(u32, u64)>, Reason>>()?.into_iter();
    let (here, elsewhere): (Vec<_>, Vec<_>) = free.partition(|(node, _)| allowed.contains(*node));
    let (here, elsewhere) = (sum(&here), sum(&elsewhere));
    if here.saturating_mul(pool.size.0) >= missing.0 || elsewhere == 0 {
        return Ok(None);
    }
    let kib = pool.size.0 >> 10;
    Ok(Some(
        Case::likely(format!(
            "{} still has {missing} of hugetlb memory to touch, and its nodes ({allowed}) have {here} free pages of {}: \
             the touch ends in SIGBUS although {elsewhere} pages are free on other nodes",
            program.title(),
            pool.size.exact()
        ))
        .seen(program.file("status"), "Mems_allowed_list", allowed)
        .seen(program.file("smaps"), "hugetlb mapped but not resident", missing)
        .seen(pool_file(pool, "free_hugepages"), "", &pool.free)
        .fix_with(
            Need::More(pool.size, (missing.0 / pool.size.0.max(1)).saturating_sub(here)),
            format!("raise /sys/devices/system/node/node{{{allowed}}}/hugepages/hugepages-{kib}kB/nr_hugepages"),
        )
        .fix("or let it use other nodes (numactl, cpuset.mems)"),
    ))
}

/// hugetlb memory of that page size that is mapped but not resident yet. Of memory shared with others only a hypervisor's
/// counts: other processes may have touched the rest of it.
fn missing(program: &Program, page: Bytes) -> Result<Bytes, Reason> {
    let alone = known(&program.kind)?.is_some_and(Kind::is_hypervisor);
    let of_page = |area: &&Area| (alone || area.is_private_data()) && area.hugetlb_page() == Some(page);
    Ok(program.areas()?.iter().filter(of_page).map(absent).sum())
}
