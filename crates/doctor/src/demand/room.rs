//! The pools that there will be: those of a machine, or those that files set.

use std::collections::BTreeMap;

use host::CpuList;
use host::snapshot::Pool;
use host::snapshot::hugetlb::directory_name;
use model::Bytes;
use programs::Evidence;
use programs::config::{Given, Setting};

use super::{Demand, Requests, Taken};
use crate::facts::{default_size, known, node_file, only_pool, persistent, pool_file, pools};
use crate::rule::Reason;

/// What a pool has, and where that is written.
pub(crate) struct Room {
    pub(crate) default: Bytes,
    pub(super) pools: BTreeMap<Bytes, (u64, String)>,
    /// Pages by node, of the pools that files set so.
    by_node: BTreeMap<Bytes, Vec<(u32, u64)>>,
}

impl Room {
    /// The pools that there will be.
    pub(crate) fn of(evidence: &Evidence) -> Result<Self, Reason> {
        Self::with(evidence, true)
    }

    /// No pool at all.
    pub(crate) fn none() -> Self {
        Self {
            default: Bytes::mib(2),
            pools: BTreeMap::new(),
            by_node: BTreeMap::new(),
        }
    }

    /// The same, with or without surplus pages: the kubelet counts none for pods.
    pub(super) fn with(evidence: &Evidence, surplus: bool) -> Result<Self, Reason> {
        match evidence.has_machine {
            true => Self::of_machine(evidence, surplus),
            false => Self::of_files(evidence)?.shown(&evidence.files),
        }
    }

    /// Pages in use by programs outside of pods, which the kubelet counts as those of pods all the same; 0 where that is not known.
    pub(super) fn outside_pods(evidence: &Evidence, page: Bytes) -> u64 {
        let mut levels = evidence.pods.iter().flat_map(|pods| &pods.hugetlb);
        let in_pods = levels.find(|limit| limit.page == page);
        let in_pods = in_pods.and_then(|limit| Some(limit.current.known()?.0 / page.0.max(1)));
        let used = evidence.snapshot.pool(page).and_then(Pool::used);
        in_pods
            .zip(used)
            .map_or(0, |(in_pods, used)| used.saturating_sub(in_pods))
    }

    pub(crate) fn pages(&self, page: Bytes) -> u64 {
        self.pools.get(&page).map_or(0, |(pages, _)| *pages)
    }

    pub(super) fn sizes(&self) -> Vec<Bytes> {
        self.pools.keys().copied().collect()
    }

