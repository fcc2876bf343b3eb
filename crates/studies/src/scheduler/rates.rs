//! How fast a CPU works, in whole parts of 65,536: by its node, its siblings and where the memory is.

use super::scenario::{Costs, Idle};
use super::topology::Topology;

/// Bits behind the point of a rate, and of work.
pub(super) const POINT: u32 = 16;
const FULL: f64 = (1 << POINT) as f64;

/// Rates by node, place of memory and number of busy siblings.
#[derive(Debug)]
pub(super) struct Rates {
    table: Vec<u32>,
    /// Numbers of busy siblings: 0 up to all.
    counts: usize,
}

impl Rates {
    pub(super) fn new(costs: &Costs, topology: Topology) -> Self {
        let siblings = topology.threads_per_core - 1;
        let mut table = Vec::new();
        for node in 0..topology.nodes as usize {
            let node = costs.node_rates.get(node).copied().unwrap_or(1.0);
            for memory in [1.0, 1.0 - costs.remote_memory] {
                for busy in 0..=siblings {
                    let lost = match costs.idle {
                        Idle::Halts => f64::from(busy) / f64::from(siblings.max(1)),
                        Idle::Spins if siblings == 0 => 0.0,
                        Idle::Spins => 1.0,
                    };
                    let rate = node * memory * (1.0 - costs.sibling_busy * lost);
                    table.push(((rate * FULL).round() as u32).max(1));
                }
            }
        }
        Self {
            table,
            counts: siblings as usize + 1,
        }
    }

    #[inline]
    pub(super) fn of(&self, node: u32, is_remote: bool, busy_siblings: u32) -> u32 {
        let row = 2 * node as usize + usize::from(is_remote);
        self.table[row * self.counts + busy_siblings as usize]
    }

    /// Does a rate hang on what siblings do?
    pub(super) fn see_siblings(&self) -> bool {
        self.table
            .chunks(self.counts)
            .any(|row| row.iter().any(|rate| *rate != row[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::{Rates, Topology};
    use crate::scheduler::{Costs, Idle};

    #[test]
    fn rates_follow_node_memory_and_siblings() {
        let topology = Topology {
            nodes: 2,
            sockets: 2,
            cores_per_socket: 1,
            threads_per_core: 2,
        };
        let costs = Costs {
            node_rates: vec![1.0, 0.75],
            remote_memory: 0.5,
            sibling_busy: 0.25,
            ..Costs::none()
        };
        let rates = Rates::new(&costs, topology);
        assert_eq!((rates.of(0, false, 0), rates.of(0, true, 0)), (65_536, 32_768));
        assert_eq!((rates.of(1, false, 0), rates.of(0, false, 1)), (49_152, 49_152));
        let spins = Costs {
            idle: Idle::Spins,
            ..costs
        };
        let spins = Rates::new(&spins, topology);
        assert!(spins.of(0, false, 0) == 49_152 && rates.see_siblings() && !spins.see_siblings());
    }
}
