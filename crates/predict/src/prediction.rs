//! What huge pages would save a traced program, with what the trace and the CPU table leave open.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::replay::{Part, Replay, Replayed};
use crate::trace::own::Head;
use translation::machine::Machine;
use translation::random::Chance;
use translation::study::{MIDDLE, MachineFacts, Point, Range, Sensitivity, Setting, Sweep, Unknown, Weights};
use translation::{Counts, Mode, PLACES};

/// The result: `hugewise predict`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// The machine that is predicted for.
    pub machine: MachineFacts,
    /// The trace: its file, or the program that was traced.
    pub input: String,
    /// How the trace was made, if it says so.
    pub capture: Option<Head>,
    /// Windows of the program's run; none of a trace without gaps.
    pub windows: u64,
    /// Loads and stores that were counted.
    pub accesses: u64,
    /// Instructions per load or store; none where the trace has no instructions.
    pub instructions_per_access: Option<f64>,
    /// What was swept.
    pub unknown: Vec<Sweep>,
    /// For each mode and page size.
    pub rows: Vec<Row>,
}

/// One mode with its pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Who translates, with which pages.
    pub setting: Setting,
    /// By TLB level: misses per access. The last one is walked.
    pub miss_rates: Vec<f64>,
    /// Time relative to base pages without a hypervisor.
    pub relative: Range,
    /// Share of time that is saved against base pages in the same mode.
    pub saves: Range,
    /// What each unknown alone does to `saves`.
    pub sensitivity: Vec<Sensitivity>,
}

/// Instructions per access, where the trace has none: the usual mix.
const USUAL_INSTRUCTIONS: f64 = 3.0;
/// Core cycles of an instruction that does not wait for memory: four at a time and more on wide cores, one on simple code.
const INSTRUCTION: Range = Range::new(0.2, 0.5, 1.0);
/// Misses that are waited for at a time, those of data and of TLBs alike: one in a chain of loads; what out-of-order cores reach on independent ones.
const OVERLAP: Range = Range::new(1.0, 2.0, 6.0);
/// What a core makes of the instructions is swept. A model of out-of-order cores in its place, with instructions, branches and each wait, was no nearer to compared programs
/// (`benches/results/predict-held-out-zen5-guest.md`).
const SWEPT: [Sweep; 2] = [
    Sweep {
        unknown: Unknown::Instruction,
        values: INSTRUCTION,
    },
    Sweep {
        unknown: Unknown::Overlap,
        values: OVERLAP,
    },
];
/// Lines from memory that a core has in flight ahead of a stream: from the fill buffers of a first-level cache to the queue of a second-level one.
const FETCHED: Range = Range::new(16.0, 24.0, 48.0);
/// What the model itself is off by, as a share of the time, to each side: chosen by 29 compared programs, and not proved on others. By arithmetic the ranges hold 27 of them
/// (`benches/results/predict-held-out-zen5-guest.md`).
const MODEL: f64 = 0.1;
/// Resamples behind an interval.
const RESAMPLES: usize = 400;

/// One choice of everything that is not known.
#[derive(Clone, Copy)]
struct Choice {
    point: Point,
    walker: usize,
    instruction: u8,
    overlap: u8,
    /// How much of what the TLBs may have lost before each window is lost: 0 to 1.
    forgets: f64,
}

/// The settings that are predicted on a machine: every page natively, and those pairs behind a hypervisor.
pub fn settings(machine: &Machine) -> Vec<Setting> {
    let pages = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];
    let pages: Vec<Bytes> = pages.into_iter().filter(|&page| machine.maps(page)).collect();
    let native = pages.iter().map(|&page| Setting::new(Mode::Native, page, page));
    let pairs = |mode: Mode| {
        let all = pages
            .iter()
            .flat_map(|&guest| pages.iter().map(move |&host| (guest, host)));
        let usual = all.filter(|(guest, host)| guest == host || guest.0.max(host.0) == Bytes::mib(2).0);
        usual.map(move |(guest, host)| Setting::new(mode, guest, host))
    };
    let nested = (machine.nested_paging != Some(false)).then(|| pairs(Mode::Nested));
    let shadow = pairs(Mode::Shadow).filter(|setting| Some(setting.guest_page) == setting.host_page);
    native.chain(nested.into_iter().flatten()).chain(shadow).collect()
}

impl Replay {
    /// What the parts of a trace say of each setting.
    pub fn prediction(&self, input: String, capture: Option<Head>, replayed: &Replayed) -> Prediction {
        let parts = &replayed.parts;
        let accesses: u64 = parts.iter().map(|part| part.kept[0].accesses).sum();
        let instructions: f64 = parts.iter().map(|part| part.instructions).sum();
        let model = Model::of(self, parts);
        Prediction {
            machine: MachineFacts::of(&self.machine),
            input,
            capture,
            windows: replayed.windows,
            accesses,
            instructions_per_access: (instructions > 0.0).then(|| instructions / accesses as f64),
            unknown: self.unknown().into_iter().filter(is_in_model).chain(SWEPT).collect(),
            rows: (0..self.settings.len()).map(|place| model.row(place)).collect(),
        }
    }
}