    /// Sizes that have pages.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (Bytes, &(u64, String))> {
        self.pools
            .iter()
            .filter(|(_, (pages, _))| *pages > 0)
            .map(|(page, pool)| (*page, pool))
    }

    fn of_machine(evidence: &Evidence, with_surplus: bool) -> Result<Self, Reason> {
        if let Some(pool) = only_pool(evidence) {
            let surplus = pool.overcommit.or_if_absent(0)?;
            let pages = persistent(&pool)?.saturating_add(if with_surplus { surplus } else { 0 });
            return Ok(Self {
                default: pool.size,
                pools: BTreeMap::from([(pool.size, (pages, "/proc/meminfo".to_owned()))]),
                by_node: BTreeMap::new(),
            });
        }
        let mut room = BTreeMap::new();
        for pool in pools(evidence)? {
            let surplus = if with_surplus { *known(&pool.overcommit)? } else { 0 };
            let pages = persistent(pool)?.saturating_add(surplus);
            room.insert(pool.size, (pages, pool_file(pool, "nr_hugepages")));
        }
        let default = default_size(evidence)?;
        Ok(Self {
            default,
            pools: room,
            by_node: BTreeMap::new(),
        })
    }

    /// What the files request, with the surplus pages that they allow.
    pub(crate) fn of_files(evidence: &Evidence) -> Result<Self, Reason> {
        let given = &evidence.files;
        if !given.sets_pools() {
            return Err(
                "no file sets the size of the pools (give the sysctl file or the kernel's command line too)".into(),
            );
        }
        let Requests { default, by_size } = Requests::of(evidence)?;
        let (mut pools, mut by_node) = (BTreeMap::new(), BTreeMap::new());
        for (size, own) in by_size {
            pools.insert(size, (own.pages, own.line.place));
            by_node.extend(own.by_node.map(|nodes| (size, nodes)));
        }
        if let Some((more, line)) = given.sysctl.number("vm.nr_overcommit_hugepages")? {
            let (pages, _) = pools.entry(default).or_insert_with(|| (0, line.place.clone()));
            *pages = pages.saturating_add(more);
            by_node.remove(&default);
        }
        let silent = || (0, "the files given".to_owned());
        pools.entry(default).or_insert_with(silent);
        Ok(Self {
            default,
            pools,
            by_node,
        })
    }

    /// The default pool is not known to be empty where something sets it to what only a run shows.
    fn shown(self, given: &Given) -> Result<Self, Reason> {
        const COUNTS: [&str; 4] = [
            "nr_hugepages",
            "hugepages=",
            "about huge pages",
            "nothing of the script",
        ];
        let of_default = directory_name(self.default);
        let is_open = |line: &&String| {
            let is_default = !line.contains("hugepages-") || line.contains(&of_default);
            is_default && COUNTS.iter().any(|name| line.contains(name)) && self.pages(self.default) == 0
        };
        match given.unresolved.iter().find(is_open) {
            Some(line) => Err(format!("the size of the pool is not known: {line}").into()),
            None => Ok(self),
        }
    }
}

/// A pool, or the part of it that some nodes have.
pub(super) struct Part {
    pub(super) nodes: String,
    pub(super) pages: u64,
    /// Pages of it that running programs hold.
    pub(super) taken: u64,
    /// Pages on all nodes.
    pub(super) whole: u64,
    /// Where the pages are written.
    pub(super) file: String,
}

impl Part {
    pub(super) fn whole(room: &Room, page: Bytes, taken: u64) -> Self {
        let pool = room.pools.get(&page).cloned();
        let (pages, file) = pool.unwrap_or_else(|| (0, "the files given".to_owned()));
        Self {
            nodes: String::new(),
            pages,
            taken,
            whole: pages,
            file,
        }
    }

    fn free(&self) -> u64 {
        self.pages.saturating_sub(self.taken)
    }

    /// `None` without nodes, and where the pool is not counted by node.
    pub(super) fn of(room: &Room, page: Bytes, nodes: Option<&CpuList>, taken: &Taken<'_>) -> Option<Self> {
        let nodes = nodes?;
        if let Some(parts) = room.by_node.get(&page) {
            let own = parts.iter().filter(|(node, _)| nodes.contains(*node));
            return Some(Self {
                nodes: nodes.to_string(),
                pages: own.fold(0_u64, |sum, (_, pages)| sum.saturating_add(*pages)),
                ..Self::whole(room, page, 0)
            });
        }
        let pool = taken.evidence.snapshot.pool(page)?;
        let parts = pool.nodes.known()?;
        let own = || parts.iter().filter(|part| nodes.contains(part.node));
        let mut parts = own().map(|part| part.nr.known().copied());
        Some(Self {
            nodes: nodes.to_string(),
            pages: parts.try_fold(0, |sum: u64, pages| Some(sum.saturating_add(pages?)))?,
            taken: own().map(|part| taken.on_node(page, part)).fold(0, u64::saturating_add),
            whole: persistent(pool).ok()?,
            file: node_file(pool, own().next()?.node),
        })
    }
}

