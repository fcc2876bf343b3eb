//! Published experiments, simulated: what is published beside what comes out, and which values were fitted to make it so.

mod table;

use std::str::FromStr;

use model::Bytes;

use super::cost::{MIDDLE, Point, Weights};
use super::run::{StudyError, counted, result};
use super::{MachineFacts, Published, Range, Setting, Simulation, Study};
use crate::translation::engine::{Counts, Mode};
use crate::translation::machine::Machine;
use crate::translation::patterns::Pattern;
use crate::translation::shadow::Exits;
use table::{coverage, true_reach};

/// A publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Huge pages under ESX Server 3.5: Opteron 885, shadow paging.
    Esx35LargePages,
    /// Nested against shadow paging on Nehalem.
    NehalemEpt,
    /// Memory latency on VMware Cloud Foundation, Sapphire Rapids.
    VcfSpr,
    /// The same, Ice Lake.
    VcfIcelake,
    /// Its table of TLB coverage.
    VcfTlbTable,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Esx35LargePages,
        Self::NehalemEpt,
        Self::VcfSpr,
        Self::VcfIcelake,
        Self::VcfTlbTable,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Esx35LargePages => "esx35-large-pages",
            Self::NehalemEpt => "nehalem-ept",
            Self::VcfSpr => "vcf-spr",
            Self::VcfIcelake => "vcf-icelake",
            Self::VcfTlbTable => "vcf-tlb-table",
        }
    }

    fn machine(self) -> &'static str {
        match self {
            Self::Esx35LargePages => "opteron-885",
            Self::NehalemEpt => "xeon-x5560",
            Self::VcfSpr | Self::VcfTlbTable => "xeon-8452y",
            Self::VcfIcelake => "xeon-gold-6330",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Self::Esx35LargePages => "VMware, Large Page Performance: ESX Server 3.5 and ESX Server 3i v3.5 (2008)",
            Self::NehalemEpt => "VMware, Performance Evaluation of Intel EPT Hardware Assist (2009)",
            Self::VcfSpr | Self::VcfIcelake | Self::VcfTlbTable => {
                "VMware and Samsung, study of memory latency on VMware Cloud Foundation"
            }
        }
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let known = Self::ALL.into_iter().find(|preset| preset.name() == text);
        known.ok_or_else(|| format!("`{text}` is no preset (write one of {})", names()))
    }
}

const BASE: Bytes = Bytes::kib(4);
const LARGE: Bytes = Bytes::mib(2);
const HUGE: Bytes = Bytes::gib(1);

const fn native(guest_page: Bytes) -> Setting {
    Setting {
        mode: Mode::Native,
        guest_page,
        host_page: None,
    }
}

const fn guest(mode: Mode, guest_page: Bytes, host: Bytes) -> Setting {
    Setting {
        mode,
        guest_page,
        host_page: Some(host),
    }
}

/// Cycles per access of a case, by the places of its working set and its setting, at one choice of what is not known.
type Times<'a> = &'a dyn Fn(usize, usize) -> f64;

/// One published value, and the simulated one at one choice.
struct Compared {
    what: &'static str,
    unit: &'static str,
    published: &'static [f64],
    is_fitted: bool,
    value: f64,
}

fn fitted(what: &'static str, unit: &'static str, published: &'static [f64], value: f64) -> Compared {
    Compared {
        what,
        unit,
        published,
        is_fitted: true,
        value,
    }
}

fn predicted(what: &'static str, unit: &'static str, published: &'static [f64], value: f64) -> Compared {
    Compared {
        is_fitted: false,
        ..fitted(what, unit, published, value)
    }
}

