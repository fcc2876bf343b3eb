//! Parameters that a sweep sets in place of a machine's own, and their axes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::translation::machine::{Machine, Surroundings};
use crate::translation::radix::WalkCaches;

/// One value of each parameter that is swept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Entries of the page-walk caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk_caches: Option<WalkCaches>,
    /// Entries of the nested TLB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_tlb: Option<u32>,
    /// The second-level TLB has so many times its sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_tlb_size: Option<f64>,
    /// Cycles of a first-level TLB miss that the second level holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_tlb_hit_cycles: Option<f64>,
    /// Cycles of an exit with its handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_cycles: Option<f64>,
    /// Latency of the first-level cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1_cycles: Option<f64>,
    /// Latency of the second-level cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_cycles: Option<f64>,
    /// Latency of the third-level cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3_cycles: Option<f64>,
    /// Latency of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_cycles: Option<f64>,
    /// Virtual CPUs that share the page tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u16>,
    /// Accesses of an interval of agile paging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agile_interval: Option<u64>,
    /// Cycles of an interrupt of another CPU and its handler, without exits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipi_cycles: Option<f64>,
    /// Exits for each of them in a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipi_exits: Option<f64>,
    /// Share of the page-table reads from memory that go to another node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_tables: Option<f64>,
    /// What such a read takes, relative to one from this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_cost: Option<f64>,
}

/// The values of each parameter; an empty list leaves the machine's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axes {
    /// Entries of the page-walk caches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub walk_caches: Vec<WalkCaches>,
    /// Entries of the nested TLB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested_tlb: Vec<u32>,
    /// Times the sets of the second-level TLB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2_tlb_size: Vec<f64>,
    /// Cycles of a second-level TLB hit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2_tlb_hit_cycles: Vec<f64>,
    /// Cycles of an exit with its handler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_cycles: Vec<f64>,
    /// Latency of the first-level cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l1_cycles: Vec<f64>,
    /// Latency of the second-level cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2_cycles: Vec<f64>,
    /// Latency of the third-level cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l3_cycles: Vec<f64>,
    /// Latency of memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mem_cycles: Vec<f64>,
    /// Virtual CPUs that share the page tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcpus: Vec<u16>,
    /// Accesses of an interval of agile paging.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agile_interval: Vec<u64>,
    /// Cycles of an interrupt of another CPU and its handler, without exits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipi_cycles: Vec<f64>,
    /// Exits for each of them in a guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipi_exits: Vec<f64>,
    /// Share of the page-table reads from memory that go to another node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_tables: Vec<f64>,
    /// What such a read takes, relative to one from this node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_cost: Vec<f64>,
}

impl Axes {
    /// What decides counts, and so needs a simulation of its own.
    pub(super) fn structures(&self) -> Vec<Parameters> {
        let all = vec![Parameters::default()];
        let all = crossed(all, &self.walk_caches, |point| &mut point.walk_caches);
        let all = crossed(all, &self.nested_tlb, |point| &mut point.nested_tlb);
        let all = crossed(all, &self.l2_tlb_size, |point| &mut point.l2_tlb_size);
        let all = crossed(all, &self.vcpus, |point| &mut point.vcpus);
        crossed(all, &self.agile_interval, |point| &mut point.agile_interval)
    }

    /// With what only weighs counts.
    pub(super) fn costs(&self, structure: Parameters) -> Vec<Parameters> {
        let all = vec![structure];
        let all = crossed(all, &self.l2_tlb_hit_cycles, |point| &mut point.l2_tlb_hit_cycles);
        let all = crossed(all, &self.exit_cycles, |point| &mut point.exit_cycles);
        let all = crossed(all, &self.l1_cycles, |point| &mut point.l1_cycles);
        let all = crossed(all, &self.l2_cycles, |point| &mut point.l2_cycles);
        let all = crossed(all, &self.l3_cycles, |point| &mut point.l3_cycles);
        let all = crossed(all, &self.mem_cycles, |point| &mut point.mem_cycles);
        let all = crossed(all, &self.ipi_cycles, |point| &mut point.ipi_cycles);
        let all = crossed(all, &self.ipi_exits, |point| &mut point.ipi_exits);
        let all = crossed(all, &self.remote_tables, |point| &mut point.remote_tables);
        crossed(all, &self.remote_cost, |point| &mut point.remote_cost)
    }

    /// How many combinations there are; none if that is more than can be counted.
    pub(super) fn count(&self) -> Option<u64> {
        let counts = [
            self.walk_caches.len(),
            self.nested_tlb.len(),
            self.l2_tlb_size.len(),
            self.l2_tlb_hit_cycles.len(),
            self.exit_cycles.len(),
            self.l1_cycles.len(),
            self.l2_cycles.len(),
            self.l3_cycles.len(),
            self.mem_cycles.len(),
            self.vcpus.len(),
            self.agile_interval.len(),
            self.ipi_cycles.len(),
            self.ipi_exits.len(),
            self.remote_tables.len(),
            self.remote_cost.len(),
        ];
        counts
            .iter()
            .try_fold(1_u64, |product, &count| product.checked_mul(count.max(1) as u64))
    }
}