/// Pages that are left after the demands before.
pub(super) struct Spare {
    /// On all nodes together.
    pub(super) left: BTreeMap<Bytes, u64>,
    /// On those that demands are bound to.
    pub(super) by_node: BTreeMap<(Bytes, String), u64>,
    /// Where the demands are written, each with its page size: those served, and the others.
    lines: [Vec<(Bytes, Setting)>; 2],
    /// Pages that those others need, by the nodes of `by_node`; without nodes for the pool as a whole.
    unserved: BTreeMap<(Bytes, String), u64>,
    /// Pages that demands take beyond theirs, and that the pool does not have.
    pub(super) owed: BTreeMap<Bytes, u64>,
}

impl Spare {
    pub(super) fn of(room: &Room, held: impl Fn(Bytes) -> u64) -> Self {
        let pools = room.pools.iter();
        let left = pools.map(|(page, (pages, _))| (*page, pages.saturating_sub(held(*page))));
        Self {
            left: left.collect(),
            by_node: BTreeMap::new(),
            lines: [Vec::new(), Vec::new()],
            unserved: BTreeMap::new(),
            owed: BTreeMap::new(),
        }
    }

    /// Serves a demand, or else gives how many pages there are.
    pub(super) fn serve(&mut self, demand: &Demand, page: Bytes, part: Option<&Part>, need: u64) -> Result<(), u64> {
        let served = self.take(page, part, need);
        let [own, others] = &mut self.lines;
        let lines = if served.is_ok() { own } else { others };
        lines.push((page, demand.seen.clone()));
        if served.is_err() {
            let nodes = part.map_or_else(String::new, |part| part.nodes.clone());
            let pages = self.unserved.entry((page, nodes)).or_default();
            *pages = pages.saturating_add(need);
        }
        // What it takes beyond is not left for the next one.
        if served.is_err() || self.take(page, part, demand.beyond).is_err() {
            *self.owed.entry(page).or_default() += demand.beyond;
        }
        served
    }

    /// Where the other demands on that pool are written, those served first.
    pub(super) fn others(&self, page: Bytes, own: &Setting) -> Vec<Setting> {
        let lines = self.lines.iter().flatten();
        let others = lines.filter(|(size, line)| *size == page && line != own);
        others.map(|(_, line)| line.clone()).collect()
    }

    /// Pages of that pool that demands need which were not served.
    pub(super) fn unserved(&self, page: Bytes) -> u64 {
        let own = self.unserved.iter().filter(|((size, _), _)| *size == page);
        own.fold(0_u64, |sum, (_, pages)| sum.saturating_add(*pages))
    }

    /// The pages that a pool, which has so many now, has to have for all demands.
    pub(super) fn asked(&self, page: Bytes, pages: u64) -> u64 {
        let of = |map: &BTreeMap<Bytes, u64>| map.get(&page).copied().unwrap_or(0);
        let used = pages.saturating_sub(of(&self.left));
        used.saturating_add(self.unserved(page)).saturating_add(of(&self.owed))
    }

    /// The pages that demands bound to these nodes lack there together.
    pub(super) fn lacking(&self, page: Bytes, nodes: &str) -> u64 {
        let key = (page, nodes.to_owned());
        let of = |map: &BTreeMap<(Bytes, String), u64>| map.get(&key).copied().unwrap_or(0);
        of(&self.unserved).saturating_sub(of(&self.by_node))
    }

    /// Takes so many pages, or else gives how many there are. What cannot be counted by node is counted as a whole.
    fn take(&mut self, page: Bytes, part: Option<&Part>, need: u64) -> Result<(), u64> {
        let whole = self.left.entry(page).or_default();
        let Some(part) = part else {
            return take(whole, need);
        };
        let own = self.by_node.entry((page, part.nodes.clone()));
        take(own.or_insert(part.free()), need)?;
        *whole = whole.saturating_sub(need);
        Ok(())
    }
}

fn take(spare: &mut u64, need: u64) -> Result<(), u64> {
    *spare = spare.checked_sub(need).ok_or(*spare)?;
    Ok(())
}
