//! Programs that run on CPUs of several nodes, and whose cpuset allows memory of full ones alone.

use host::CpuList;
use host::snapshot::Node;
use model::Bytes;
use programs::{Evidence, Program};

use crate::facts::{is_own, known, programs};
use crate::rule::answers::each;
use crate::rule::{Answer, Case, Reason};

/// A smaller program fills no node.
const WORTH: Bytes = Bytes::gib(1);

pub(super) fn confined(evidence: &Evidence) -> Answer {
    let nodes = match evidence.snapshot.topology.nodes.known() {
        Some(nodes) if nodes.len() > 1 => nodes,
        // With one node, or none, there is no other to use.
        _ => return Ok(Vec::new()),
    };
    for node in nodes {
        node.cpus.as_ref().map(drop).or_if_absent(())?;
    }
    each(programs(evidence)?, |program| {
        match (program.nodes.known(), program.cpus.known()) {
            (Some(allowed), Some(cpus)) if !is_own(program) => of_program(program, nodes, allowed, cpus),
            _ => Ok(None),
        }
    })
}

/// Is memory short on some nodes alone, because of a cpuset?
pub(crate) fn is_confined(evidence: &Evidence) -> bool {
    confined(evidence).is_ok_and(|cases| !cases.is_empty())
}

fn of_program(program: &Program, nodes: &[Node], allowed: &CpuList, cpus: &CpuList) -> Result<Option<Case>, Reason> {
    let (own, others): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(|node| allowed.contains(node.node));
    // Bound on purpose: its CPUs are those of its nodes.
    let others: Vec<&Node> = others.into_iter().filter(|node| shares_cpus(node, cpus)).collect();
    if own.is_empty() || others.is_empty() {
        return Ok(None);
    }
    let Some(&rss) = program.pages.rss.known().filter(|rss| **rss >= WORTH) else {
        return Ok(None);
    };
    let (total, left) = (sum(&own, "MemTotal")?, sum(&own, "MemFree")?);
    let (other_total, other_left) = (sum(&others, "MemTotal")?, sum(&others, "MemFree")?);
    // Where the program has most of it, page cache is not what fills the node.
    let is_full = rss.0 >= total.0 / 4 * 3 && left.0 < total.0 / 30;
    if !is_full || other_left.0 < other_total.0 / 4 {
        return Ok(None);
    }
    let more: CpuList = own.iter().chain(&others).map(|node| node.node).collect();
    let names: CpuList = others.iter().map(|node| node.node).collect();
    Ok(Some(
        Case::likely(format!(
            "{} may take memory of node {allowed} alone, where {left} is left, and runs on CPUs of node {names} too, where {other_left} is free",
            program.title()
        ))
        .seen(program.file("status"), "Mems_allowed_list", allowed)
        .seen(program.file("status"), "Cpus_allowed_list", cpus)
        .seen_rss(program)
        .fix(format!(
            "allow its cpuset, which {} names, both: cset set -s NAME --mem={more}, or {more} into cpuset.mems of that group (AllowedMemoryNodes={more} of a unit)",
            program.file("cpuset")
        ))
        .fix(format!("or let it run on the CPUs of node {allowed} alone, with less memory")),
    ))
}

/// Are some of these CPUs on that node?
pub(crate) fn shares_cpus(node: &Node, cpus: &CpuList) -> bool {
    let own = node.cpus.known();
    own.is_some_and(|own| cpus.iter().any(|cpu| own.contains(cpu)))
}

fn sum(nodes: &[&Node], name: &str) -> Result<Bytes, Reason> {
    let amounts = nodes
        .iter()
        .map(|node| Ok(known(&node.meminfo)?.get(name).into_result()?));
    amounts.sum()
}
