//! The host: nodes, sockets, cores and SMT siblings, and the kind of a move between two logical CPUs.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most logical CPUs that are simulated.
pub const MOST_CPUS: u32 = 4096;

/// How far a world moves: cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Move {
    /// To an SMT sibling of the same core.
    Sibling,
    /// To another core of the socket.
    Core,
    /// To another socket of the node.
    Socket,
    /// To another node.
    Node,
}

impl Move {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sibling, Self::Core, Self::Socket, Self::Node];
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
}

/// The parts that a CPU belongs to, as ranges of CPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    core: [u32; 2],
    socket: [u32; 2],
    node: [u32; 2],
    pub(super) node_number: u32,
}

impl Place {
    pub(super) fn all(topology: Topology) -> Vec<Self> {
        let part = |cpu: u32, size: u32| [cpu / size * size, (cpu / size + 1) * size];
        let place = |cpu: u32| Self {
            core: part(cpu, topology.threads_per_core),
            socket: part(cpu, topology.of_socket()),
            node: part(cpu, topology.of_node()),
            node_number: topology.node(cpu),
        };
        (0..topology.cpus()).map(place).collect()
    }

    pub(super) fn core(&self) -> Range<u32> {
        self.core[0]..self.core[1]
    }

    pub(super) fn socket(&self) -> Range<u32> {
        self.socket[0]..self.socket[1]
    }

    pub(super) fn node(&self) -> Range<u32> {
        self.node[0]..self.node[1]
    }

    /// The kind of a move from here to another CPU.
    pub(super) fn kind(&self, to: u32) -> Move {
        let within = |part: [u32; 2]| (part[0]..part[1]).contains(&to);
        match (within(self.core), within(self.socket), within(self.node)) {
            (true, ..) => Move::Sibling,
            (_, true, _) => Move::Core,
            (.., true) => Move::Socket,
            _ => Move::Node,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Move, Place, Topology};

    const X3950: Topology = Topology {
        nodes: 2,
        sockets: 4,
        cores_per_socket: 2,
        threads_per_core: 2,
    };

    #[test]
    fn kinds_of_moves_follow_the_topology() {
        let places = Place::all(X3950);
        let kinds = [1, 2, 4, 8].map(|to| places[0].kind(to));
        assert_eq!(kinds, Move::ALL);
        assert_eq!(
            (places[9].core(), places[9].socket(), places[9].node()),
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
