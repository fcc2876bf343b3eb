//! Where a service runs: its CPUs and the node of its memory, in a drop-in of its unit.

use host::CpuList;
use host::snapshot::CgroupVersion;
use model::plan::Layer;

use super::draft::Drafts;
use super::goal::{PlacedBy, PlacementGoal};
use super::limits;

pub(super) fn draft(drafts: &mut Drafts<'_>, placement: &PlacementGoal) -> Result<(), String> {
    if !drafts.host.has_systemd() {
        let why =
            "systemd does not run here, and services of others have no such lines (start the program by `numactl`)";
        return Err(why.into());
    }
    let cpus = cpus(drafts, placement)?;
    let service = &placement.service;
    let has_cpusets = drafts.host.snapshot.cgroup.version.known() == Some(&CgroupVersion::V2);
    let (key, why) = match placement.by {
        PlacedBy::Affinity => (
            "CPUAffinity",
            "its processes start on these CPUs; they may change that themselves",
        ),
        PlacedBy::Cpuset if has_cpusets => (
            "AllowedCPUs",
            "none of its processes can leave these CPUs (systemd 244 and later)",
        ),
        PlacedBy::Cpuset => return Err("AllowedCPUs= needs cgroups of version 2 (write by=affinity)".to_owned()),
    };
    drop_in(drafts, service, &format!("{key}={cpus}"), why);
    if let Some(node) = placement.memory {
        let why = "its memory comes from this node alone (systemd 243 and later): where that is full, its processes are killed";
        drop_in(drafts, service, "NUMAPolicy=bind", why);
        drop_in(drafts, service, &format!("NUMAMask={node}"), why);
    }
    Ok(())
}

fn drop_in(drafts: &mut Drafts<'_>, service: &str, line: &str, why: &str) {
    limits::drop_in(drafts, Layer::Persistence, "placement", service, line, why);
}

/// The CPUs of the goal, or of its node, all of which this machine must have.
fn cpus(drafts: &Drafts<'_>, placement: &PlacementGoal) -> Result<CpuList, String> {
    let topology = &drafts.host.snapshot.topology;
    let online: CpuList = topology.cpus.iter().map(|cpu| cpu.cpu).collect();
    let of_node = |node: u32| -> CpuList {
        let cpus = online.iter();
        cpus.filter(|&cpu| topology.node_of(cpu) == Some(node)).collect()
    };
    let nodes = topology.nodes.known().into_iter().flatten();
    let mut nodes = nodes.map(|known| known.node);
    if let Some(node) = placement.memory.filter(|&node| nodes.all(|known| known != node)) {
        return Err(format!("this machine has no node {node}"));
    }
    let cpus = placement.cpus.clone();
    let cpus = cpus.or_else(|| placement.memory.map(of_node)).unwrap_or_default();
    if let Some(cpu) = cpus.iter().find(|&cpu| !online.contains(cpu)) {
        return Err(format!("CPU {cpu} is not online here (online: {online})"));
    }
    if cpus.is_empty() {
        let node = placement.memory.unwrap_or_default();
        return Err(format!("node {node} has no CPUs (write cpus=LIST)"));
    }
    Ok(cpus)
}
