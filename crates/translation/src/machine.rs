//! Machines to simulate: rows of the CPU table, or TOML files that say what is different.

mod arrays;
mod assumed;
mod error;
pub(crate) mod unknown;

use model::Bytes;
use model::tlb::Ways;
use serde::Deserialize;

use super::access::Side;
use crate::cpus::{self, Cpu, Latencies, PageSize, TlbRow};
use crate::tlb::level::Array;
use crate::toml_file::TomlFile;
use crate::walk::caches::{Cache, PLACES};
use crate::walk::radix::WalkCaches;
use crate::walk::scatter::Scatter;
use arrays::arrays;
pub use assumed::RowReading;
pub use error::MachineError;

/// A machine as far as translation needs it. What is `None` has no public source, and is swept.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its id in the table, or of its file.
    pub id: String,
    pub name: String,
    pub arrays: Vec<Array>,
    /// Page sizes it can map, smallest first.
    pub pages: Vec<Bytes>,
    pub page_levels: u8,
    /// Levels of the host's page table behind a guest.
    pub host_page_levels: u8,
    /// Can it walk two dimensions?
    pub nested_paging: Option<bool>,
    /// Data caches with known geometry.
    pub caches: Vec<Cache>,
    /// Is there a further cache whose size is not known?
    pub has_unknown_cache: bool,
    /// Are data lines fetched ahead of streams?
    pub fetches_ahead: bool,
    pub walk_caches: Option<WalkCaches>,
    pub nested_tlb: Option<u32>,
    /// Cycles until data is there from each cache, then from memory.
    pub latencies: [Option<f64>; PLACES],
    /// Cycles that a first-level miss costs which the second level holds.
    pub l2_tlb_hit: Option<f64>,
    /// Cycles of a page walk besides its reads and the look into the second level.
    pub walk: Option<f64>,
    /// What the read of a page-table entry takes, relative to a load from the same place; 1 if it is not known.
    pub walk_reads: Option<f64>,
    /// Cycles of an exit with its handler under shadow paging.
    pub exit: Option<f64>,
    /// Virtual CPUs (natively CPUs) that share the page tables.
    pub vcpus: u16,
    /// Cycles of an interrupt of another CPU and its handler, without exits.
    pub ipi: Option<f64>,
    /// Exits for each of them in a guest: up to 2, one where it is sent and one where it arrives.
    pub ipi_exits: Option<f64>,
    /// What a page-table read from memory takes on average, relative to one from this node.
    pub table_memory: f64,
    /// Where a guest's base pages lie in its memory; in order without it.
    pub scatter: Option<Scatter>,
    /// Where the numbers are published.
    pub source: Vec<String>,
    /// How rows of the table were read where they leave a choice.
    pub readings: Vec<RowReading>,
}

/// A machine file: each field that is missing is that of `like`, or not known.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Typed {
    like: Option<String>,
    name: Option<String>,
    page_levels: Option<u8>,
    host_page_levels: Option<u8>,
    page_sizes: Option<Vec<PageSize>>,
    tlb: Option<Vec<TlbRow>>,
    cache: Option<Vec<cpus::Cache>>,
    latency_cycles: Latencies,
    l2_tlb_hit_cycles: Option<f64>,
    walk_cycles: Option<f64>,
    walk_reads: Option<f64>,
    exit_cycles: Option<f64>,
    walk_caches: Option<WalkCaches>,
    nested_tlb: Option<u32>,
    nested_paging: Option<bool>,
    vcpus: Option<u16>,
    ipi_cycles: Option<f64>,
    ipi_exits: Option<f64>,
    remote_tables: Option<f64>,
    remote_cost: Option<f64>,
    frame_run: Option<f64>,
    frame_spread: Option<PageSize>,
}

impl Machine {
    /// A CPU of the table, by its id or by the part after its maker's word (`x5560` for `xeon-x5560`).
    ///
    /// # Errors
    /// If there is none, or its TLBs are not known.
    pub fn by_id(typed: &str) -> Result<Self, MachineError> {
        Self::of_cpu(cpu(typed)?)
    }

    /// A row of the CPU table.
    ///
    /// # Errors
    /// If its TLBs are not known.
    pub fn of_cpu(cpu: &Cpu) -> Result<Self, MachineError> {
        Typed::default().or(cpu)?.machine(&cpu.id, cpu.source.clone())
    }

