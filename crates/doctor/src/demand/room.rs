//! The pools that there will be: those of a machine, or those that files set.

use std::collections::BTreeMap;

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;
use programs::config::{Given, PoolWrite, Setting};

use super::{Demand, Part};
use crate::facts::{default_size, known, persistent, pool_file, pools};
use crate::rule::Reason;

/// What a pool has, and where that is written.
pub(crate) struct Room {
    pub(crate) default: Bytes,
    pub(super) pools: BTreeMap<Bytes, (u64, String)>,
}

impl Room {
    /// The pools that there will be.
    pub(crate) fn of(evidence: &Evidence) -> Result<Self, Reason> {
        Self::with(evidence, true)
    }

    /// The same, with or without surplus pages: the kubelet counts none for pods.
    pub(super) fn with(evidence: &Evidence, surplus: bool) -> Result<Self, Reason> {
        match evidence.has_machine {
            true => Self::of_machine(evidence, surplus),
            false => Self::of_files(&evidence.files)?.shown(&evidence.files),
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
        let mut room = BTreeMap::new();
        for pool in pools(evidence)? {
            let surplus = if with_surplus { *known(&pool.overcommit)? } else { 0 };
            let pages = persistent(pool)?.saturating_add(surplus);
            room.insert(pool.size, (pages, pool_file(pool, "nr_hugepages")));
        }
        let default = default_size(evidence)?;
        Ok(Self { default, pools: room })
    }

    /// sysctl files are applied after boot, for the default size.
    pub(crate) fn of_files(given: &Given) -> Result<Self, Reason> {
        if !given.sets_pools() {
            return Err(
                "no file sets the size of the pools (give the sysctl file or the kernel's command line too)".into(),
            );
        }
        let mut pools = BTreeMap::new();
        let boots = || given.boot.iter().rev();
        // 2M is the default on x86-64 and on arm64 with pages of 4K.
        let default = boots().find_map(|line| line.boot.default_size).unwrap_or(Bytes::mib(2));
        for line in &given.boot {
            for pool in &line.boot.pools {
                pools.insert(pool.size.unwrap_or(default), (pool.pages.total(), line.place.clone()));
            }
        }
        let setting = given.sysctl.number("vm.nr_hugepages")?;
        let overcommit = given.sysctl.number("vm.nr_overcommit_hugepages")?;
        if let Some((pages, line)) = setting.or(overcommit) {
            let more = overcommit.filter(|_| setting.is_some()).map_or(0, |(more, _)| more);
            pools.insert(default, (pages.saturating_add(more), line.place.clone()));
        }
        for line in PoolWrite::left(&given.pool_writes, default) {
            let size = line.size.unwrap_or(default);
            let more = overcommit.filter(|_| size == default).map_or(0, |(more, _)| more);
            pools.insert(size, (line.pages.saturating_add(more), line.place));
        }
        let silent = || (0, "the files given".to_owned());
        pools.entry(default).or_insert_with(silent);
        Ok(Self { default, pools })
    }

    /// The default pool is not known to be empty where something sets it to what only a run shows.
    fn shown(self, given: &Given) -> Result<Self, Reason> {
        const COUNTS: [&str; 4] = [
            "nr_hugepages",
            "hugepages=",
            "about huge pages",
            "nothing of the script",
        ];
        let of_default = format!("hugepages-{}kB", self.default.0 >> 10);
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

/// Pages that are left after the demands before.
pub(super) struct Spare {
    /// On all nodes together.
    pub(super) left: BTreeMap<Bytes, u64>,
    /// On those that demands are bound to.
    pub(super) by_node: BTreeMap<(Bytes, String), u64>,
    /// Where those demands are written that were served, each with its page size.
    served: Vec<(Bytes, Setting)>,
    /// Pages that these take beyond theirs, and that the pool does not have.
    pub(super) owed: BTreeMap<Bytes, u64>,
}

impl Spare {
    pub(super) fn of(room: &Room, held: impl Fn(Bytes) -> u64) -> Self {
        let pools = room.pools.iter();
        let left = pools.map(|(page, (pages, _))| (*page, pages.saturating_sub(held(*page))));
        Self {
            left: left.collect(),
            by_node: BTreeMap::new(),
            served: Vec::new(),
            owed: BTreeMap::new(),
        }
    }

    /// Serves a demand, or else gives how many pages there are.
    pub(super) fn serve(&mut self, demand: &Demand, page: Bytes, part: Option<&Part>, need: u64) -> Result<(), u64> {
        self.take(page, part, need)?;
        // What it takes beyond is not left for the next one.
        if self.take(page, part, demand.beyond).is_err() {
            *self.owed.entry(page).or_default() += demand.beyond;
        }
        self.served.push((page, demand.seen.clone()));
        Ok(())
    }

    /// Where those are written that were served of that pool.
    pub(super) fn served(&self, page: Bytes) -> Vec<Setting> {
        let own = self.served.iter().filter(|(size, _)| *size == page);
        own.map(|(_, line)| line.clone()).collect()
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
