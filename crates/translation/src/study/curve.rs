//! How many TLB entries would be enough: the share of accesses that miss in a TLB of any size, for each size of what an entry covers.

use std::ops::RangeInclusive;

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::on_all_cpus;
use super::{Setting, Study};
use crate::access::Access;
use crate::engine::Accesses;
use crate::reuse::shards::Shards;

/// Entries are powers of two with these exponents: from a small first level to more than any CPU of the table has.
const ENTRIES: RangeInclusive<u32> = 4..=17;
/// Pages that are followed, whatever the length of a trace. Curves over fewer pages are exact.
const PAGES: usize = 1 << 14;

/// Misses of a fully associative TLB under LRU replacement, by the number of its entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Memory that the program uses, in bytes; none of a trace.
    pub working_set: Option<Bytes>,
    /// What one entry covers, in bytes.
    pub entry: Bytes,
    /// The share of pages that was followed; at 1 the curve is exact.
    pub followed: f64,
    /// From few entries to many.
    pub points: Vec<CurvePoint>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Entries of the TLB.
    pub entries: u64,
    /// Misses per access; none of fewer entries than one followed page stands for.
    pub miss_rate: Option<f64>,
}

/// Curves that grow with accesses, one for each size of an entry.
pub struct Curves {
    working_set: Option<Bytes>,
    each: Vec<(Bytes, Shards)>,
}

impl Curves {
    /// Empty ones, for the entries of these settings.
    pub fn of(settings: &[Setting], working_set: Option<Bytes>) -> Self {
        let mut entries: Vec<Bytes> = settings.iter().map(|setting| setting.entry()).collect();
        entries.sort();
        entries.dedup();
        let each = entries.into_iter().map(|entry| (entry, Shards::new(entry, PAGES)));
        Self {
            working_set,
            each: each.collect(),
        }
    }

    /// Accesses that warm up, then those that count.
    pub fn add(&mut self, before: &[Access], counted: &[Access]) {
        for (_, shards) in &mut self.each {
            shards.pass(before);
            shards.block(counted);
        }
    }

    /// The curves of all that was added.
    pub fn finish(self) -> Vec<Curve> {
        let curve = |(entry, shards): (Bytes, Shards)| {
            let followed = shards.rate();
            let resolved = |entries: u64| entries as f64 * followed >= 1.0;
            let point = |exponent: u32| CurvePoint {
                entries: 1 << exponent,
                miss_rate: resolved(1 << exponent).then(|| shards.miss_ratio(1 << exponent)),
            };
            Curve {
                working_set: self.working_set,
                entry,
                followed,
                points: ENTRIES.map(point).collect(),
            }
        };
        self.each.into_iter().map(curve).collect()
    }
}

/// The curves of a study's pattern over each working set, as one thread makes its accesses. Invalidations are left out.
pub fn curves(study: &Study) -> Vec<Curve> {
    on_all_cpus(&study.working_sets, &|_, _| {}, |&size| over(study, size)).concat()
}

fn over(study: &Study, size: Bytes) -> Vec<Curve> {
    let mut curves = Curves::of(&study.settings, Some(size));
    let mut accesses = study.pattern.threads(size, study.seed, 1);
    let (mut before, mut left) = (study.warm_up, study.accesses);
    let mut block = Vec::new();
    while left > 0 {
        block.clear();
        let Ok(event) = accesses.fill(&mut block);
        if block.is_empty() && event.is_none() {
            break;
        }
        let (first, rest) = block.split_at(shorter(block.len(), before));
        let counted = &rest[..shorter(rest.len(), left)];
        curves.add(first, counted);
        before -= first.len() as u64;
        left -= counted.len() as u64;
    }
    curves.finish()
}

fn shorter(length: usize, most: u64) -> usize {
    usize::try_from(most).map_or(length, |most| length.min(most))
}