/// First-level hits are part of an instruction, and exits are in no trace.
fn is_in_model(sweep: &Sweep) -> bool {
    sweep.unknown != Unknown::Exit
}

/// The times of all parts under any choice.
struct Model<'a> {
    settings: &'a [Setting],
    /// By setting: the entries of its last TLB level.
    entries: Vec<u64>,
    parts: &'a [Part],
    weights: Weights,
    walkers: usize,
    /// Places of parts, drawn with replacement.
    resamples: Vec<Vec<usize>>,
}

impl<'a> Model<'a> {
    fn of(replay: &'a Replay, parts: &'a [Part]) -> Self {
        let weights = Weights::of(&replay.machine);
        let walkers = parts[0].kept[0].walkers.len();
        let mut chance = Chance::new(1);
        let count = parts.len() as u64;
        let entries = |setting: &Setting| replay.machine.entries(setting.backing().entry());
        let mut draw = || (0..count).map(|_| chance.below(count) as usize).collect();
        Self {
            settings: &replay.settings,
            entries: replay
                .settings
                .iter()
                .map(|setting| entries(setting).into_iter().max().unwrap_or(0))
                .collect(),
            parts,
            weights,
            walkers,
            resamples: (0..RESAMPLES).map(|_| draw()).collect(),
        }
    }

    const MIDDLE: Choice = Choice {
        point: MIDDLE,
        walker: 0,
        instruction: 1,
        overlap: 1,
        forgets: 0.5,
    };

    fn row(&self, place: usize) -> Row {
        let setting = self.settings[place];
        let base = |mode: Mode| {
            let first = self.settings.iter().position(|other| other.mode == mode);
            first.unwrap_or(0)
        };
        let rate = |level: usize| {
            let misses = |part: &Part| {
                let counts = &part.kept[place];
                counts.levels[level].misses as f64 / counts.accesses.max(1) as f64
            };
            self.mean(&self.parts.iter().map(misses).collect::<Vec<f64>>())
        };
        let levels = self.parts[0].kept[place].levels.len();
        let own = base(setting.mode);
        let (saves, sensitivity) = match own == place {
            true => (Range::default(), Vec::new()),
            false => (saved(self.range(place, own)), self.sensitivity(place, own)),
        };
        Row {
            setting,
            miss_rates: (0..levels).map(rate).collect(),
            relative: self.range(place, base(Mode::Native)),
            saves,
            sensitivity,
        }
    }

    /// Time relative to another setting: the middle, and to each side the root of the sum of the squares of what each unknown alone does, of what the
    /// windows leave open, and of [`MODEL`]. Unknowns that have nothing to do with each other are rarely all at their worst.
    fn range(&self, place: usize, base: usize) -> Range {
        if place == base {
            return Range::exactly(1.0);
        }
        let times = self.times(place, base, &Self::MIDDLE);
        let middle = ratio(&times);
        let mut open: Vec<Vec<f64>> = self.alone(place, base).into_iter().map(|(_, ratios)| ratios).collect();
        open.extend([self.interval(&times).to_vec(), vec![middle - MODEL, middle + MODEL]]);
        let off = |side: f64| {
            let farthest = |ratios: &Vec<f64>| ratios.iter().map(|ratio| side * (ratio - middle)).fold(0.0, f64::max);
            open.iter().map(|ratios| farthest(ratios).powi(2)).sum::<f64>().sqrt()
        };
        Range::new((middle - off(-1.0)).max(0.0), middle, middle + off(1.0))
    }

    /// Of each part: the time in a setting and in another one. A part takes its weight on native base pages.
    fn times(&self, place: usize, base: usize, choice: &Choice) -> Vec<[f64; 2]> {
        let times = |part: &Part| {
            let unit = part.weight / self.time(part, 0, choice);
            [place, base].map(|place| unit * self.time(part, place, choice))
        };
        self.parts.iter().map(times).collect()
    }

    fn time(&self, part: &Part, place: usize, choice: &Choice) -> f64 {
        let kept = self.time_of(part, &part.kept[place], choice);
        match part.forgot.get(place) {
            Some(forgot) if choice.forgets > 0.0 => {
                let lost = choice.forgets * part.lost(self.entries[place]);
                kept + lost * (self.time_of(part, forgot, choice) - kept)
            }
            _ => kept,
        }
    }

