//! NUMA nodes that a machine lacks and that files bind memory to.

use host::CpuList;
use host::snapshot::Topology;
use model::{Cause, Unread};

use super::{Given, Guest, Manager};
use crate::dpdk::mib_by_node;

/// Everything of the files that is bound to such a node, with what comes of it.
pub(super) fn bound(given: &Given, topology: &Topology) -> Vec<Unread> {
    let guests = given.guests.iter().filter_map(|guest| {
        let mut bound = guest.bound.iter().flatten();
        let node = bound.find_map(|nodes| guest.refused_node(nodes, topology))?;
        let why = format!("{} does not start. Bind it to a node that the machine has", guest.name);
        Some(unread(&guest.place, node, &why))
    });
    let dpdk = given.socket_mem().into_iter().filter_map(|(set, _)| {
        let asked = (0_u32..).zip(mib_by_node(&set)?);
        let (node, mib) = asked.filter(|(_, mib)| *mib > 0).find(|(node, _)| topology.lacks(*node))?;
        let (name, list) = (&set.name, &set.value);
        let why = format!("the program of DPDK gets no {mib} MiB there ({name} {list}), and does not start. Ask for memory of nodes that the machine has");
        Some(unread(&set.place, node, &why))
    });
    let nova = given.nova.iter().flat_map(|nova| &nova.reserved);
    let nova = nova.filter(|own| topology.lacks(own.node)).map(|own| {
        let why =
            "nova ignores the line, and leaves no pages to other programs by it. Name a node that the machine has";
        unread(&own.place, own.node, why)
    });
    guests.chain(dpdk).chain(nova).collect()
}

fn unread(place: &str, node: u32, consequence: &str) -> Unread {
    let why = format!("this machine has no NUMA node {node} (/sys/devices/system/node/node{node}): {consequence}");
    Unread::new(Cause::Garbled, place, why)
}

impl Guest {
    /// A node of these that its manager refuses, as the machine lacks it. The kernel binds memory to those of a list that are there; libvirt and
    /// Proxmox VE look at each.
    fn refused_node(&self, nodes: &CpuList, topology: &Topology) -> Option<u32> {
        let missing = nodes.iter().find(|node| topology.lacks(*node))?;
        let is_each = matches!(self.manager, Manager::Libvirt | Manager::Proxmox);
        (is_each || nodes.iter().all(|node| topology.lacks(node))).then_some(missing)
    }
}
