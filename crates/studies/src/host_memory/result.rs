//! The result: each policy over time, its totals, and each machine at the end.

use std::slice;

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::engine::{Engine, SECOND};
use super::lost::{PatternCost, costs, working_set};
use super::machine::Machine;
use super::region::{Backing, Place};
use super::states::{Edge, Level, States};
use super::totals::Totals;
use super::what_if::Advice;
use super::{PAGE, PAGES, Policy, Scenario};
use translation::study::{Published, Range};

/// Samples of a run over time.
const SAMPLES: u64 = 60;

/// The result: `hugewise simulate host`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostMemory {
    /// What was simulated: a file, a preset or a capture.
    pub input: String,
    /// Memory of the host, in bytes; 0 where nothing was simulated over time.
    pub memory: Bytes,
    /// Memory of all machines, in bytes.
    pub vm_memory: Bytes,
    /// Machines.
    pub vms: usize,
    /// Time simulated, in seconds.
    pub seconds: f64,
    /// Time of a step, in seconds.
    pub step_s: f64,
    /// What translation costs by working set; empty if it was not asked for.
    pub translation: Vec<PatternCost>,
    /// One for each policy.
    pub outcomes: Vec<Outcome>,
    /// A publication beside what is simulated, for presets.
    pub published: Vec<Published>,
    /// What would change on a captured host.
    pub advice: Option<Advice>,
}

/// What became of memory under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The policy.
    pub policy: Policy,
    /// Its states of free memory.
    pub states: States,
    /// The edges of those states.
    pub edges: Vec<Edge>,
    /// Memory over time; the last sample is the end.
    pub samples: Vec<Sample>,
    /// What happened in all.
    pub totals: Totals,
    /// The machines at the end.
    pub vms: Vec<VmMemory>,
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Seconds from the start.
    pub at_s: f64,
    /// How short memory is.
    pub level: Level,
    /// Amounts of all machines.
    pub amounts: Amounts,
    /// Free bytes.
    pub free: Bytes,
    /// Free bytes in whole blocks of 2 MiB.
    pub free_whole: Bytes,
    /// Bytes that sharing saves: shared pages less the memory behind them.
    pub saved: Bytes,
    /// Huge pages broken so far, to share and to swap.
    pub broken: u64,
    /// Regions collapsed to huge pages so far.
    pub collapsed: u64,
    /// Bytes swapped out and in so far.
    pub swapped: [Bytes; 2],
    /// The part of the machines' CPU time that translation takes now, from 0 to 1.
    pub lost: Range,
}

/// Bytes of guest memory by what is behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amounts {
    /// 1 GiB pages.
    pub giant: Bytes,
    /// Huge pages.
    pub large: Bytes,
    /// Base pages of its own.
    pub small: Bytes,
    /// Shared base pages.
    pub shared: Bytes,
    /// Taken by the balloon.
    pub ballooned: Bytes,
    /// Compressed.
    pub compressed: Bytes,
    /// In swap space.
    pub swapped: Bytes,
    /// Never touched.
    pub untouched: Bytes,
}

/// A machine at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VmMemory {
    /// Its name.
    pub name: String,
    /// Its memory, in bytes.
    pub memory: Bytes,
    /// What is behind it.
    pub amounts: Amounts,
    /// The part of its CPU time that translation takes now, from 0 to 1.
    pub lost: Range,
}

/// Simulates each policy.
///
/// # Errors
/// What is wrong with the scenario, with what is expected.
pub fn simulate(scenario: &Scenario) -> Result<HostMemory, String> {
    scenario.check()?;
    let translation = costs(&scenario.translation, &scenario.vms, scenario.seed)?;
    let outcomes = scenario
        .policies
        .iter()
        .map(|policy| outcome(scenario, *policy, &translation));
    Ok(HostMemory {
        memory: scenario.host.memory,
        vm_memory: Bytes(scenario.pages() * PAGE),
        vms: scenario.vms.len(),
        seconds: scenario.duration_ns as f64 / SECOND as f64,
        step_s: scenario.step_ns as f64 / SECOND as f64,
        outcomes: outcomes.collect(),
        translation,
        ..HostMemory::default()
    })
}

/// Sums over the steps.
#[derive(Default)]
struct Sums {
    levels: [u64; 6],
    lost: Range,
    most_saved: u64,
}

pub(super) fn outcome(scenario: &Scenario, policy: Policy, translation: &[PatternCost]) -> Outcome {
    let mut engine = Engine::new(scenario, policy);
    let steps = scenario.duration_ns / scenario.step_ns;
    let each = steps.div_ceil(SAMPLES).max(1);
    let costs = machine_costs(scenario, translation);
    let mut sums = Sums::default();
    let mut samples = Vec::new();
    for step in 1..=steps {
        engine.step();
        sums.levels[engine.level as usize] += 1;
        sums.most_saved = sums.most_saved.max(saved(&engine));
        let lost = lost(&engine, &costs);
        sums.lost = sums.lost.plus(lost);
        if step.is_multiple_of(each) || step == steps {
            samples.push(sample(&engine, step, lost));
        }
    }
    Outcome {
        policy,
        states: scenario.states_under(policy),
        edges: engine.edges.clone(),
        samples,
        totals: totals(&engine, &sums, steps),
        vms: vms(&engine, &costs),
    }
}

