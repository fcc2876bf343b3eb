//! The machine at hand: what was measured on it, then what it says of itself, then its row of the CPU table.
//!
//! What none of them knows stays unknown, and is swept as for any machine.

use model::latency::{Access as Step, Latency, Pattern, Point};
use model::tlb::{Hash, Index, Level, Tlb, Ways};
use model::{Bytes, PageKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Side;
use super::caches::{Cache, PLACES};
use super::level::{Array, Held};
use super::machine::{Machine, MachineError};
use super::study::{Range, Unknown, unknown};
use crate::ways::Replacement;

/// What is known of the machine at hand.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its TLBs from timing, with the result's name.
    pub tlb: Option<(&'a Tlb, &'a str)>,
    /// Latency by working set, with the result's name.
    pub latency: Option<(&'a Latency, &'a str)>,
    /// Data caches from the first level on, as the machine reports them.
    pub caches: Vec<(Bytes, u32)>,
    /// Its base page.
    pub base_page: Bytes,
    /// Its PMD-mapped page.
    pub pmd_page: Bytes,
}

/// A value of a machine, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// What it is.
    pub what: What,
    /// The value; a range where it is swept.
    pub value: Range,
    /// Where it comes from.
    pub from: From,
    /// The result, or the row of the CPU table; empty of what is swept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// A value of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Entries for loads of a page size.
    TlbEntries {
        /// 1 or 2.
        level: u8,
        /// The page size in bytes.
        page: Bytes,
    },
    /// Bytes of a data cache.
    CacheBytes {
        /// From 1.
        level: u8,
    },
    /// Cycles, or entries of the page-walk caches.
    Cost(Unknown),
    /// The core clock in GHz, by which times become cycles.
    CoreClock,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// A measurement on this machine.
    Measured,
    /// The machine's own word: CPUID or sysfs.
    Reported,
    /// The CPU table.
    Table,
    /// It is not known, and swept.
    Swept,
}

/// Levels of TLBs that timing tells apart.
const LEVELS: [u8; 2] = [1, 2];

/// The machine at hand; `table` is its row of the CPU table, if that has it.
///
/// # Errors
/// If neither timing nor the table shows its TLBs.
pub fn here(table: Option<Machine>, measured: &Measured<'_>) -> Result<Machine, MachineError> {
    let row = table.as_ref().map(|machine| machine.id.clone());
    let mut machine = table.unwrap_or_else(|| Machine::unknown(measured));
    let mut values = Vec::new();
    machine.id = "here".to_owned();
    if let Some((_, source)) = measured.tlb {
        machine.source.push(format!("measured: {source}"));
    }
    if let Some((_, source)) = measured
        .latency
        .filter(|(_, source)| measured.tlb.is_none_or(|(_, tlb)| tlb != *source))
    {
        machine.source.push(format!("measured: {source}"));
    }
    caches(&mut machine, measured, row.as_deref(), &mut values);
    tlbs(&mut machine, measured, row.as_deref(), &mut values);
    if machine.arrays.is_empty() {
        return Err(MachineError::NoTlb("here".to_owned()));
    }
    costs(&mut machine, measured, row.as_deref(), &mut values);
    share_of_last_cache(&mut machine, measured, &mut values);
    let swept = unknown(&machine, &[]).into_iter().map(|sweep| Value {
        what: What::Cost(sweep.unknown),
        value: sweep.values,
        from: From::Swept,
        source: String::new(),
    });
    machine.values = values.into_iter().chain(swept).collect();
    Ok(machine)
}

impl Machine {
    /// One of which nothing is known.
    fn unknown(measured: &Measured<'_>) -> Self {
        Self {
            id: "here".to_owned(),
            name: measured.name.to_owned(),
            arrays: Vec::new(),
            pages: vec![measured.base_page, measured.pmd_page],
            page_levels: 4,
            nested_paging: None,
            caches: Vec::new(),
            has_unknown_cache: true,
            walk_caches: None,
            nested_tlb: None,
            latencies: [None; PLACES],
            l2_tlb_hit: None,
            exit: None,
            source: Vec::new(),
            readings: Vec::new(),
            values: Vec::new(),
        }
    }
}

fn exactly(value: f64) -> Range {
    Range {
        low: value,
        middle: value,
        high: value,
    }
}

fn of_table(row: Option<&str>) -> String {
    row.map_or(String::new(), |id| format!("CPU table: {id}"))
}

/// Bytes of a line in all caches.
const LINE: u64 = 64;

/// The caches that the machine reports count more than those of the table: a hypervisor may give a part of them.
fn caches(machine: &mut Machine, measured: &Measured<'_>, row: Option<&str>, values: &mut Vec<Value>) {
    let reported: Vec<Cache> = measured
        .caches
        .iter()
        .map_while(|&(size, ways)| cache(size, ways))
        .collect();
    let is_reported = !reported.is_empty() && reported.len() >= machine.caches.len();
    if is_reported {
        machine.has_unknown_cache = false;
        machine.caches = reported;
    }
    let (from, source) = match is_reported {
        true => (From::Reported, String::new()),
        false => (From::Table, of_table(row)),
    };
    let value = |(cache, level): (&Cache, u8)| Value {
        what: What::CacheBytes { level },
        value: exactly((u64::from(cache.sets) * u64::from(cache.ways) * LINE) as f64),
        from,
        source: source.clone(),
    };
    values.extend(machine.caches.iter().zip(1..).map(value));
}

