//! Published experiments, simulated: what is published beside what comes out, and which values were fitted to make it so.

mod pages;
mod table;

use model::{Bytes, names};

use pages::{BASE, HUGE, LARGE};
use table::{coverage, true_reach};
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::study::{
    Choice, MIDDLE, MachineFacts, Published, Range, Setting, Simulation, Study, StudyError, Weights, counted, result,
};
use translation::{Counts, Exits, Mode};

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
    VcfTlbTable,
}

names!(Preset, "a preset", {
    Esx35LargePages => "esx35-large-pages",
    NehalemEpt => "nehalem-ept",
    VcfSpr => "vcf-spr",
    VcfIcelake => "vcf-icelake",
    VcfTlbTable => "vcf-tlb-table",
});

impl Preset {
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

fn native(page: Bytes) -> Setting {
    Setting::new(Mode::Native, page, page)
}

/// Cycles per access of a case, by the places of its working set and its setting, at one choice of what is not known.
type Times<'a> = &'a dyn Fn(usize, usize) -> f64;

/// A published value, and the simulated one at one choice; the source is named later.
fn predicted(what: &str, unit: &str, published: &[f64], value: f64) -> Published {
    Published::exact("", what, unit, published, value)
}

fn fitted(what: &str, unit: &str, published: &[f64], value: f64) -> Published {
    Published {
        is_fitted: true,
        ..predicted(what, unit, published, value)
    }
}

/// One pattern with its cases, and what is read off them.
struct Experiment {
    pattern: Pattern,
    working_sets: Vec<Bytes>,
    settings: Vec<Setting>,
    /// Virtual CPUs, each with a thread of its own.
    vcpus: u16,
    compare: fn(Times<'_>) -> Vec<Published>,
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
fn esx35(time: Times<'_>) -> Vec<Published> {
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
fn ept_churn(time: Times<'_>) -> Vec<Published> {
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
fn ept_loads(time: Times<'_>) -> Vec<Published> {
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

/// The publication has figures of one and more virtual CPUs, but of other programs.
fn threads_gain(what: &'static str, time: Times<'_>) -> Vec<Published> {
    vec![predicted(what, "% more", &[], gain(time(0, 0), time(0, 1)))]
}

fn vcf_latency(time: Times<'_>) -> [Published; 2] {
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

fn vcf_spr(time: Times<'_>) -> Vec<Published> {
    vcf_latency(time).into()
}

fn vcf_icelake(time: Times<'_>) -> Vec<Published> {
    let [latency, speed] = vcf_latency(time);
    let latency = Published {
        published: vec![12.0],
        ..latency
    };
    vec![latency, speed]
}

impl Preset {
    fn experiments(self) -> Vec<Experiment> {
        let shadow = |page| Setting::new(Mode::Shadow, page, page);
        let nested = |page| Setting::new(Mode::Nested, page, page);
        // Threads of one process that map, use and unmap memory on all virtual CPUs.
        let churn = |vcpus, compare| Experiment {
            pattern: Pattern::Churn,
            working_sets: vec![Bytes::mib(256)],
            settings: vec![shadow(BASE), nested(BASE)],
            vcpus,
            compare,
        };
        let chase = |size, settings, compare| Experiment {
            pattern: Pattern::Chase,
            working_sets: vec![size],
            settings,
            vcpus: 1,
            compare,
        };
        let vcf = |compare| {
            let in_guest = Setting::new(Mode::Nested, BASE, LARGE);
            let settings = vec![native(BASE), in_guest, nested(LARGE), native(HUGE), nested(HUGE)];
            vec![chase(Bytes::gib(8), settings, compare)]
        };
        match self {
            Self::Esx35LargePages => vec![Experiment {
                pattern: Pattern::Heap,
                working_sets: [1, 2, 4, 8].map(Bytes::gib).to_vec(),
                settings: vec![shadow(BASE), shadow(LARGE)],
                vcpus: 1,
                compare: esx35,
            }],
            Self::NehalemEpt => {
                let loads = vec![shadow(BASE), nested(BASE), shadow(LARGE), nested(LARGE)];
                vec![
                    churn(1, ept_churn),
                    chase(Bytes::gib(1), loads, ept_loads),
                    churn(2, |time| {
                        threads_gain("threads that map and unmap, 2 vCPUs, nested over shadow", time)
                    }),
                    churn(4, |time| threads_gain("the same, 4 vCPUs", time)),
                    churn(8, |time| threads_gain("the same, 8 vCPUs", time)),
                ]
            }
            Self::VcfSpr => vcf(vcf_spr),
            Self::VcfIcelake => vcf(vcf_icelake),
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
        // All but churn was measured long after all memory was touched first: exits for that are left out.
        if study.pattern != Pattern::Churn {
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
    compare: fn(Times<'_>) -> Vec<Published>,
    source: &str,
) -> Vec<Published> {
    let weights = Weights::of(&study.machine);
    let walkers = counted.first().map_or(0, |counts| counts.walkers.len());
    let each = study.settings.len();
    let at = |choice: &Choice| {
        compare(&|size, setting| {
            let counts = &counted[size * each + setting];
            weights.cycles(counts, study.settings[setting].mode, choice)
        })
    };
    let all: Vec<Vec<Published>> = weights.corners(walkers).iter().map(at).collect();
    let row = |(place, row): (usize, Published)| {
        let value = |row: &Published| row.simulated.middle;
        let simulated = Range::of(value(&row), all.iter().map(|rows| value(&rows[place])));
        let source = source.to_owned();
        Published {
            source,
            simulated,
            ..row
        }
    };
    at(&(0, MIDDLE)).into_iter().enumerate().map(row).collect()
}

#[cfg(test)]
#[path = "paging_tests.rs"]
mod tests;