/// The costs of each machine by backing; none where they are not asked for.
fn machine_costs(scenario: &Scenario, translation: &[PatternCost]) -> Vec<[Range; 3]> {
    let of = |vm| {
        translation
            .iter()
            .find(|cost| cost.working_set == working_set(vm))
            .map(PatternCost::parts)
    };
    scenario.vms.iter().map(|vm| of(vm).unwrap_or_default()).collect()
}

fn lost_of(parts: [f64; 3], costs: &[Range; 3]) -> Range {
    let [small, large, giant] = [0, 1, 2].map(|place| costs[place].map(|cost| parts[place] * cost));
    small.plus(large).plus(giant)
}

/// Of all busy virtual CPUs.
fn lost(engine: &Engine<'_>, costs: &[[Range; 3]]) -> Range {
    let mut all = Range::default();
    let mut cpus = 0.0;
    for ((machine, cost), vm) in engine.machines.iter().zip(costs).zip(&engine.scenario.vms) {
        let weight = f64::from(vm.vcpus);
        all = all.plus(lost_of(machine.hot_parts(), cost).map(|lost| lost * weight));
        cpus += weight;
    }
    all.map(|sum| sum / f64::max(cpus, 1.0))
}

fn bytes(pages: u64) -> Bytes {
    Bytes(pages * PAGE)
}

fn saved(engine: &Engine<'_>) -> u64 {
    let shared: u64 = engine.machines.iter().map(|machine| machine.at(Place::Shared)).sum();
    shared - engine.shared_frames
}

fn amounts(machines: &[Machine]) -> Amounts {
    let sum = |of: &dyn Fn(&Machine) -> u64| bytes(machines.iter().map(of).sum());
    let at = |place| sum(&|machine| machine.at(place));
    let regions = |backing| sum(&|machine| u64::from(machine.backed(backing)) * u64::from(PAGES));
    let (large, giant) = (regions(Backing::Large), regions(Backing::Giant));
    Amounts {
        giant,
        large,
        small: Bytes(at(Place::Own).0 - large.0 - giant.0),
        shared: at(Place::Shared),
        ballooned: at(Place::Ballooned),
        compressed: at(Place::Compressed),
        swapped: at(Place::Swapped),
        untouched: at(Place::Absent),
    }
}

impl Amounts {
    /// Of the memory that is there, the part on large and 1 GiB pages; none if none is there.
    pub fn large_part(self) -> Option<f64> {
        let large = self.large.0 + self.giant.0;
        let all = large + self.small.0 + self.shared.0;
        (all > 0).then(|| large as f64 / all as f64)
    }
}

fn sample(engine: &Engine<'_>, step: u64, lost: Range) -> Sample {
    let counters = &engine.counters;
    Sample {
        at_s: (step * engine.scenario.step_ns) as f64 / SECOND as f64,
        level: engine.level,
        amounts: amounts(&engine.machines),
        free: bytes(engine.frames.free()),
        free_whole: bytes(engine.frames.free_blocks * u64::from(PAGES)),
        saved: bytes(saved(engine)),
        broken: counters.broken + counters.broken_to_swap,
        collapsed: counters.collapsed,
        swapped: [counters.swapped_out, counters.swapped_in],
        lost,
    }
}

fn totals(engine: &Engine<'_>, sums: &Sums, steps: u64) -> Totals {
    let steps = steps.max(1) as f64;
    let lost = sums.lost.map(|sum| sum / steps);
    let vcpus: u32 = engine.scenario.vms.iter().map(|vm| vm.vcpus).sum();
    let cpu_s = f64::from(vcpus) * engine.scenario.duration_ns as f64 / SECOND as f64;
    Totals {
        scans: engine.scans - 1,
        compacted: bytes(engine.frames.moved),
        most_saved: bytes(sums.most_saved),
        levels: sums.levels.map(|count| count as f64 / steps),
        lost,
        lost_cpu_s: lost.map(|part| part * cpu_s),
        ..engine.counters
    }
}

fn vms(engine: &Engine<'_>, costs: &[[Range; 3]]) -> Vec<VmMemory> {
    let each = engine.scenario.vms.iter().zip(&engine.machines).zip(costs);
    each.map(|((vm, machine), cost)| VmMemory {
        name: vm.name.clone(),
        memory: vm.memory,
        amounts: amounts(slice::from_ref(machine)),
        lost: lost_of(machine.hot_parts(), cost),
    })
    .collect()
}