fn cache(size: Bytes, ways: u32) -> Option<Cache> {
    let lines = size.0 / LINE;
    let sets = u32::try_from(lines.checked_div(u64::from(ways))?).ok()?;
    (sets > 0).then_some(Cache { sets, ways })
}

/// Exact levels from timing take the place of the table's.
fn tlbs(machine: &mut Machine, measured: &Measured<'_>, row: Option<&str>, values: &mut Vec<Value>) {
    let pages = [(PageKind::Base, measured.base_page), (PageKind::Thp, measured.pmd_page)];
    for (kind, page) in pages {
        for level in LEVELS {
            let timed = measured
                .tlb
                .and_then(|(tlb, source)| Some((tlb.level(kind, level)?, source)));
            let timed = timed.and_then(|(found, source)| Some((array(found, page)?, source)));
            let (from, source) = match timed {
                Some((array, source)) => {
                    place(machine, array, page);
                    (From::Measured, source.to_owned())
                }
                None => (From::Table, of_table(row)),
            };
            let entries = machine.entries(page).get(usize::from(level) - 1).copied().unwrap_or(0);
            if entries > 0 {
                values.push(Value {
                    what: What::TlbEntries { level, page },
                    value: exactly(entries as f64),
                    from,
                    source,
                });
            }
        }
    }
}

/// A level that timing shows in full.
fn array(level: &Level, page: Bytes) -> Option<Array> {
    let entries = level.entries?.value()?;
    let ways = match level.ways? {
        Ways::Count(ways) => ways,
        Ways::Full => entries,
    };
    let sets = entries
        .checked_div(ways)
        .filter(|sets| sets * ways == entries && *sets > 0)?;
    let hash = match level.index {
        Some(Index::Xor) if sets.is_power_of_two() => Hash::Fold,
        _ => Hash::Linear,
    };
    Some(Array {
        level: level.level,
        sides: vec![Side::Load, Side::Store],
        holds: vec![Held {
            page,
            first: 0,
            sets,
            hash,
        }],
        sets,
        ways,
        replacement: Replacement::Lru,
    })
}

/// Where the table agrees its array stays, which knows what else it holds.
fn place(machine: &mut Machine, array: Array, page: Bytes) {
    let (level, entries) = (array.level, array.entries(page));
    let known = machine.entries(page).get(usize::from(level) - 1).copied();
    if known == Some(entries) {
        return;
    }
    let loads = |array: &&mut Array| array.level == level && array.sides.contains(&Side::Load);
    for old in machine.arrays.iter_mut().filter(loads) {
        old.holds.retain(|held| held.page != page);
    }
    machine.arrays.retain(|array| !array.holds.is_empty());
    machine.arrays.push(array);
}

/// The latency of each place is that of working sets that lie well inside of it; of caches from a size that the one before no
/// longer helps.
fn costs(machine: &mut Machine, measured: &Measured<'_>, row: Option<&str>, values: &mut Vec<Value>) {
    const NAMES: [Unknown; PLACES] = [
        Unknown::L1Latency,
        Unknown::L2Latency,
        Unknown::L3Latency,
        Unknown::MemoryLatency,
    ];
    let mut push = |what: What, value: Option<f64>, timed: Option<&str>| {
        let (from, source) = match timed {
            Some(source) => (From::Measured, source.to_owned()),
            None => (From::Table, of_table(row)),
        };
        values.extend(value.map(|value| Value {
            what,
            value: exactly(value),
            from,
            source,
        }));
    };
    let ghz = clock(measured);
    if let Some((ghz, source)) = ghz {
        push(What::CoreClock, Some(ghz), Some(source));
    }
    for (place, name) in NAMES.into_iter().enumerate() {
        let timed = measured.latency.zip(ghz).and_then(|((latency, source), (ghz, _))| {
            let ns = plateau(latency, machine, place)?;
            Some((ns * ghz, source))
        });
        if let Some((cycles, _)) = timed {
            machine.latencies[place] = Some(cycles);
        }
        push(
            What::Cost(name),
            machine.latencies[place],
            timed.map(|(_, source)| source),
        );
    }
    let hit = measured.tlb.and_then(|(tlb, source)| {
        let level = tlb.level(PageKind::Base, 1)?;
        Some((level.miss_cycles?.median, source))
    });
    if let Some((cycles, _)) = hit.filter(|&(cycles, _)| cycles > 0.0) {
        machine.l2_tlb_hit = Some(cycles);
    }
    push(
        What::Cost(Unknown::L2TlbHit),
        machine.l2_tlb_hit,
        hit.map(|(_, source)| source),
    );
}

