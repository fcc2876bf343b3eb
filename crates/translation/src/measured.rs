//! The machine at hand: what was measured on it, then what it says of itself, then its row of the CPU table.
//!
//! What none of them knows stays unknown, and is swept as for any machine.

mod curve;
mod facts;
mod far;
mod fit;
mod search;

use model::tlb::{Entries, Hash, Index, Level, Ways};
use model::{Bytes, PageKind};

use super::access::Side;
use super::machine::{Machine, MachineError, RowReading};
use super::range::Range;
use super::study::unknown;
use crate::machine::unknown::{LATENCIES, Unknown};
pub use crate::machine::values::{From, Value, What};
use crate::tlb::level::{Array, Held};
use crate::tlb::sets::Replacement;
use crate::walk::caches::Cache;
use crate::walk::scatter::Scatter;
use curve::{LINE, plateau, size};
pub use facts::{Measured, clock};
use far::far;
pub use fit::{Costs, Known, Timed, explain};

/// Levels of TLBs that timing distinguishes.
const LEVELS: [u8; 2] = [1, 2];

/// The machine at hand; `table` is its row of the CPU table, if that has it.
///
/// # Errors
/// If neither timing nor the table shows its TLBs.
pub fn here(table: Option<Machine>, measured: &Measured<'_>) -> Result<Machine, MachineError> {
    let row = table.as_ref().map(|machine| machine.id.clone());
    let mut machine = match table {
        Some(machine) => machine,
        None => Machine::unknown("here", measured.name, [measured.base_page, measured.pmd_page])?,
    };
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
        return Err(MachineError::NoTlbHere);
    }
    frames(&mut machine, measured, &mut values);
    costs(&mut machine, measured, row.as_deref(), &mut values);
    far(&mut machine, measured, &mut values);
    let swept = unknown(&machine, &[]).into_iter().map(|sweep| Value {
        what: What::Cost(sweep.unknown),
        value: sweep.values,
        from: From::Swept,
        source: String::new(),
    });
    machine.values = values.into_iter().chain(swept).collect();
    Ok(machine)
}

fn of_table(row: Option<&str>) -> String {
    row.map_or(String::new(), |id| format!("CPU table: {id}"))
}

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
    let value = |(cache, level)| Value::exact(What::CacheBytes { level }, size(cache) as f64, from, &source);
    values.extend(machine.caches.iter().zip(1..).map(value));
}

fn cache(size: Bytes, ways: u32) -> Option<Cache> {
    let lines = size.0 / LINE;
    let sets = u32::try_from(lines.checked_div(u64::from(ways))?).ok()?;
    (sets > 0).then(|| Cache::lru(sets, ways))
}

/// Where base pages lie: as those of the largest working set on them did. Only a host's page table depends on it.
fn frames(machine: &mut Machine, measured: &Measured<'_>, values: &mut Vec<Value>) {
    let Some((latency, source)) = measured.latency.filter(|_| measured.host_page.is_some()) else {
        return;
    };
    let of_base = latency.points.iter().filter(|point| point.kind == PageKind::Base);
    let largest = of_base.max_by_key(|point| point.bytes);
    match largest.and_then(|point| point.frames.as_ref()) {
        Some(frames) => {
            machine.surroundings.scatter = Some(Scatter::of(frames));
            values.push(Value::exact(What::FrameRun, frames.mean_run(), From::Measured, source));
        }
        None => machine.readings.push(RowReading::FramesInOrder),
    }
}

/// Levels that timing shows take the place of the table's.
fn tlbs(machine: &mut Machine, measured: &Measured<'_>, row: Option<&str>, values: &mut Vec<Value>) {
    let pages = [(PageKind::Base, measured.base_page), (PageKind::Thp, measured.pmd_page)];
    for (kind, page) in pages {
        for level in LEVELS {
            let timed = measured
                .tlb
                .and_then(|(tlb, source)| Some((tlb.level(kind, level)?, source)));
            let known = machine.entries(page).get(usize::from(level) - 1).copied().unwrap_or(0);
            let shown = timed.and_then(|(found, source)| Some((Shown::of(found, known)?, source)));
            let what = What::TlbEntries { level, page };
            match shown {
                Some((shown, source)) => {
                    place(machine, shown.array(level, page), page);
                    if !shown.is_exact() {
                        machine.readings.push(RowReading::MiddleOfRange);
                    }
                    let (from, source) = (From::Measured, source.to_owned());
                    values.push(Value {
                        what,
                        value: shown.range(),
                        from,
                        source,
                    });
                }
                None if known > 0 => values.push(Value::exact(what, known as f64, From::Table, &of_table(row))),
                None => {}
            }
        }
    }
}

