//! The host: nodes, sockets, cores and SMT siblings, and the kind of a move between two logical CPUs.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most logical CPUs that are simulated.
pub const MOST_CPUS: u32 = 4096;

/// How far a world moves, cheapest first: to an SMT sibling of its core, another core of its socket, another socket of its node, another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Sibling,
    Core,
    Socket,
    Node,
}

/// A host whose parts are all alike. Siblings have consecutive numbers, then cores, sockets and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// NUMA nodes.
    pub nodes: u32,
    /// Sockets of all nodes.
    pub sockets: u32,
    /// Cores of each socket.
    pub cores_per_socket: u32,
    /// Logical CPUs of each core.
    pub threads_per_core: u32,
}

impl Topology {
    /// Logical CPUs.
    pub fn cpus(self) -> u32 {
        self.cores().saturating_mul(self.threads_per_core)
    }

    /// Cores.
    pub fn cores(self) -> u32 {
        self.sockets.saturating_mul(self.cores_per_socket)
    }

    /// What is wrong with it, if anything.
    ///
    /// # Errors
    /// In words, with what is expected.
    pub fn check(self) -> Result<(), String> {
        let Self { nodes, sockets, .. } = self;
        if [nodes, sockets, self.cores_per_socket, self.threads_per_core].contains(&0) {
            return Err("expected at least 1 node, socket, core and thread".to_owned());
        }
        if !sockets.is_multiple_of(nodes) {
            return Err(format!(
                "{sockets} sockets on {nodes} nodes: expected the same number of sockets on each node"
            ));
        }
        if self.cpus() > MOST_CPUS {
            return Err(format!("{} logical CPUs: expected at most {MOST_CPUS}", self.cpus()));
        }
        Ok(())
    }

    /// What a hypervisor with a limit of logical CPUs uses: without SMT siblings where all would be too many.
    ///
    /// # Errors
    /// If the cores alone are too many.
    pub fn within(self, limit: u32) -> Result<Self, String> {
        let single = Self {
            threads_per_core: 1,
            ..self
        };
        match (self.cpus() <= limit, single.cpus() <= limit) {
            (true, _) => Ok(self),
            (false, true) => Ok(single),
            (false, false) => Err(format!(
                "{} cores, and this policy uses at most {limit} logical CPUs: expected fewer cores",
                self.cores()
            )),
        }
    }

    /// Logical CPUs of a socket.
    fn of_socket(self) -> u32 {
        self.cores_per_socket * self.threads_per_core
    }

    /// Logical CPUs of a node.
    pub fn of_node(self) -> u32 {
        self.of_socket() * (self.sockets / self.nodes)
    }

    /// The node of a CPU.
    pub fn node(self, cpu: u32) -> u32 {
        cpu / self.of_node()
    }

    /// The CPUs of a CPU's core, itself included.
    pub(super) fn core_around(self, cpu: u32) -> Range<u32> {
        around(cpu, self.threads_per_core)
    }

    /// Those of its socket.
    pub(super) fn socket_around(self, cpu: u32) -> Range<u32> {
        around(cpu, self.of_socket())
    }

    /// Those of its node.
    pub(super) fn node_around(self, cpu: u32) -> Range<u32> {
        around(cpu, self.of_node())
    }

    /// The kind of a move from one CPU to another.
    pub(super) fn kind(self, from: u32, to: u32) -> Move {
        match () {
            () if self.core_around(from).contains(&to) => Move::Sibling,
            () if self.socket_around(from).contains(&to) => Move::Core,
            () if self.node_around(from).contains(&to) => Move::Socket,
            () => Move::Node,
        }
    }
}

/// The part of this size that a CPU belongs to.
fn around(cpu: u32, size: u32) -> Range<u32> {
    let first = cpu / size * size;
    first..first + size
}

#[cfg(test)]
mod tests {
    use super::{Move, Topology};

    const X3950: Topology = Topology {
        nodes: 2,
        sockets: 4,
        cores_per_socket: 2,
        threads_per_core: 2,
    };

    #[test]
    fn kinds_of_moves_follow_the_topology() {
        let kinds = [1, 2, 4, 8].map(|to| X3950.kind(0, to));
        assert_eq!(kinds, [Move::Sibling, Move::Core, Move::Socket, Move::Node]);
        assert_eq!(
            (X3950.core_around(9), X3950.socket_around(9), X3950.node_around(9)),
            (8..10, 8..12, 8..16)
        );
    }

    #[test]
    fn the_limit_of_logical_cpus_takes_the_siblings() {
        let large = Topology { sockets: 8, ..X3950 };
        assert_eq!(X3950.within(16), Ok(X3950));
        assert_eq!(
            large.within(16).map(|used| (used.threads_per_core, used.cpus())),
            Ok((1, 16))
        );
        let error = Topology { sockets: 16, ..X3950 }.within(16).expect_err("32 cores");
        assert!(error.contains("32 cores") && error.contains("expected"), "{error}");
    }

    #[test]
    fn a_topology_that_does_not_add_up_is_refused() {
        let error = Topology { sockets: 3, ..X3950 }.check().expect_err("odd");
        assert!(error.contains("3 sockets on 2 nodes"), "{error}");
        assert!(Topology { nodes: 0, ..X3950 }.check().is_err());
    }
}