    /// The text of a machine file, which errors call `name`.
    ///
    /// # Errors
    /// With line and column, if it is not of that shape; and as [`Self::by_id`] for its `like`.
    pub fn parse(name: &str, text: &str) -> Result<Self, MachineError> {
        let mut file: Typed = TomlFile { name, text }.read()?;
        let mut source = Vec::new();
        if let Some(like) = &file.like {
            let cpu = cpu(like)?;
            source = cpu.source.clone();
            file = file.or(cpu)?;
        }
        source.push(name.to_owned());
        let machine = file.machine(name, source)?;
        if machine.arrays.is_empty() {
            return Err(MachineError::NoTlb(name.to_owned()));
        }
        if machine.caches.is_empty() {
            return Err(MachineError::NoCache(name.to_owned()));
        }
        Ok(machine)
    }

    /// Can it map such pages, as far as is known?
    pub fn maps(&self, page: Bytes) -> bool {
        self.pages.is_empty() || self.pages.contains(&page)
    }

    /// Entries that hold a page size for loads: each level's.
    pub fn entries(&self, page: Bytes) -> Vec<u64> {
        let deepest = self.arrays.iter().map(|array| array.level).max().unwrap_or(0);
        let loads = |level: u8| {
            let arrays = self.arrays.iter().filter(move |array| array.level == level);
            arrays
                .filter(|array| array.sides.contains(&Side::Load))
                .map(|array| array.entries(page))
                .sum()
        };
        (1..=deepest).map(loads).collect()
    }

    /// What the TLBs cover at most with pages of a size.
    pub fn reach(&self, page: Bytes) -> Bytes {
        Bytes(self.entries(page).into_iter().max().unwrap_or(0).saturating_mul(page.0))
    }
}

/// Ids of the CPUs whose TLBs are known.
pub fn known() -> Vec<&'static str> {
    let known = cpus::table().iter().filter(|cpu| !cpu.tlb.is_empty());
    known.map(|cpu| cpu.id.as_str()).collect()
}

fn cpu(typed: &str) -> Result<&'static Cpu, MachineError> {
    let wanted = typed.to_ascii_lowercase();
    let is_it = |cpu: &&Cpu| cpu.id == wanted || cpu.id.ends_with(&format!("-{wanted}"));
    let found = cpus::table().iter().find(is_it);
    found.ok_or_else(|| MachineError::Unknown {
        typed: typed.to_owned(),
        known: known().join(", "),
    })
}

impl Typed {
    /// With what the table has of a CPU, where the file says nothing.
    fn or(self, cpu: &Cpu) -> Result<Self, MachineError> {
        if cpu.tlb.is_empty() {
            return Err(MachineError::NoTlb(cpu.id.clone()));
        }
        let (own, table) = (self.latency_cycles, cpu.latency_cycles);
        let pages = self.page_sizes.filter(|pages| !pages.is_empty());
        let tlb = self.tlb.filter(|rows| !rows.is_empty());
        Ok(Self {
            name: self.name.filter(|name| !name.is_empty()).or(Some(cpu.name.clone())),
            page_levels: self.page_levels.or(cpu.page_levels),
            host_page_levels: self.host_page_levels.or(cpu.host_page_levels),
            page_sizes: pages.or(cpu.page_sizes.clone()),
            tlb: tlb.or(Some(cpu.tlb.clone())),
            cache: self.cache.or(Some(cpu.caches.clone())),
            latency_cycles: Latencies {
                l1: own.l1.or(table.l1),
                l2: own.l2.or(table.l2),
                l3: own.l3.or(table.l3),
                mem: own.mem.or(table.mem),
            },
            l2_tlb_hit_cycles: self.l2_tlb_hit_cycles.or(cpu.l2tlb_hit_penalty_cycles),
            nested_paging: self.nested_paging.or(cpu.virt.map(|virt| virt.nested_paging)),
            ..self
        })
    }