    fn time_of(&self, part: &Part, counts: &Counts, choice: &Choice) -> f64 {
        let walks = counts.walkers[choice.walker];
        let latency = |place: usize| self.weights.at(place, &choice.point);
        // A first-level hit of data is part of its instruction.
        let beyond = |at: usize| (latency(at) - latency(0)).max(0.0);
        let data: f64 = (1..PLACES).map(|at| walks.data_lines[at] as f64 * beyond(at)).sum();
        let tables: f64 = (0..PLACES).map(|at| walks.table_lines[at] as f64 * latency(at)).sum();
        let hits = counts.second_level_hits() as f64;
        let walked = self.weights.walk * walks.walks as f64 + self.weights.walk_reads * tables;
        let translation = walked + hits * self.weights.tlb_hit(&choice.point);
        let fetched = walks.fetched_lines as f64 * latency(PLACES - 1) / FETCHED.at(choice.overlap);
        let instructions = match part.instructions {
            0.0 => counts.accesses as f64 * USUAL_INSTRUCTIONS,
            known => known,
        };
        instructions * INSTRUCTION.at(choice.instruction) + (data + fetched + translation) / OVERLAP.at(choice.overlap)
    }

    /// Over the run: each part with its weight.
    fn mean(&self, values: &[f64]) -> f64 {
        let weighed = self.parts.iter().zip(values).map(|(part, value)| part.weight * value);
        weighed.sum::<f64>() / self.parts.iter().map(|part| part.weight).sum::<f64>()
    }

    /// The 95 % interval of a ratio over windows, by resampling them. Few of them spread less than all would: Student's t widens it. One alone shows
    /// nothing of the others.
    fn interval(&self, times: &[[f64; 2]]) -> [f64; 2] {
        let (middle, windows) = (ratio(times), times.len() as f64);
        let resampled = |places: &Vec<usize>| ratio(&places.iter().map(|&place| times[place]).collect::<Vec<_>>());
        let mut all: Vec<f64> = self.resamples.iter().map(resampled).collect();
        all.sort_by(f64::total_cmp);
        let wider = match times.len() {
            1 => 1.0,
            _ => students(windows - 1.0) / NORMAL * (windows / (windows - 1.0)).sqrt(),
        };
        [all[RESAMPLES / 40], all[RESAMPLES - 1 - RESAMPLES / 40]].map(|end| (middle + wider * (end - middle)).max(0.0))
    }

    /// Time relative to another setting at the ends of each unknown alone, with all others in the middle.
    fn alone(&self, place: usize, base: usize) -> Vec<(Unknown, Vec<f64>)> {
        let at = |change: &dyn Fn(&mut Choice)| {
            let mut choice = Self::MIDDLE;
            change(&mut choice);
            ratio(&self.times(place, base, &choice))
        };
        let ends =
            |change: &dyn Fn(&mut Choice, u8)| vec![at(&|choice| change(choice, 0)), at(&|choice| change(choice, 2))];
        let mut all = vec![
            (Unknown::Instruction, ends(&|choice, to| choice.instruction = to)),
            (Unknown::Overlap, ends(&|choice, to| choice.overlap = to)),
            (
                Unknown::HeldBefore,
                ends(&|choice, to| choice.forgets = f64::from(to) / 2.0),
            ),
            (
                Unknown::WalkCaches,
                (0..self.walkers).map(|to| at(&|choice| choice.walker = to)).collect(),
            ),
        ];
        for dimension in 0..MIDDLE.len() {
            if let Some(unknown) = self.weights.unknown(dimension) {
                all.push((unknown, ends(&|choice, to| choice.point[dimension] = to)));
            }
        }
        all
    }

    /// What each unknown alone does to what is saved.
    fn sensitivity(&self, place: usize, base: usize) -> Vec<Sensitivity> {
        let range = |(unknown, ratios): (Unknown, Vec<f64>)| {
            let Range { low, high, .. } = saved(Range::of(ratios[0], ratios.into_iter()));
            Sensitivity { unknown, low, high }
        };
        let ranges = self.alone(place, base).into_iter().map(range);
        ranges.filter(|alone| alone.high - alone.low > 0.0005).collect()
    }
}

/// The first times relative to the second ones.
fn ratio(times: &[[f64; 2]]) -> f64 {
    let sum = |which: usize| times.iter().map(|each| each[which]).sum::<f64>();
    sum(0) / sum(1)
}

/// 97.5 % of the normal distribution lie below.
const NORMAL: f64 = 1.96;

/// Likewise of Student's t with so many degrees of freedom; between them the larger one.
fn students(freedom: f64) -> f64 {
    const KNOWN: [(f64, f64); 8] = [
        (1.0, 12.71),
        (2.0, 4.30),
        (3.0, 3.18),
        (4.0, 2.78),
        (5.0, 2.57),
        (8.0, 2.31),
        (15.0, 2.13),
        (30.0, 2.04),
    ];
    let found = KNOWN.iter().rev().find(|known| known.0 <= freedom);
    found.map_or(NORMAL, |known| known.1)
}

/// From relative time to what is saved of it.
fn saved(time: Range) -> Range {
    Range::new(1.0 - time.high, 1.0 - time.middle, 1.0 - time.low)
}

#[cfg(test)]
#[path = "prediction_tests.rs"]
mod tests;
