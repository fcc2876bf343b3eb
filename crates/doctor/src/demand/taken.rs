//! Pages of the pools that running programs hold, beside those of the programs that the files start.

use host::snapshot::NodePool;
use model::Bytes;
use programs::config::given::FileKind;
use programs::{Evidence, Kind, Program};

use super::Demand;

/// What others hold of the pools: a program that is started beside them gets the rest.
pub(super) struct Taken<'e> {
    evidence: &'e Evidence,
    /// Is all that is in use known to be held by programs of other kinds than those that the files start?
    by_others: bool,
}

impl<'e> Taken<'e> {
    pub(super) fn of(evidence: &'e Evidence, demands: &[Demand]) -> Self {
        let programs = evidence.programs.known().filter(|_| evidence.has_machine);
        let holders = programs.and_then(|programs| holders(programs));
        let is_other = |kind: &Kind| demands.iter().all(|demand| !demand.may_be(*kind));
        // Pages without a program may be in files that the next start takes up or removes.
        let by_others = holders.is_some_and(|kinds| !kinds.is_empty() && kinds.iter().all(is_other));
        Self { evidence, by_others }
    }

    /// Pages in use or promised; 0 where they may be those of the files' programs, which run already.
    pub(super) fn pages(&self, page: Bytes) -> u64 {
        let pool = self.evidence.snapshot.pool(page).filter(|_| self.by_others);
        pool.and_then(|pool| pool.taken()).unwrap_or(0)
    }

    /// Likewise of one node's part, which counts no promised pages.
    pub(super) fn on_node(&self, part: &NodePool) -> u64 {
        let counts = part.nr.known().zip(part.free.known()).filter(|_| self.by_others);
        counts.map_or(0, |(pages, free)| pages.saturating_sub(*free))
    }

    /// The free pages of each node: where other demands were served, what they left.
    pub(super) fn free_by_node(&self, page: Bytes, left: impl Fn(u32) -> Option<u64>) -> Vec<(u32, u64)> {
        let pool = self.evidence.snapshot.pool(page);
        let parts = pool.and_then(|pool| pool.nodes.known()).into_iter().flatten();
        let free =
            |part: &NodePool| left(part.node).or_else(|| Some(part.nr.known()?.saturating_sub(self.on_node(part))));
        parts.filter_map(|part| Some((part.node, free(part)?))).collect()
    }
}

/// The kinds of the programs that hold pages of a pool; none if one of them is not known.
fn holders(programs: &[Program]) -> Option<Vec<Kind>> {
    let mut kinds = Vec::new();
    for program in programs {
        if program.hugetlb().ok()?.0 > 0 {
            kinds.push((*program.kind.known()?)?);
        }
    }
    Some(kinds)
}

impl Demand {
    /// May a running program of this kind be the one that the file starts?
    fn may_be(&self, kind: Kind) -> bool {
        match self.asker {
            FileKind::Java => kind == Kind::Jvm,
            FileKind::Postgres => kind == Kind::Postgres,
            FileKind::Mysql => kind == Kind::Mysql,
            FileKind::Dpdk => kind == Kind::Dpdk,
            FileKind::Libvirt => kind.is_hypervisor(),
            // What runs in a pod may be any.
            _ => true,
        }
    }
}
