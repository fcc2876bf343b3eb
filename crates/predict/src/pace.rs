//! How fast a core runs the instructions of a part of a trace, and how many of their waits overlap.

use crate::pipeline::{Mispredicted, Run, Timing, Wait};
use std::ops::Range as Places;
use translation::machine::Core;
use translation::study::{MIDDLE, Range, Weights};
use translation::{Access, Engine, PLACES};

/// Core cycles of an instruction that does not wait for memory, where the instructions are not known: four at a time and more on wide cores, one on simple code.
pub(super) const INSTRUCTION: Range = Range::new(0.2, 0.5, 1.0);
/// Misses that are waited for at a time, likewise: one in a chain of loads; what out-of-order cores reach on independent ones.
pub(super) const OVERLAP: Range = Range::new(1.0, 2.0, 6.0);
/// Lines from memory that a core has in flight ahead of a stream: from the fill buffers of a first-level cache to the queue of a second-level one.
pub(super) const FETCHED: Range = Range::new(16.0, 24.0, 48.0);

/// Of a part of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Core cycles without waits for memory.
    pub cycles: Range,
    /// Waits for lines that overlap.
    pub lines: Range,
    /// Waits for translation that overlap.
    pub pages: Range,
}

impl Pace {
    /// Of so many instructions that are not known.
    pub(super) fn usual(instructions: f64) -> Self {
        Self {
            cycles: INSTRUCTION.map(|each| each * instructions),
            lines: OVERLAP,
            pages: OVERLAP,
        }
    }
}

/// The instructions of a part that count, and how long cores take for them if no access waits.
pub(super) struct Free {
    run: Run,
    counted: Places<usize>,
    cycles: Range,
    alone: Vec<f64>,
    ways: Vec<Way>,
}

/// How instructions run.
#[derive(Clone, Copy)]
struct Way {
    core: Core,
    mispredicted: Mispredicted,
}

/// On one core, or on both where it is not known. What branches cost is not known either: the first way is an end of what is swept, and the middle is that of the others.
fn ways(core: Option<Core>) -> Vec<Way> {
    let cores = core.map_or(Core::BOTH.to_vec(), |core| vec![core]);
    let way = |core, mispredicted| Way { core, mispredicted };
    let first = way(cores[0], Mispredicted::Lost);
    let others = cores.into_iter().map(|core| way(core, Mispredicted::Joins));
    std::iter::once(first).chain(others).collect()
}

impl Free {
    pub(super) fn of(run: Run, counted: Places<usize>, core: Option<Core>) -> Self {
        let ways = ways(core);
        let of = |way: Way| cycles(&run, &counted, way, &[]);
        let [narrow, wide, predicted] = [
            (Core::Narrow, Mispredicted::Lost),
            (Core::Wide, Mispredicted::Lost),
            (Core::Wide, Mispredicted::None),
        ]
        .map(|(core, mispredicted)| of(Way { core, mispredicted }));
        // The ends lie beyond both cores for what the model lacks: instruction caches, execution ports, how well branches are predicted. On one CPU 14 programs
        // were between them (`benches/results/predict-xeon-guest.md`).
        let least = 0.9 * f64::midpoint(wide, predicted);
        let cycles = Range::new(least, f64::midpoint(narrow, wide), 1.25 * narrow);
        Self {
            alone: ways.iter().map(|&way| of(way)).collect(),
            run,
            counted,
            cycles,
            ways,
        }
    }

    /// With waits: by how much they make a core slower, first those for lines, then those for translation besides.
    pub(super) fn pace(&self, waits: &[Wait]) -> Pace {
        let of = |waits: &[Wait]| -> Vec<f64> {
            let cycles = |&way: &Way| cycles(&self.run, &self.counted, way, waits);
            self.ways.iter().map(cycles).collect()
        };
        let lines: Vec<Wait> = waits.iter().map(Wait::without_translation).collect();
        let (of_lines, of_all) = (of(&lines), of(waits));
        let sum = |each: fn(&Wait) -> f64| waits.iter().map(each).sum::<f64>();
        Pace {
            cycles: self.cycles,
            lines: overlap(sum(Wait::for_line), &self.alone, &of_lines),
            pages: overlap(sum(|wait| wait.translation as f64), &of_lines, &of_all),
        }
    }
}

fn cycles(run: &Run, counted: &Places<usize>, way: Way, waits: &[Wait]) -> f64 {
    let timing = Timing {
        counted: counted.clone(),
        waits,
        mispredicted: way.mispredicted,
    };
    run.cycles(way.core, &timing) as f64
}

/// How many of so many cycles of waits overlap if a run takes so long with them and without them, in each way.
fn overlap(waits: f64, without: &[f64], with: &[f64]) -> Range {
    if waits == 0.0 {
        return Range::exactly(1.0);
    }
    let slower: Vec<f64> = with
        .iter()
        .zip(without)
        .map(|(with, without)| (with - without).max(1.0))
        .collect();
    let middle = slower[1..].iter().sum::<f64>() / (slower.len() - 1) as f64;
    Range::of(waits / middle, slower.iter().map(|slower| waits / slower))
}

/// Runs accesses one by one: how long each waits, with all that is not known in the middle.
pub(super) fn waits(engine: &mut Engine, accesses: &[Access], weights: &Weights) -> Vec<Wait> {
    let latency = |place: usize| weights.at(place, &MIDDLE);
    let wait = |access: &Access| {
        let (before, hits) = engine.first_walker();
        engine.run_stored(std::slice::from_ref(access));
        let (after, all_hits) = engine.first_walker();
        let place = (0..PLACES).find(|&place| after.data_lines[place] > before.data_lines[place]);
        let tables =
            (0..PLACES).map(|place| (after.table_lines[place] - before.table_lines[place]) as f64 * latency(place));
        let walks = after.walks - before.walks;
        let walked = weights.walk * walks as f64 + weights.walk_reads * tables.sum::<f64>();
        let translation = walked + (all_hits - hits) as f64 * weights.tlb_hit(&MIDDLE);
        let memory = latency(PLACES - 1);
        Wait {
            translation: translation.round() as u64,
            is_walk: walks > 0,
            line: (latency(place.unwrap_or(0)) - latency(0)).max(0.0).round() as u64,
            fetched: (after.fetched_lines > before.fetched_lines).then(|| (memory as u64, memory / FETCHED.middle)),
        }
    };
    accesses.iter().map(wait).collect()
}
