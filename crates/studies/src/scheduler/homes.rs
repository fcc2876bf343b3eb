//! What the balance of nodes remembers: who is placed where, and what it wanted.

use super::Ns;
use super::scenario::Scenario;

/// What the balance of nodes is made of.
#[derive(Debug)]
pub(super) struct Homes {
    /// Virtual CPUs placed, by node.
    pub(super) placed: Vec<u32>,
    /// By machine: may it move?
    pub(super) is_free: Vec<bool>,
    /// By machine: time it ran or waited until the last look.
    pub(super) wanted: Vec<Ns>,
}

impl Homes {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let is_free = |vm: &super::Vm| vm.node.is_none() && vm.seen.is_empty();
        Self {
            placed: vec![0; scenario.topology.nodes as usize],
            is_free: scenario.vms.iter().map(is_free).collect(),
            wanted: vec![0; scenario.vms.len()],
        }
    }
}
