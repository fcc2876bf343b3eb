//! Published experiments, simulated: what is published beside what comes out, and which values were fitted to make it so.

mod table;

use model::{Bytes, names};

use crate::claims::{self, Claim};
use table::{coverage, true_reach};
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::study::{
    Choice, MIDDLE, MachineFacts, Published, Range, Setting, Simulation, Study, StudyError, Weights, counted, result,
};
use translation::{Counts, Exits, Mode};

/// The page sizes of the published experiments.
const BASE: Bytes = Bytes::kib(4);
const LARGE: Bytes = Bytes::mib(2);
const HUGE: Bytes = Bytes::gib(1);

names! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Preset, "a preset" {
        /// Huge pages under ESX Server 3.5: Opteron 885, shadow paging.
        Esx35LargePages = "esx35-large-pages",
        /// Nested against shadow paging on Nehalem.
        NehalemEpt = "nehalem-ept",
        /// Memory latency on VMware Cloud Foundation, Sapphire Rapids.
        VcfSpr = "vcf-spr",
        /// The same, Ice Lake: TLB misses.
        VcfIcelake = "vcf-icelake",
        VcfTlbTable = "vcf-tlb-table",
    }
}

impl Preset {
    fn machine(self) -> &'static str {
        match self {
            Self::Esx35LargePages => "opteron-885",
            Self::NehalemEpt => "xeon-x5560",
            Self::VcfSpr | Self::VcfTlbTable => "xeon-8452y",
            Self::VcfIcelake => "xeon-gold-6330",
        }
    }
}

fn native(page: Bytes) -> Setting {
    Setting::new(Mode::Native, page, page)
}

/// What a claim says, and the simulated value.
fn predicted(id: &str, value: f64) -> Published {
    let claim = claims::by_id(id);
    let text = |of: fn(&Claim) -> &String| claim.map(of).cloned().unwrap_or_default();
    Published {
        what: text(|claim| &claim.what),
        source: text(|claim| &claim.source),
        unit: text(|claim| &claim.measure.unit),
        published: claim.map(Claim::numbers).unwrap_or_default(),
        simulated: Range::exactly(value),
        is_fitted: false,
    }
}

/// A claim that holds for either of two cases: both, in the order of their range.
fn either(id: &str, [first, second]: [f64; 2]) -> Published {
    Published {
        simulated: Range::of(first, [first, second].into_iter()),
        ..predicted(id, first)
    }
}

fn fitted(id: &str, value: f64) -> Published {
    Published {
        is_fitted: true,
        ..predicted(id, value)
    }
}

/// A value that no publication has.
fn shown(what: &str, unit: &str, value: f64) -> Published {
    Published::exact("", what, unit, &[], value)
}

fn other_cycles(what: &str, value: f64) -> Published {
    Published {
        is_fitted: true,
        ..shown(what, "cycles", value)
    }
}

/// One pattern with its cases, and what is read off them.
struct Experiment {
    pattern: Pattern,
    working_sets: Vec<Bytes>,
    settings: Vec<Setting>,
    compare: fn(&Seen<'_>) -> Vec<Published>,
}

/// The cases at one choice of what is not known, by the places of working set and setting.
struct Seen<'a> {
    study: &'a Study,
    counted: &'a [Counts],
    weights: &'a Weights,
    choice: &'a Choice,
}

impl Seen<'_> {
    fn counts(&self, size: usize, setting: usize) -> &Counts {
        &self.counted[size * self.study.settings.len() + setting]
    }

    /// Cycles per access.
    fn time(&self, size: usize, setting: usize) -> f64 {
        let mode = self.study.settings[setting].mode;
        self.weights.cycles(self.counts(size, setting), mode, self.choice)
    }

    /// Misses of a TLB level per access: the first, or the last, which is walked.
    fn misses(&self, size: usize, setting: usize, is_first: bool) -> f64 {
        let counts = self.counts(size, setting);
        let level = if is_first {
            counts.levels.first()
        } else {
            counts.levels.last()
        };
        level.map_or(0, |level| level.misses) as f64 / counts.accesses.max(1) as f64
    }
}

/// More throughput, in per cent.
fn gain(before: f64, after: f64) -> f64 {
    (before / after - 1.0) * 100.0
}

/// Cycles of other work per access with which a gain is so many per cent; never less than none.
fn other_work(before: f64, after: f64, percent: f64) -> f64 {
    let more = 1.0 + percent / 100.0;
    ((before - more * after) / (more - 1.0)).max(0.0)
}