/// One pattern with its cases, and what is read off them.
struct Experiment {
    pattern: Pattern,
    working_sets: Vec<Bytes>,
    settings: Vec<Setting>,
    /// Virtual CPUs, each with a thread of its own.
    vcpus: u16,
    /// Was it measured long after all memory was touched first? Then exits for that are left out.
    is_steady: bool,
    compare: fn(Times<'_>) -> Vec<Compared>,
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

/// Warehouses on a heap. Other work is fitted at the smallest heap, to the middle of the range that is published for heaps of 1 to 8 GB.
fn esx35(time: Times<'_>) -> Vec<Compared> {
    const PUBLISHED: &[f64] = &[8.0, 10.0];
    let other = other_work(time(0, 0), time(0, 1), 9.0);
    let at = |size: usize| gain(time(size, 0) + other, time(size, 1) + other);
    vec![
        fitted("other work per access", "cycles", &[], other),
        fitted("SPECjbb2005 with large pages, 1 GB heap", "% more", PUBLISHED, at(0)),
        predicted("SPECjbb2005 with large pages, 2 GB heap", "% more", PUBLISHED, at(1)),
        predicted("SPECjbb2005 with large pages, 4 GB heap", "% more", PUBLISHED, at(2)),
        predicted("SPECjbb2005 with large pages, 8 GB heap", "% more", PUBLISHED, at(3)),
        predicted("the same on Solaris, 4 GB heap", "% more", &[8.1], at(2)),
    ]
}

/// Processes that come and go. Other work is fitted to the compile job; a microbenchmark has none.
fn ept_churn(time: Times<'_>) -> Vec<Compared> {
    let other = other_work(time(0, 0), time(0, 1), 48.0);
    vec![
        fitted("other work per access", "cycles", &[], other),
        fitted(
            "Apache compile, nested over shadow",
            "% more",
            &[48.0],
            gain(time(0, 0) + other, time(0, 1) + other),
        ),
        predicted(
            "process churn alone, nested over shadow",
            "% more",
            &[600.0],
            gain(time(0, 0), time(0, 1)),
        ),
    ]
}

/// Loads that miss in the TLB, without any page-table write.
fn ept_loads(time: Times<'_>) -> Vec<Compared> {
    vec![
        predicted(
            "TLB-bound loads on base pages, nested over shadow: below 0",
            "% more",
            &[],
            gain(time(0, 0), time(0, 1)),
        ),
        predicted(
            "the same with large pages in guest and host: about 0",
            "% more",
            &[],
            gain(time(0, 2), time(0, 3)),
        ),
    ]
}

/// Threads of one process that map, use and unmap memory on all virtual CPUs.
fn ept_threads(vcpus: u16, compare: fn(Times<'_>) -> Vec<Compared>) -> Experiment {
    Experiment {
        pattern: Pattern::Churn,
        working_sets: vec![Bytes::mib(256)],
        settings: vec![guest(Mode::Shadow, BASE, BASE), guest(Mode::Nested, BASE, BASE)],
        vcpus,
        is_steady: false,
        compare,
    }
}

/// The publication has figures of one and more virtual CPUs, but of other programs.
fn threads_gain(what: &'static str, time: Times<'_>) -> Vec<Compared> {
    vec![predicted(what, "% more", &[], gain(time(0, 0), time(0, 1)))]
}

fn vcf_latency(time: Times<'_>) -> [Compared; 2] {
    [
        predicted(
            "latency on base pages in a VM (host on 2M) over bare metal",
            "% more",
            &[5.0],
            gain(time(0, 1), time(0, 0)),
        ),
        predicted(
            "speed of a VM with 1G pages, of bare metal: above",
            "%",
            &[97.0],
            time(0, 3) / time(0, 4) * 100.0,
        ),
    ]
}

fn vcf_spr(time: Times<'_>) -> Vec<Compared> {
    vcf_latency(time).into()
}

fn vcf_icelake(time: Times<'_>) -> Vec<Compared> {
    let [latency, speed] = vcf_latency(time);
    let latency = Compared {
        published: &[12.0],
        ..latency
    };
    vec![latency, speed]
}

impl Preset {
    fn experiments(self) -> Vec<Experiment> {
        let shadow = |page| guest(Mode::Shadow, page, page);
        let nested = |page| guest(Mode::Nested, page, page);
        let vcf = |compare| Experiment {
            pattern: Pattern::Chase,
            working_sets: vec![Bytes::gib(8)],
            settings: vec![
                native(BASE),
                guest(Mode::Nested, BASE, LARGE),
                nested(LARGE),
                native(HUGE),
                nested(HUGE),
            ],
            vcpus: 1,
            is_steady: true,
            compare,
        };
        match self {
            Self::Esx35LargePages => vec![Experiment {
                pattern: Pattern::Heap,
                working_sets: [1, 2, 4, 8].map(Bytes::gib).to_vec(),
                settings: vec![shadow(BASE), shadow(LARGE)],
                vcpus: 1,
                is_steady: true,
                compare: esx35,
            }],
            Self::NehalemEpt => vec![
                Experiment {
                    pattern: Pattern::Churn,
                    working_sets: vec![Bytes::mib(256)],
                    settings: vec![shadow(BASE), nested(BASE)],
                    vcpus: 1,
                    is_steady: false,
                    compare: ept_churn,
                },
                Experiment {
                    pattern: Pattern::Chase,
                    working_sets: vec![Bytes::gib(1)],
                    settings: vec![shadow(BASE), nested(BASE), shadow(LARGE), nested(LARGE)],
                    vcpus: 1,
                    is_steady: true,
                    compare: ept_loads,
                },
                ept_threads(2, |time| {
                    threads_gain("threads that map and unmap, 2 vCPUs, nested over shadow", time)
                }),
                ept_threads(4, |time| threads_gain("the same, 4 vCPUs", time)),
                ept_threads(8, |time| threads_gain("the same, 8 vCPUs", time)),
            ],
            Self::VcfSpr => vec![vcf(vcf_spr)],
            Self::VcfIcelake => vec![vcf(vcf_icelake)],
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
    };
    if preset == Preset::VcfTlbTable {
        all.published = coverage(preset.source());
        all.published
            .extend([BASE, LARGE, HUGE].map(|page| true_reach(&machine, page)));
    }
    for experiment in preset.experiments() {
        let mut machine = machine.clone();
        machine.surroundings.vcpus = Some(experiment.vcpus);
        // No CPU of these publications takes or sends interrupts in a guest without an exit.
        machine.surroundings.ipi_exits = Some(2.0);
        let study = Study {
            machine,
            pattern: experiment.pattern,
            working_sets: experiment.working_sets,
            baseline: experiment.settings[0],
            settings: experiment.settings,
            accesses,
            warm_up: accesses,
            seed,
        };
        let mut counted = counted(&study, progress)?;
        if experiment.is_steady {
            counted.iter_mut().for_each(|counts| counts.exits = Exits::default());
        }
        let simulated = result(&study, &counted)?;
        all.published
            .extend(published(&study, &counted, experiment.compare, preset.source()));
        all.baseline = simulated.baseline;
        all.is_dependent &= simulated.is_dependent;
        all.cases.extend(simulated.cases);
        all.unknown.extend(simulated.unknown);
    }
    all.unknown.dedup();
    Ok(all)
}

/// What an experiment gives with everything in the middle, and its range over every corner.
fn published(
    study: &Study,
    counted: &[Counts],
    compare: fn(Times<'_>) -> Vec<Compared>,
    source: &str,
) -> Vec<Published> {
    let weights = Weights::of(&study.machine);
    let walkers = counted.first().map_or(0, |counts| counts.walkers.len());
    let each = study.settings.len();
    let at = |walker: usize, point: &Point| {
        let time = |size: usize, setting: usize| {
            let counts = &counted[size * each + setting];
            let is_guest = study.settings[setting].mode != Mode::Native;
            weights.causes(counts, is_guest, walker, point).iter().sum::<f64>()
        };
        compare(&time)
    };
    let corners = weights
        .corners()
        .into_iter()
        .flat_map(|point| (0..walkers).map(move |walker| (walker, point)));
    let all: Vec<Vec<Compared>> = corners.map(|(walker, point)| at(walker, &point)).collect();
    let row = |(place, compared): (usize, Compared)| Published {
        what: compared.what.to_owned(),
        source: source.to_owned(),
        unit: compared.unit.to_owned(),
        published: compared.published.to_vec(),
        simulated: Range::of(compared.value, all.iter().map(|rows| rows[place].value)),
        is_fitted: compared.is_fitted,
    };
    at(0, &MIDDLE).into_iter().enumerate().map(row).collect()
}

#[cfg(test)]
#[path = "preset_tests.rs"]
mod tests;