/// The clock at which times become cycles: that of the latency measurement, else that of the other one.
pub fn clock<'a>(measured: &Measured<'a>) -> Option<(f64, &'a str)> {
    let of_latency = measured
        .latency
        .and_then(|(latency, source)| Some((latency.core_ghz?.median, source)));
    let of_tlb = || {
        measured
            .tlb
            .and_then(|(tlb, source)| Some((tlb.core_ghz?.median, source)))
    };
    of_latency.or_else(of_tlb)
}

/// ns of a step in a place, on huge pages where they are measured: of base pages only where their TLB surely holds the working set.
fn plateau(latency: &Latency, machine: &Machine, place: usize) -> Option<f64> {
    let size = |place: usize| {
        let cache = machine.caches.get(place)?;
        Some(u64::from(cache.sets) * u64::from(cache.ways) * LINE)
    };
    let is_memory = place == PLACES - 1;
    let last = machine.caches.len().checked_sub(1).and_then(size)?;
    let (from, to) = match place {
        0 => (0, size(0)? / 2),
        _ if is_memory => (last.checked_mul(4)?, u64::MAX),
        _ => (size(place - 1)?.checked_mul(2)?, size(place)? / 2),
    };
    let reach = |page: Bytes| {
        machine
            .entries(page)
            .first()
            .copied()
            .unwrap_or(0)
            .saturating_mul(page.0)
    };
    let fits = |point: &&Point| {
        let is_chase = point.pattern == Pattern::RandomLine && point.access == Step::Read;
        let is_translated = point.kind != PageKind::Base || point.bytes.0 <= reach(Bytes::kib(4));
        is_chase && is_translated && (from..=to).contains(&point.bytes.0) && point.ns.is_some()
    };
    // Twice as much as the cache before, which then hardly helps; no more, as others may take a part of a shared cache. Of memory
    // the largest, which caches help least.
    let wanted = match place {
        0 => to,
        _ if is_memory => u64::MAX,
        _ => from.saturating_mul(2).min(to),
    };
    let distance = |point: &&Point| (point.bytes.0 as f64 / wanted as f64).ln().abs();
    let points = latency.points.iter().filter(fits);
    let best = points.min_by(|one, other| {
        let by_size = distance(one).total_cmp(&distance(other));
        by_size.then((one.kind == PageKind::Base).cmp(&(other.kind == PageKind::Base)))
    });
    best.and_then(|point| point.ns).map(|ns| ns.median)
}

/// The part of the last cache that a program gets here, where a guest or a neighbor takes some: the working set at which a step costs as much
/// between that cache and memory as it can (in logarithms).
fn share_of_last_cache(machine: &mut Machine, measured: &Measured<'_>, values: &mut [Value]) {
    let Some((latency, source)) = measured.latency else {
        return;
    };
    let Some(last) = machine.caches.len().checked_sub(1).filter(|&last| last > 0) else {
        return;
    };
    let own = |what: Unknown| {
        let found = values.iter().find(|value| value.what == What::Cost(what))?;
        (found.from == From::Measured).then_some(found.value.middle)
    };
    let near = own(if last == 2 {
        Unknown::L3Latency
    } else {
        Unknown::L2Latency
    });
    let (Some(near), Some(far), Some((ghz, _))) = (near, own(Unknown::MemoryLatency), clock(measured)) else {
        return;
    };
    let before = machine.caches[last - 1];
    let from = u64::from(before.sets) * u64::from(before.ways) * LINE * 2;
    let Some(size) = crossing(&curve(latency, from), (near * far).sqrt() / ghz) else {
        return;
    };
    let cache = &mut machine.caches[last];
    let sets = size / LINE / u64::from(cache.ways);
    let Some(sets) = u32::try_from(sets).ok().filter(|&sets| sets > 0 && sets < cache.sets) else {
        return;
    };
    cache.sets = sets;
    let level = last as u8 + 1;
    if let Some(value) = values.iter_mut().find(|value| value.what == What::CacheBytes { level }) {
        value.value = exactly((u64::from(sets) * u64::from(cache.ways) * LINE) as f64);
        (value.from, value.source) = (From::Measured, source.to_owned());
    }
}

/// Working sets and ns of a chase on huge pages, from a size on.
fn curve(latency: &Latency, from: u64) -> Vec<(u64, f64)> {
    let is_chase = |point: &&Point| {
        let is_read = point.pattern == Pattern::RandomLine && point.access == Step::Read;
        is_read && point.kind != PageKind::Base && point.bytes.0 >= from
    };
    let points = latency.points.iter().filter(is_chase);
    let mut curve: Vec<(u64, f64)> = points
        .filter_map(|point| Some((point.bytes.0, point.ns?.median)))
        .collect();
    curve.sort_by_key(|&(size, _)| size);
    curve
}

/// Where a curve first rises above a level, between two points in logarithms.
fn crossing(curve: &[(u64, f64)], level: f64) -> Option<u64> {
    let pair = curve.windows(2).find(|pair| pair[0].1 <= level && pair[1].1 > level)?;
    let [(low, below), (high, above)] = [pair[0], pair[1]];
    let share = (level / below).ln() / (above / below).ln();
    Some((low as f64 * (high as f64 / low as f64).powf(share)) as u64)
}

#[cfg(test)]
#[path = "measured_tests.rs"]
mod tests;
