//! The time of a program in each setting, from what its parts count: under any choice of what is not known, and by a curve where it was run.

use crate::calibration::{Calibration, Curve, Observed};
use crate::open::{MODEL, MODEL_CALIBRATED, NORMAL, Open, RESAMPLES, interval, ratio, saved};
use crate::replay::{Part, Replay};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use translation::random::Chance;
use translation::study::{MIDDLE, Point, Range, Sensitivity, Setting, Sweep, Unknown, Weights};
use translation::{Counts, Mode, PLACES};

/// Instructions per access, where the trace has none: the usual mix.
const USUAL_INSTRUCTIONS: f64 = 3.0;
/// Core cycles of an instruction that does not wait for memory: four at a time and more on wide cores, one on simple code.
const INSTRUCTION: Range = Range::new(0.2, 0.5, 1.0);
/// Misses that are waited for at a time, those of data and of TLBs alike: one in a chain of loads; what out-of-order cores reach on independent ones.
const OVERLAP: Range = Range::new(1.0, 2.0, 6.0);
/// What a core makes of the instructions is swept. A model of out-of-order cores in its place, with instructions, branches and each wait, was no nearer to compared programs
/// (`benches/results/predict-held-out-zen5-guest.md`).
pub(crate) const SWEPT: [Sweep; 2] = [
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

/// One mode with its pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Who translates, with which pages.
    pub setting: Setting,
    /// By TLB level: misses per access. The last one is walked.
    pub miss_rates: Vec<f64>,
    /// Time relative to base pages without a hypervisor.
    pub relative: Range,
    /// Share of time that is saved against base pages in the same mode; of settings like those of runs, against the base pages of these.
    pub saves: Range,
    /// What each unknown alone does to `saves`.
    pub sensitivity: Vec<Sensitivity>,
}

/// The times of all parts under any choice.
pub(crate) struct Model<'a> {
    settings: &'a [Setting],
    /// By setting: the entries of its last TLB level.
    entries: Vec<u64>,
    parts: &'a [Part],
    weights: Weights,
    /// Places of parts, drawn with replacement.
    resamples: Vec<Vec<usize>>,
    calibrated: Option<Calibrated>,
}

/// Time by a curve through what was run. All waits are by setting, in units of the time on base pages that it was run on.
struct Calibrated {
    curve: Curve,
    middle: Vec<f64>,
    /// By what is not known: at each of its ends.
    unknown: Vec<(Unknown, Vec<Vec<f64>>)>,
    resampled: Vec<Vec<f64>>,
    /// How many the resamples are of.
    windows: usize,
}

impl<'a> Model<'a> {
    pub(crate) fn of(replay: &'a Replay, parts: &'a [Part]) -> Self {
        let mut chance = Chance::new(1);
        let count = parts.len() as u64;
        let entries = |setting: &Setting| replay.machine.entries(setting.entry());
        let mut draw = || (0..count).map(|_| chance.below(count) as usize).collect();
        Self {
            settings: &replay.settings,
            entries: replay
                .settings
                .iter()
                .map(|setting| entries(setting).into_iter().max().unwrap_or(0))
                .collect(),
            parts,
            weights: Weights::of(&replay.machine),
            resamples: (0..RESAMPLES).map(|_| draw()).collect(),
            calibrated: None,
        }
    }

    const MIDDLE: Choice = Choice {
        point: MIDDLE,
        walker: 0,
        instruction: 1,
        overlap: 1,
        forgets: 0.5,
    };