/// Warehouses on a heap. Other work is fitted at the smallest heap, to the middle of the one range that is published for all heaps.
fn esx35(seen: &Seen<'_>) -> Vec<Published> {
    let (before, after) = (seen.time(0, 0), seen.time(0, 1));
    let other = other_work(before, after, 9.0);
    let at = |size: usize| gain(seen.time(size, 0) + other, seen.time(size, 1) + other);
    let misses = gain(seen.misses(0, 1, true), seen.misses(0, 0, true));
    vec![
        other_cycles("other work per access", other),
        fitted("esx35-gain", at(0)),
        predicted("esx35-solaris", at(1)),
        shown(
            "the same at 8 GB, which the study does not give by itself",
            "% more",
            at(2),
        ),
        predicted("esx35-dtlb", misses),
    ]
}

/// Virtual CPUs of the published compile job.
const COMPILE_VCPUS: u32 = 4;

/// Processes that come and go. Other work is fitted to the compile job on four virtual CPUs; a microbenchmark has none.
fn ept_churn(seen: &Seen<'_>) -> Vec<Published> {
    let (shadow, nested) = (seen.time(0, 0), seen.time(0, 1));
    let other = other_work(shadow, nested, 48.0);
    let locked = locked_share(0.48, COMPILE_VCPUS);
    vec![
        other_cycles("other work per access", other),
        fitted("ept-compile", gain(shadow + other, nested + other)),
        either("ept-compile-vcpus", [0.0, 48.0 - locked * 100.0]),
        predicted("ept-micro", gain(shadow, nested)),
    ]
}

/// Time of a virtual CPU at a lock that all take in turn, relative to its time elsewhere; `share` is that of one alone. Mean value analysis
/// of a closed queue: the lock is an assumption, no publication describes it.
fn waiting(share: f64, vcpus: u32) -> f64 {
    let (mut queue, mut time) = (0.0, 0.0);
    for number in 1..=vcpus {
        time = share * (1.0 + queue);
        queue = f64::from(number) * time / (1.0 + time);
    }
    time
}