/// A level as timing shows it.
struct Shown {
    entries: Entries,
    sets: u32,
    ways: u32,
    hash: Hash,
}

/// Ways of a level whose ways timing does not show; few misses depend on them.
const USUAL_WAYS: u32 = 16;
/// The farthest that the ends of a range are apart for its middle to stand for it.
const NEAR: f64 = 2.0;

impl Shown {
    /// In full; or as a narrow range, or without ways, where the table has nothing in its place.
    fn of(level: &Level, of_table: u64) -> Option<Self> {
        let entries = level.entries?;
        match (entries.value(), level.ways) {
            (Some(exact), Some(ways)) => Self::in_full(exact, ways, level.index),
            _ if of_table == 0 && f64::from(entries.high) <= NEAR * f64::from(entries.low) => Some(Self {
                entries,
                sets: (entries.low.midpoint(entries.high) / USUAL_WAYS).max(1),
                ways: USUAL_WAYS,
                hash: Hash::Linear,
            }),
            _ => None,
        }
    }

    fn in_full(entries: u32, ways: Ways, index: Option<Index>) -> Option<Self> {
        let ways = match ways {
            Ways::Count(ways) => ways,
            Ways::Full => entries,
        };
        let sets = entries
            .checked_div(ways)
            .filter(|sets| sets * ways == entries && *sets > 0)?;
        let hash = match index {
            Some(Index::Xor) if sets.is_power_of_two() => Hash::Fold,
            _ => Hash::Linear,
        };
        let entries = Entries::exactly(entries);
        Some(Self {
            entries,
            sets,
            ways,
            hash,
        })
    }

    /// Is it as large as the only number that timing allows?
    fn is_exact(&self) -> bool {
        self.entries.value() == Some(self.sets * self.ways)
    }

    fn range(&self) -> Range {
        let simulated = f64::from(self.sets * self.ways);
        let (low, high) = (f64::from(self.entries.low), f64::from(self.entries.high));
        Range::new(low.min(simulated), simulated, high.max(simulated))
    }

    fn array(&self, level: u8, page: Bytes) -> Array {
        let Self { sets, ways, hash, .. } = *self;
        Array {
            level,
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
        }
    }
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

/// The latency of each cache but the last is that of working sets that lie well inside of it, from a size that the one before no
/// longer helps. What lies behind is [`far()`]'s.
fn costs(machine: &mut Machine, measured: &Measured<'_>, row: Option<&str>, values: &mut Vec<Value>) {
    let mut push = |what: What, value: Option<f64>, timed: Option<&str>| {
        let (from, source) = match timed {
            Some(source) => (From::Measured, source.to_owned()),
            None => (From::Table, of_table(row)),
        };
        values.extend(value.map(|value| Value::exact(what, value, from, &source)));
    };
    let ghz = clock(measured);
    if let Some((ghz, source)) = ghz {
        push(What::CoreClock, Some(ghz), Some(source));
    }
    for (place, name) in LATENCIES.into_iter().enumerate() {
        let timed = measured.latency.zip(ghz).and_then(|((latency, source), (ghz, _))| {
            let is_near = place == 0 || place + 1 < machine.caches.len();
            let ns = is_near.then(|| plateau(latency, machine, place))??;
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
    if machine.entries(measured.base_page).first() == Some(&0) {
        // Every access would pay it.
        machine.l2_tlb_hit = Some(0.0);
        machine.readings.push(RowReading::NoFirstLevel);
        return;
    }
    if let Some((cycles, _)) = hit.filter(|&(cycles, _)| cycles > 0.0) {
        machine.l2_tlb_hit = Some(cycles);
    }
    push(
        What::Cost(Unknown::L2TlbHit),
        machine.l2_tlb_hit,
        hit.map(|(_, source)| source),
    );
}

#[cfg(test)]
#[path = "measured_tests.rs"]
mod tests;