    /// From here on time is by a curve through these runs, which were made on base pages of that setting and on others like it.
    pub(crate) fn calibrate(&mut self, base: Setting, observed: Vec<Observed>) -> Calibration {
        let place = self.first(|setting| *setting == base);
        let units: Vec<f64> = self
            .parts
            .iter()
            .map(|part| part.weight / self.time(part, place, &Self::MIDDLE))
            .collect();
        let whole: f64 = self.parts.iter().map(|part| part.weight).sum();
        let by_part = |choice: &Choice| -> Vec<Vec<f64>> {
            let waits = |(part, unit): (&Part, &f64)| {
                let each = (0..self.settings.len()).map(|at| unit * self.waits(part, at, choice) / whole);
                each.collect()
            };
            self.parts.iter().zip(&units).map(waits).collect()
        };
        let middle = by_part(&Self::MIDDLE);
        let summed = |parts: &mut dyn Iterator<Item = &Vec<f64>>| {
            let mut sum = vec![0.0; self.settings.len()];
            parts.for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, waits)| *sum += waits));
            sum
        };
        // Windows that stand for more or less of the run than all of them do.
        let resampled = |places: &[usize]| {
            let drawn: f64 = places.iter().map(|&place| self.parts[place].weight).sum();
            let sum = summed(&mut places.iter().map(|&place| &middle[place]));
            sum.into_iter().map(|waits| waits * whole / drawn).collect::<Vec<f64>>()
        };
        let of_choice = |choice: &Choice| summed(&mut by_part(choice).iter());
        let unknown = |(unknown, choices): (Unknown, Vec<Choice>)| {
            (unknown, choices.iter().map(of_choice).collect::<Vec<Vec<f64>>>())
        };
        let is_scale = |(unknown, _): &(Unknown, Vec<Choice>)| SWEPT.iter().any(|sweep| sweep.unknown == *unknown);
        let calibrated = Calibrated {
            curve: Curve::new(self.settings, base, observed, 1.0 / OVERLAP.middle),
            unknown: self
                .choices()
                .into_iter()
                .filter(|of| !is_scale(of))
                .map(unknown)
                .collect(),
            resampled: self.resamples.iter().map(|places| resampled(places)).collect(),
            middle: summed(&mut middle.iter()),
            windows: self.parts.len(),
        };
        let calibration = calibrated.curve.calibration(&calibrated.middle);
        self.calibrated = Some(calibrated);
        calibration
    }

    /// The place of the first setting that is so.
    fn first(&self, is_so: impl Fn(&Setting) -> bool) -> usize {
        self.settings.iter().position(is_so).unwrap_or(0)
    }

    pub(crate) fn row(&self, place: usize) -> Row {
        let setting = self.settings[place];
        let base = |mode: Mode| self.first(|other| other.mode == mode);
        let rate = |level: usize| {
            let misses = |part: &Part| {
                let counts = &part.kept[place];
                counts.levels[level].misses as f64 / counts.accesses.max(1) as f64
            };
            self.mean(&self.parts.iter().map(misses).collect::<Vec<f64>>())
        };
        let levels = self.parts[0].kept[place].levels.len();
        let here = self
            .calibrated
            .as_ref()
            .and_then(|calibrated| calibrated.curve.base_of(&setting));
        let own = here.unwrap_or_else(|| base(setting.mode));
        let (saves, sensitivity) = match own == place {
            true => (Range::default(), Vec::new()),
            false => {
                let open = self.open(place, own);
                (saved(open.range()), open.sensitivity())
            }
        };
        let native = base(Mode::Native);
        let relative = match native == place {
            true => Range::exactly(1.0),
            false => self.open(place, native).range(),
        };
        Row {
            setting,
            miss_rates: (0..levels).map(rate).collect(),
            relative,
            saves,
            sensitivity,
        }
    }

    /// A setting that is not the other one.
    fn open(&self, place: usize, base: usize) -> Open {
        match &self.calibrated {
            None => self.swept(place, base),
            Some(calibrated) => {
                let is_run = |place: usize| calibrated.curve.is_run(&self.settings[place]);
                calibrated.open(place, base, is_run(place) && is_run(base))
            }
        }
    }

    fn swept(&self, place: usize, base: usize) -> Open {
        let times = self.times(place, base, &Self::MIDDLE);
        let middle = ratio(&times);
        let resampled = |places: &Vec<usize>| ratio(&places.iter().map(|&place| times[place]).collect::<Vec<_>>());
        let windows = interval(middle, self.resamples.iter().map(resampled).collect(), times.len());
        let at = |choice: &Choice| ratio(&self.times(place, base, choice));
        let choices = self.choices().into_iter();
        Open {
            middle,
            unknown: choices
                .map(|(unknown, choices)| (unknown, choices.iter().map(at).collect()))
                .collect(),
            others: vec![windows, vec![middle - MODEL, middle + MODEL]],
        }
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
        let instructions = match part.instructions {
            0.0 => part.kept[place].accesses as f64 * USUAL_INSTRUCTIONS,
            known => known,
        };
        instructions * INSTRUCTION.at(choice.instruction) + self.waits(part, place, choice) / OVERLAP.at(choice.overlap)
    }

    /// Cycles of waiting for data and for translation, one at a time.
    fn waits(&self, part: &Part, place: usize, choice: &Choice) -> f64 {
        let kept = self.waits_of(&part.kept[place], choice);
        match part.forgot.get(place) {
            Some(forgot) if choice.forgets > 0.0 => {
                let lost = choice.forgets * part.lost(self.entries[place]);
                kept + lost * (self.waits_of(forgot, choice) - kept)
            }
            _ => kept,
        }
    }

    fn waits_of(&self, counts: &Counts, choice: &Choice) -> f64 {
        let walks = counts.walkers[choice.walker];
        let latency = |place: usize| self.weights.at(place, &choice.point);
        // A first-level hit of data is part of its instruction.
        let beyond = |at: usize| (latency(at) - latency(0)).max(0.0);
        let data: f64 = (1..PLACES).map(|at| walks.data_lines[at] as f64 * beyond(at)).sum();
        let tables: f64 = (0..PLACES).map(|at| walks.table_lines[at] as f64 * latency(at)).sum();
        let hits = counts.second_level_hits() as f64;
        let walked = self.weights.walk(&choice.point) * walks.walks as f64 + self.weights.walk_reads * tables;
        let translation = walked + hits * self.weights.tlb_hit(&choice.point);
        let fetched = walks.fetched_lines as f64 * latency(PLACES - 1) / FETCHED.at(choice.overlap);
        data + fetched + translation
    }

    /// Over the run: each part with its weight.
    fn mean(&self, values: &[f64]) -> f64 {
        let weighed = self.parts.iter().zip(values).map(|(part, value)| part.weight * value);
        weighed.sum::<f64>() / self.parts.iter().map(|part| part.weight).sum::<f64>()
    }

    /// The ends of each unknown alone, with all others in the middle.
    fn choices(&self) -> Vec<(Unknown, Vec<Choice>)> {
        let with = |change: &dyn Fn(&mut Choice)| {
            let mut choice = Self::MIDDLE;
            change(&mut choice);
            choice
        };
        let ends = |change: &dyn Fn(&mut Choice, u8)| {
            vec![with(&|choice| change(choice, 0)), with(&|choice| change(choice, 2))]
        };
        let walkers = self.parts[0].kept[0].walkers.len();
        let mut all = vec![
            (Unknown::Instruction, ends(&|choice, to| choice.instruction = to)),
            (Unknown::Overlap, ends(&|choice, to| choice.overlap = to)),
            (
                Unknown::HeldBefore,
                ends(&|choice, to| choice.forgets = f64::from(to) / 2.0),
            ),
            (
                Unknown::WalkCaches,
                (0..walkers).map(|to| with(&|choice| choice.walker = to)).collect(),
            ),
        ];
        for dimension in 0..MIDDLE.len() {
            if let Some(unknown) = self.weights.unknown(dimension) {
                all.push((unknown, ends(&|choice, to| choice.point[dimension] = to)));
            }
        }
        all
    }
}

impl Calibrated {
    fn open(&self, place: usize, base: usize, is_run: bool) -> Open {
        let fit = self.curve.fit(&self.middle);
        let (middle, error) = self.curve.relative(&fit, &self.middle, place, base);
        let at = |waits: &Vec<f64>| self.curve.relative(&self.curve.fit(waits), waits, place, base).0;
        let unknown = |(unknown, waits): &(Unknown, Vec<Vec<f64>>)| (*unknown, waits.iter().map(at).collect());
        let windows = interval(middle, self.resampled.iter().map(at).collect(), self.windows);
        let [model, unexplained] = match is_run {
            true => [MODEL_CALIBRATED, 0.0],
            false => [MODEL, self.curve.unexplained(&fit)],
        };
        let off = [NORMAL * error, unexplained, model];
        let off = off.map(|off| vec![middle - off, middle + off]);
        Open {
            middle,
            unknown: self.unknown.iter().map(unknown).collect(),
            others: std::iter::once(windows).chain(off).collect(),
        }
    }
}