/// The share of one virtual CPU alone with which so many lose that much.
fn locked_share(loss: f64, vcpus: u32) -> f64 {
    let (mut low, mut high) = (0.0, loss);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if waiting(middle, vcpus) < loss {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Loads that miss in the TLB, without any page-table write. ESX tries to use large pages for its own memory under EPT: with base pages in the guest
/// the host has either.
fn ept_loads(seen: &Seen<'_>) -> Vec<Published> {
    let [base, on_large, large] =
        [(0, 1), (0, 4), (2, 3)].map(|(shadow, nested)| gain(seen.time(0, shadow), seen.time(0, nested)));
    let slower = |nested| gain(seen.time(0, nested), seen.time(0, 0));
    vec![
        either("ept-loads", [on_large, base]),
        predicted("ept-loads-large", large - base),
        either("ept-latency", [slower(4), slower(1)]),
        predicted("ept-jbb-large", gain(seen.time(0, 4), seen.time(0, 3))),
    ]
}

fn ept_database(seen: &Seen<'_>) -> Vec<Published> {
    vec![predicted("ept-swingbench", gain(seen.time(0, 0), seen.time(0, 1)))]
}

/// memtest in a guest on 1G pages: on base pages, and on 1G pages; and natively on both.
fn vcf_spr(seen: &Seen<'_>) -> Vec<Published> {
    let over_bare = gain(seen.time(0, 0), seen.time(0, 2));
    let [in_guest, on_bare] = [(1, 0), (3, 2)].map(|(huge, base)| gain(seen.time(0, huge), seen.time(0, base)));
    vec![
        predicted("vcf-pressure", over_bare),
        predicted("vcf-base", over_bare),
        either("vcf-huge", [in_guest, on_bare]),
        predicted("vcf-production", seen.time(0, 3) / seen.time(0, 1) * 100.0),
    ]
}

fn vcf_random(seen: &Seen<'_>) -> Vec<Published> {
    let what = "the same where each load is of a random line, which was not published";
    vec![shown(what, "% more", gain(seen.time(0, 0), seen.time(0, 1)))]
}

/// Instructions that gcc 12 -O2 makes of each load of memtest: the load, the counter, its comparison, the branch.
const INSTRUCTIONS: f64 = 4.0;

fn vcf_icelake(seen: &Seen<'_>) -> Vec<Published> {
    let walks = |setting| seen.misses(0, setting, false) * 100.0;
    vec![
        shown("walks per load on base pages", "%", walks(0)),
        shown("walks per load on pages of 2 MB", "%", walks(2)),
        predicted("vcf-misses", walks(0) / INSTRUCTIONS),
        predicted("vcf-misses-1g", walks(1) / INSTRUCTIONS),
        predicted("vcf-icelake-latency", gain(seen.time(0, 1), seen.time(0, 0))),
    ]
}

impl Preset {
    fn experiments(self) -> Vec<Experiment> {
        let shadow = |page| Setting::new(Mode::Shadow, page, page);
        let nested = |page| Setting::new(Mode::Nested, page, page);
        let in_guest = Setting::new(Mode::Nested, BASE, HUGE);
        let one = |pattern, size, settings, compare| Experiment {
            pattern,
            working_sets: vec![size],
            settings,
            compare,
        };
        let (large, memtest) = (Bytes::gib(1), Bytes::gib(8));
        match self {
            Self::Esx35LargePages => vec![Experiment {
                working_sets: [1, 4, 8].map(Bytes::gib).to_vec(),
                ..one(Pattern::Heap, large, vec![shadow(BASE), shadow(LARGE)], esx35)
            }],
            Self::NehalemEpt => {
                let on_large = Setting::new(Mode::Nested, BASE, LARGE);
                let loads = vec![shadow(BASE), nested(BASE), shadow(LARGE), nested(LARGE), on_large];
                let database = vec![shadow(LARGE), nested(LARGE)];
                vec![
                    one(Pattern::Churn, Bytes::mib(256), vec![shadow(BASE), on_large], ept_churn),
                    one(Pattern::Chase, large, loads, ept_loads),
                    one(Pattern::Btree, large, database, ept_database),
                ]
            }
            Self::VcfSpr => {
                let all = vec![in_guest, nested(HUGE), native(BASE), native(HUGE)];
                vec![
                    one(Pattern::Memtest, memtest, all, vcf_spr),
                    one(Pattern::Chase, memtest, vec![in_guest, native(BASE)], vcf_random),
                ]
            }
            Self::VcfIcelake => vec![one(
                Pattern::Memtest,
                memtest,
                vec![in_guest, nested(HUGE), Setting::new(Mode::Nested, LARGE, HUGE)],
                vcf_icelake,
            )],
            Self::VcfTlbTable => Vec::new(),
        }
    }
}

/// Simulates a publication; `progress` hears how many of how many cases of an experiment are done.
///
/// # Errors
/// As a study.
pub fn preset(
    preset: Preset,
    accesses: u64,
    seed: u64,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Simulation, StudyError> {
    let machine = Machine::by_id(preset.machine()).map_err(|_| StudyError::NoBaseline)?;
    let mut all = Simulation {
        machine: MachineFacts::of(&machine),
        input: preset.name().to_owned(),
        is_dependent: true,
        accesses,
        warm_up: accesses,
        baseline: native(BASE),
        unknown: Vec::new(),
        cases: Vec::new(),
        published: Vec::new(),
        curves: Vec::new(),
    };
    if preset == Preset::VcfTlbTable {
        all.published = coverage();
        all.published
            .extend([BASE, LARGE, HUGE].map(|page| true_reach(&machine, page)));
    }
    for experiment in preset.experiments() {
        let compare = experiment.compare;
        let study = study(experiment, machine.clone(), accesses, seed);
        let mut counted = counted(&study, progress)?;
        // All but churn was measured long after all memory was touched first: exits for that are left out.
        if study.pattern != Pattern::Churn {
            counted.iter_mut().for_each(|counts| counts.exits = Exits::default());
        }
        let simulated = result(&study, &counted)?;
        all.published.extend(published(&study, &counted, compare));
        all.baseline = simulated.baseline;
        all.is_dependent &= simulated.is_dependent;
        all.cases.extend(simulated.cases);
        for sweep in simulated.unknown {
            if !all.unknown.contains(&sweep) {
                all.unknown.push(sweep);
            }
        }
    }
    Ok(all)
}

fn study(experiment: Experiment, mut machine: Machine, accesses: u64, seed: u64) -> Study {
    machine.vcpus = 1;
    // No CPU of these publications takes or sends interrupts in a guest without an exit.
    machine.ipi_exits = Some(2.0);
    Study {
        machine,
        pattern: experiment.pattern,
        working_sets: experiment.working_sets,
        baseline: experiment.settings[0],
        settings: experiment.settings,
        accesses,
        warm_up: accesses,
        seed,
    }
}

/// What an experiment gives with everything in the middle, and its range over every corner.
fn published(study: &Study, counted: &[Counts], compare: fn(&Seen<'_>) -> Vec<Published>) -> Vec<Published> {
    let weights = &Weights::of(&study.machine);
    let walkers = counted.first().map_or(0, |counts| counts.walkers.len());
    let at = |choice: &Choice| {
        compare(&Seen {
            study,
            counted,
            weights,
            choice,
        })
    };
    let all: Vec<Vec<Published>> = weights.corners(walkers).iter().map(at).collect();
    let row = |(place, row): (usize, Published)| {
        let ends = all
            .iter()
            .flat_map(|rows| [rows[place].simulated.low, rows[place].simulated.high]);
        let simulated = Range::of(row.simulated.middle, ends);
        Published { simulated, ..row }
    };
    at(&(0, MIDDLE)).into_iter().enumerate().map(row).collect()
}

#[cfg(test)]
#[path = "paging_tests.rs"]
mod tests;
