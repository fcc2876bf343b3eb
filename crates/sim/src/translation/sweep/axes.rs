//! Parameters of a sweep's file: the values of each axis, checked.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::parameters::Axes;
use super::typed::SweepError;
use crate::translation::machine::MOST_VCPUS;
use crate::translation::radix::WalkCaches;
use crate::typed_file::TypedFile;

type Numbers = Spanned<Vec<Spanned<f64>>>;

/// Entries of the walker's caches: as many as a TLB may have.
const MOST_ENTRIES: u32 = 65_536;
/// Cycles and factors that make sense.
const MOST_NUMBER: f64 = 1e9;

/// As the file has them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawParameters {
    walk_caches: Option<Spanned<Vec<Spanned<[u32; 4]>>>>,
    nested_tlb: Option<Spanned<Vec<Spanned<u32>>>>,
    l2_tlb_size: Option<Numbers>,
    l2_tlb_hit_cycles: Option<Numbers>,
    exit_cycles: Option<Numbers>,
    l1_cycles: Option<Numbers>,
    l2_cycles: Option<Numbers>,
    l3_cycles: Option<Numbers>,
    mem_cycles: Option<Numbers>,
    vcpus: Option<Spanned<Vec<Spanned<u16>>>>,
    agile_interval: Option<Spanned<Vec<Spanned<u64>>>>,
    ipi_cycles: Option<Numbers>,
    ipi_exits: Option<Numbers>,
    remote_tables: Option<Numbers>,
    remote_cost: Option<Numbers>,
}

impl TypedFile<'_> {
    /// All axes.
    pub(super) fn axes(self, raw: RawParameters) -> Result<Axes, SweepError> {
        let entries = |entries: &u32| *entries <= MOST_ENTRIES;
        let caches = self.axis(
            "walk_caches",
            raw.walk_caches,
            &|caches: &[u32; 4]| caches.iter().all(entries),
            "4 numbers of entries up to 65536 each",
        )?;
        let nested_tlb = self.axis("nested_tlb", raw.nested_tlb, &entries, "entries up to 65536")?;
        let numbers = |name: &str, numbers: Option<Numbers>| {
            let fits = |number: &f64| number.is_finite() && *number > 0.0 && *number <= MOST_NUMBER;
            self.axis(name, numbers, &fits, "a number above 0")
        };
        let remote = self.remote(raw.remote_tables, raw.remote_cost)?;
        Ok(Axes {
            walk_caches: caches.into_iter().map(WalkCaches).collect(),
            nested_tlb,
            l2_tlb_size: numbers("l2_tlb_size", raw.l2_tlb_size)?,
            l2_tlb_hit_cycles: numbers("l2_tlb_hit_cycles", raw.l2_tlb_hit_cycles)?,
            exit_cycles: numbers("exit_cycles", raw.exit_cycles)?,
            l1_cycles: numbers("l1_cycles", raw.l1_cycles)?,
            l2_cycles: numbers("l2_cycles", raw.l2_cycles)?,
            l3_cycles: numbers("l3_cycles", raw.l3_cycles)?,
            mem_cycles: numbers("mem_cycles", raw.mem_cycles)?,
            ipi_cycles: numbers("ipi_cycles", raw.ipi_cycles)?,
            vcpus: self.axis(
                "vcpus",
                raw.vcpus,
                &|vcpus| (1..=MOST_VCPUS).contains(vcpus),
                "1 to 1024",
            )?,
            agile_interval: self.axis(
                "agile_interval",
                raw.agile_interval,
                &|&accesses| accesses > 0,
                "accesses",
            )?,
            ipi_exits: self.axis(
                "ipi_exits",
                raw.ipi_exits,
                &|exits| (0.0..=2.0).contains(exits),
                "0 to 2",
            )?,
            remote_tables: remote.0,
            remote_cost: remote.1,
        })
    }

    /// Shares of reads from another node, and what they take.
    fn remote(self, tables: Option<Numbers>, cost: Option<Numbers>) -> Result<(Vec<f64>, Vec<f64>), SweepError> {
        let at = tables.as_ref().map(|tables| tables.span().start);
        let tables = self.axis(
            "remote_tables",
            tables,
            &|share| (0.0..=1.0).contains(share),
            "a share, 0 to 1",
        )?;
        let cost = self.axis("remote_cost", cost, &|cost| (1.0..=1000.0).contains(cost), "1 to 1000")?;
        match at {
            Some(at) if cost.is_empty() => Err(self.wrong(at, "remote_tables needs remote_cost")),
            _ => Ok((tables, cost)),
        }
    }

    /// The values of a parameter, each once.
    fn axis<T: PartialEq + std::fmt::Debug + DeserializeOwned>(
        self,
        name: &str,
        typed: Option<Spanned<Vec<Spanned<T>>>>,
        fits: &dyn Fn(&T) -> bool,
        expected: &str,
    ) -> Result<Vec<T>, SweepError> {
        let mut all: Vec<T> = Vec::new();
        for value in self.items(name, typed)? {
            let at = value.span().start;
            let value = value.into_inner();
            if !fits(&value) {
                return Err(self.wrong(at, format!("{name}: {value:?}: expected {expected}")));
            }
            if all.contains(&value) {
                return Err(self.wrong(at, format!("{name}: {value:?} stands there twice")));
            }
            all.push(value);
        }
        Ok(all)
    }
}