    /// Numbers that no machine has.
    fn check(&self, place: &str) -> Result<(), MachineError> {
        let within = |name, value: f64, [least, most]: [f64; 2]| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(MachineError::Value {
                place: place.to_owned(),
                name,
                value,
                least,
                most,
            }),
        };
        let Latencies { l1, l2, l3, mem } = self.latency_cycles;
        let latencies = [
            ("latency_cycles.l1", l1),
            ("latency_cycles.l2", l2),
            ("latency_cycles.l3", l3),
            ("latency_cycles.mem", mem),
        ];
        // What is farther takes no less.
        let mut nearer = 1.0;
        for (name, cycles) in latencies.into_iter().filter_map(|(name, cycles)| Some((name, cycles?))) {
            within(name, cycles, [nearer, 10_000.0])?;
            nearer = cycles;
        }
        let others = [
            ("page_levels", self.page_levels.map(f64::from), [4.0, 5.0]),
            ("host_page_levels", self.host_page_levels.map(f64::from), [4.0, 5.0]),
            ("l2_tlb_hit_cycles", self.l2_tlb_hit_cycles, [0.0, 1000.0]),
            ("walk_cycles", self.walk_cycles, [0.0, 1000.0]),
            ("walk_reads", self.walk_reads, [0.0, 100.0]),
            ("exit_cycles", self.exit_cycles, [0.0, 1e9]),
            ("nested_tlb", self.nested_tlb.map(f64::from), [0.0, MOST_ENTRIES]),
            ("vcpus", self.vcpus.map(f64::from), [1.0, 1024.0]),
            ("ipi_cycles", self.ipi_cycles, [0.0, 1e9]),
            ("ipi_exits", self.ipi_exits, [0.0, 2.0]),
            ("remote_tables", self.remote_tables, [0.0, 1.0]),
            ("remote_cost", self.remote_cost, [1.0, 1000.0]),
            ("frame_run", self.frame_run, [1.0, 512.0]),
        ];
        let walk_caches = self.walk_caches.iter().flat_map(|caches| caches.0);
        let walk_caches = walk_caches.map(|entries| ("walk_caches", Some(f64::from(entries)), [0.0, MOST_ENTRIES]));
        let rows = self.cache.iter().flatten();
        let caches = rows.map(|row| ("cache.kib", row.kib.map(|kib| kib as f64), [1.0, MOST_KIB]));
        let mut all = others.into_iter().chain(walk_caches).chain(caches);
        all.try_for_each(|(name, value, range)| value.map_or(Ok(()), |value| within(name, value, range)))?;
        self.check_pairs(place)
    }

    /// Fields that make sense together only.
    fn check_pairs(&self, place: &str) -> Result<(), MachineError> {
        let missing = |why| Err(MachineError::Missing(place.to_owned(), why));
        if self.frame_run.is_some() != self.frame_spread.is_some() {
            return missing("frame_run and frame_spread: give both or none");
        }
        if self.remote_tables.is_some_and(|share| share > 0.0) && self.remote_cost.is_none() {
            return missing(
                "remote_tables needs remote_cost: what a read from another node takes, relative to one from this node",
            );
        }
        Ok(())
    }

    fn machine(self, id: &str, source: Vec<String>) -> Result<Machine, MachineError> {
        self.check(id)?;
        let mut readings = Vec::new();
        let levels = self.page_levels.unwrap_or(4);
        let arrays = arrays(id, &self.tlb.unwrap_or_default(), &mut readings)?;
        let pages = self.page_sizes.unwrap_or_default().into_iter();
        let mut pages: Vec<Bytes> = pages.map(|page| page.0).collect();
        pages.sort_unstable();
        readings.sort_unstable();
        readings.dedup();
        let rows = self.cache.unwrap_or_default();
        let rows: Vec<&cpus::Cache> = rows.iter().filter(|row| row.kind != "instruction").collect();
        let caches: Vec<Cache> = rows.iter().map_while(|row| cache(row)).collect();
        let Latencies { l1, l2, l3, mem } = self.latency_cycles;
        let remote = self.remote_tables.unwrap_or(0.0);
        Ok(Machine {
            id: id.to_owned(),
            name: self.name.unwrap_or_default(),
            arrays,
            pages,
            page_levels: levels,
            host_page_levels: self.host_page_levels.unwrap_or(levels),
            nested_paging: self.nested_paging,
            has_unknown_cache: caches.len() < rows.len(),
            fetches_ahead: false,
            caches,
            walk_caches: self.walk_caches,
            nested_tlb: self.nested_tlb,
            latencies: [l1, l2, l3, mem],
            l2_tlb_hit: self.l2_tlb_hit_cycles,
            walk: self.walk_cycles,
            walk_reads: self.walk_reads,
            exit: self.exit_cycles,
            vcpus: self.vcpus.unwrap_or(1),
            ipi: self.ipi_cycles,
            ipi_exits: self.ipi_exits,
            table_memory: 1.0 + remote * (self.remote_cost.unwrap_or(1.0) - 1.0),
            scatter: self
                .frame_run
                .zip(self.frame_spread)
                .map(|(run, spread)| Scatter::even(run, spread.0)),
            source,
            readings,
        })
    }
}

/// The most entries of one TLB, nested TLB or page-walk cache.
const MOST_ENTRIES: f64 = 65_536.0;
/// The most KiB of a cache.
const MOST_KIB: f64 = 4_194_304.0;

/// Bytes of a line in all caches of the table.
const LINE: u64 = 64;

fn cache(row: &cpus::Cache) -> Option<Cache> {
    let lines = row.kib? * 1024 / LINE;
    let ways = match row.ways? {
        Ways::Count(ways) => ways,
        Ways::Full => u32::try_from(lines).ok()?,
    };
    let sets = u32::try_from(lines / u64::from(ways.max(1))).ok()?;
    (sets > 0 && ways > 0).then(|| Cache::new(sets, ways))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
