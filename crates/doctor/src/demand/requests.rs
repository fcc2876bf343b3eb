//! What files that were given request of the pools, whatever their kind.

use std::collections::BTreeMap;

use host::CpuList;
use model::Bytes;
use programs::Evidence;
use programs::config::{PoolRequest, PoolWrite, Setting};

use crate::facts::default_size;
use crate::rule::Reason;

/// What the files leave requested of one pool.
pub(crate) struct Requested {
    pub(crate) pages: u64,
    /// The line that holds in the end.
    pub(crate) line: Setting,
    /// Pages by node, where nodes are named.
    pub(super) by_node: Option<Vec<(u32, u64)>>,
}

impl Requested {
    fn new(line: Setting, asked: &PoolRequest) -> Self {
        let by_node = match asked {
            PoolRequest::ByNode(nodes) => Some(nodes.clone()),
            PoolRequest::Total(_) => None,
        };
        let pages = asked.total();
        Self { pages, line, by_node }
    }

    /// Those on these nodes of the machine: the kernel spreads pages over all nodes alike where the request names none.
    pub(super) fn on(&self, nodes: &CpuList, evidence: &Evidence) -> u64 {
        if let Some(by_node) = &self.by_node {
            let own = by_node.iter().filter(|(node, _)| nodes.contains(*node));
            return own.fold(0, |sum, (_, pages)| sum.saturating_add(*pages));
        }
        let all = evidence.snapshot.topology.nodes.known().map_or(&[][..], Vec::as_slice);
        let own = all.iter().filter(|node| nodes.contains(node.node)).count() as u64;
        (self.pages / (all.len() as u64).max(1)).saturating_mul(own)
    }
}

/// The requests of all files together, by page size.
pub(crate) struct Requests {
    /// The default page size with these files.
    pub(super) default: Bytes,
    pub(crate) by_size: BTreeMap<Bytes, Requested>,
}

impl Requests {
    /// Those of the boot line, then of sysctl files, which are applied after boot and for the default size, then what is written to files of pools.
    pub(crate) fn of(evidence: &Evidence) -> Result<Self, Reason> {
        let given = &evidence.files;
        let default = given.boot.iter().rev().find_map(|line| line.boot.default_size);
        // 2M is the default on x86-64 and on arm64 with pages of 4K.
        let default = default.or(default_size(evidence).ok()).unwrap_or(Bytes::mib(2));
        let mut by_size = BTreeMap::new();
        for line in &given.boot {
            for pool in &line.boot.pools {
                let size = pool.size.unwrap_or(default);
                let name = format!("hugepages of {}", size.exact());
                let line = Setting::new(&line.place, name, pool.pages.to_string());
                by_size.insert(size, Requested::new(line, &pool.pages));
            }
        }
        if let Some((pages, line)) = given.sysctl.number("vm.nr_hugepages")? {
            by_size.insert(default, Requested::new(line.clone(), &PoolRequest::Total(pages)));
        }
        for write in PoolWrite::left(&given.pool_writes, default) {
            let size = write.size.unwrap_or(default);
            let own = match write.is_by_node {
                true => written_by_node(evidence, (size, default), by_size.get(&size)),
                false => PoolRequest::Total(write.pages),
            };
            let line = Setting::new(
                write.place,
                format!("pages of {}", size.exact()),
                own.total().to_string(),
            );
            by_size.insert(size, Requested::new(line, &own));
        }
        Ok(Self { default, by_size })
    }
}

/// What writes to the files of nodes leave of a pool: the other nodes keep what was requested before, which is spread over all of them.
fn written_by_node(evidence: &Evidence, (size, default): (Bytes, Bytes), before: Option<&Requested>) -> PoolRequest {
    let (mut written, mut before) = (BTreeMap::new(), before.map(|own| (own.pages, own.by_node.as_deref())));
    let writes = evidence.files.pool_writes.iter();
    for write in writes.filter(|write| write.line.size.unwrap_or(default) == size) {
        match write.node {
            Some(node) => drop(written.insert(node, write.line.pages)),
            None => {
                written.clear();
                before = Some((write.line.pages, None));
            }
        }
    }
    let Some((total, by_node)) = before else {
        return PoolRequest::ByNode(written.into_iter().collect());
    };
    // Without a machine there are as many as are named, and at least two: one alone would not be named.
    let named = written.keys().last().map_or(0, |last| last.saturating_add(1)).max(2);
    let nodes = match evidence.snapshot.topology.nodes.known() {
        Some(nodes) => nodes.iter().map(|node| node.node).collect(),
        None => (0..named).collect::<Vec<u32>>(),
    };
    let spread = total / (nodes.len() as u64).max(1);
    let of_before = |node: u32| match by_node {
        Some(by_node) => by_node
            .iter()
            .find(|(own, _)| *own == node)
            .map_or(0, |(_, pages)| *pages),
        None => spread,
    };
    let pages = nodes
        .into_iter()
        .map(|node| (node, written.get(&node).copied().unwrap_or(of_before(node))));
    PoolRequest::ByNode(pages.collect())
}
