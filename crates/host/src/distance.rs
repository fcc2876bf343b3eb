//! How far two CPUs are from each other, by the machine's topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Reading;
use model::placement::Kind;

use crate::CpuList;
use crate::snapshot::{LogicalCpu, Topology};

/// What is known of each CPU.
#[derive(Clone, Debug, Default)]
pub struct Distances(Arc<BTreeMap<u32, (LogicalCpu, Option<u32>)>>);

impl Distances {
    pub fn of(topology: &Topology) -> Self {
        let place = |cpu: &LogicalCpu| (cpu.cpu, (cpu.clone(), topology.node_of(cpu.cpu)));
        Self(Arc::new(topology.cpus.iter().map(place).collect()))
    }

    /// What a move from one to the other is: the farthest class that it fits.
    pub fn kind(&self, from: u32, to: u32) -> Kind {
        let (Some((one, node)), Some((other, other_node))) = (self.0.get(&from), self.0.get(&to)) else {
            return Kind::Unknown;
        };
        let holds = |list: &Reading<CpuList>| list.known().is_some_and(|list| list.contains(to));
        if node != other_node {
            Kind::OtherNode
        } else if one.package.known() != other.package.known() {
            Kind::OtherSocket
        } else if one.twins.known().is_none() {
            Kind::Unknown
        } else if holds(&one.twins) {
            Kind::SmtSibling
        } else if holds(&one.llc) {
            Kind::SameLlc
        } else {
            Kind::OtherCore
        }
    }
}

#[cfg(test)]
mod tests {
    use model::placement::Kind;

    use super::Distances;
    use crate::{Snapshot, Source};

    #[test]
    fn a_move_is_of_the_farthest_class_that_it_fits() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/machines/two-node-smt.tree");
        let source = Source::open(path.as_ref()).expect("a machine");
        let topology = Snapshot::take(&source).topology;
        let distances = Distances::of(&topology);
        let own = &topology.cpus[0];
        let sibling = own
            .twins
            .known()
            .and_then(|twins| twins.iter().find(|&cpu| cpu != own.cpu));
        let elsewhere = topology
            .cpus
            .iter()
            .find(|cpu| topology.node_of(cpu.cpu) != topology.node_of(own.cpu));
        let near = own
            .llc
            .known()
            .and_then(|llc| llc.iter().find(|&cpu| cpu != own.cpu && Some(cpu) != sibling));
        assert_eq!(distances.kind(own.cpu, sibling.expect("SMT")), Kind::SmtSibling);
        assert_eq!(distances.kind(own.cpu, near.expect("a cache")), Kind::SameLlc);
        assert_eq!(distances.kind(own.cpu, elsewhere.expect("a node").cpu), Kind::OtherNode);
        assert_eq!(distances.kind(own.cpu, 60_000), Kind::Unknown);
    }
}