/// Every point with every value in its place.
fn crossed<T: Copy>(
    points: Vec<Parameters>,
    values: &[T],
    place: fn(&mut Parameters) -> &mut Option<T>,
) -> Vec<Parameters> {
    if values.is_empty() {
        return points;
    }
    let with = |(mut point, value): (Parameters, T)| {
        *place(&mut point) = Some(value);
        point
    };
    let all = points.into_iter();
    all.flat_map(|point| values.iter().map(move |&value| (point, value)))
        .map(with)
        .collect()
}

impl Parameters {
    /// Are all of them the machine's own?
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Are they the same, but for the last bits that reading JSON may change?
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let close = |(one, other): (&Option<f64>, &Option<f64>)| match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-12 * one.abs(),
            (None, None) => true,
            _ => false,
        };
        let are_close = self.numbers().iter().zip(&other.numbers()).all(close);
        let counts = |of: &Self| (of.walk_caches, of.nested_tlb, of.vcpus, of.agile_interval);
        are_close && counts(self) == counts(other)
    }

    fn numbers(&self) -> [Option<f64>; 11] {
        [
            self.l2_tlb_size,
            self.l2_tlb_hit_cycles,
            self.exit_cycles,
            self.l1_cycles,
            self.l2_cycles,
            self.l3_cycles,
            self.mem_cycles,
            self.ipi_cycles,
            self.ipi_exits,
            self.remote_tables,
            self.remote_cost,
        ]
    }

    /// The machine with these values; none if its second level cannot have such a size.
    pub(super) fn applied(&self, machine: &Machine) -> Option<Machine> {
        let mut machine = machine.clone();
        machine.walk_caches = self.walk_caches.or(machine.walk_caches);
        machine.nested_tlb = self.nested_tlb.or(machine.nested_tlb);
        machine.l2_tlb_hit = self.l2_tlb_hit_cycles.or(machine.l2_tlb_hit);
        machine.exit = self.exit_cycles.or(machine.exit);
        machine.surroundings = self.surroundings().or(machine.surroundings);
        let latencies = [self.l1_cycles, self.l2_cycles, self.l3_cycles, self.mem_cycles];
        for (known, set) in machine.latencies.iter_mut().zip(latencies) {
            *known = set.or(*known);
        }
        if let Some(factor) = self.l2_tlb_size {
            resize(&mut machine, factor)?;
        }
        Some(machine)
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            vcpus: self.vcpus,
            ipi: self.ipi_cycles,
            ipi_exits: self.ipi_exits,
            remote_tables: self.remote_tables,
            remote_cost: self.remote_cost,
            scatter: None,
            agile_interval: self.agile_interval,
        }
    }

    /// In words, such as `nested_tlb 16, mem_cycles 250`; nothing where all are the machine's own.
    pub fn words(&self) -> String {
        let caches = self.walk_caches.map(|caches| {
            let entries = caches.0.map(|entries| entries.to_string());
            ("walk_caches", entries.join("/"))
        });
        let counts = [
            self.nested_tlb.map(|entries| ("nested_tlb", entries.to_string())),
            self.vcpus.map(|vcpus| ("vcpus", vcpus.to_string())),
            self.agile_interval
                .map(|accesses| ("agile_interval", accesses.to_string())),
        ];
        const NAMES: [&str; 11] = [
            "l2_tlb_size",
            "l2_tlb_hit_cycles",
            "exit_cycles",
            "l1_cycles",
            "l2_cycles",
            "l3_cycles",
            "mem_cycles",
            "ipi_cycles",
            "ipi_exits",
            "remote_tables",
            "remote_cost",
        ];
        let numbers = NAMES.into_iter().zip(self.numbers());
        let numbers = numbers.filter_map(|(name, value)| Some((name, value?.to_string())));
        let all: Vec<String> = caches
            .into_iter()
            .chain(counts.into_iter().flatten())
            .chain(numbers)
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        all.join(", ")
    }
}

/// So many times the sets in each array of the second level; ways stay.
fn resize(machine: &mut Machine, factor: f64) -> Option<()> {
    /// As many as a machine file may have.
    const MOST: f64 = 65_536.0;
    let sets = |sets: u32| {
        let new = f64::from(sets) * factor;
        (new.fract() == 0.0 && new <= MOST).then_some(new as u32)
    };
    for array in machine.arrays.iter_mut().filter(|array| array.level > 1) {
        array.sets = sets(array.sets).filter(|&sets| sets > 0)?;
        for held in &mut array.holds {
            held.first = sets(held.first)?;
            held.sets = sets(held.sets).filter(|&sets| sets > 0)?;
        }
    }
    Some(())
}
