//! The result: time by virtual machine and CPU, waits, fairness, and slices for a chart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accounts::Histogram;
use super::engine::Engine;
use super::explained::Explained;
use super::fairness::{entitled, jain};
use super::rates::POINT;
use super::{Costs, Load, Ns, Policy, Reservation, Scenario, Topology};

/// The result: `hugewise simulate scheduler`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// The host.
    pub topology: Topology,
    /// What the policy uses of it.
    pub used: Topology,
    /// Who decided.
    pub policy: Policy,
    /// What running in one place or another cost.
    pub costs: Costs,
    /// Time simulated, in seconds.
    pub seconds: f64,
    /// Events simulated.
    pub events: u64,
    /// Virtual CPUs for each logical CPU.
    pub overcommit: f64,
    /// The virtual machines.
    pub vms: Vec<VmTime>,
    /// The logical CPUs.
    pub cpus: Vec<CpuTime>,
    /// Waits of all virtual machines.
    pub waits: Waits,
    /// Who got what by its shares.
    pub fairness: Fairness,
    /// Where the first virtual CPUs ran.
    pub residency: Vec<Residency>,
    /// A part of the time, for a chart.
    pub slices: Vec<Slice>,
    /// The part of the time that slices are of, from and to, in seconds.
    pub chart: [f64; 2],
    /// What latency sensitivity high asked for and got.
    pub reservations: Vec<Reservation>,
    /// A publication beside what is simulated, for presets.
    pub explained: Option<Explained>,
}

/// One virtual machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VmTime {
    /// Its name.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Shares.
    pub shares: u64,
    /// Its home node at the end, if it has one.
    pub node: Option<u32>,
    /// Seconds that its virtual CPUs ran.
    pub run_s: f64,
    /// Seconds that they waited for a CPU.
    pub ready_s: f64,
    /// Seconds that they waited for each other.
    pub costopped_s: f64,
    /// Seconds that they had nothing to do.
    pub asleep_s: f64,
    /// Of the seconds that they ran: until caches were warm.
    pub warming_s: f64,
    /// Work done, in seconds of a CPU at full rate.
    pub work_s: f64,
    /// Moves: to a sibling, core, socket, node.
    pub moves: [u64; 4],
    /// CPUs that it used.
    pub cpus: f64,
    /// CPUs that its shares and its load entitle it to.
    pub entitled_cpus: f64,
    /// Its waits.
    pub waits: Waits,
}

/// How long virtual CPUs waited each time until they ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// How often they began to run.
    pub count: u64,
    /// Half of the waits are at most this long, in microseconds, within an eighth.
    pub p50_us: f64,
    /// 99 % of them.
    pub p99_us: f64,
    /// 99.9 % of them.
    pub p999_us: f64,
    /// The longest.
    pub longest_us: f64,
}

/// One logical CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTime {
    /// Its number.
    pub cpu: u32,
    /// Its node.
    pub node: u32,
    /// The part of the time that virtual CPUs ran on it.
    pub guests: f64,
    /// The part of the time that the console ran on it.
    pub console: f64,
    /// The part of the time that its idle world ran on it.
    pub idle: f64,
}

/// How close everyone came to what it is entitled to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// The mean distance of used from entitled CPU time, relative to the latter, in per cent.
    pub mean_error_pct: f64,
    /// The largest one.
    pub max_error_pct: f64,
    /// Jain's index of used by entitled CPU time: 1 is fair.
    pub jain: f64,
}

/// Where one virtual CPU ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Residency {
    /// Its virtual machine's place.
    pub vm: u32,
    /// Its number in it.
    pub vcpu: u32,
    /// The part of all time by logical CPU.
    pub shares: Vec<f64>,
}

/// A virtual CPU ran on a logical one without a break.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// The logical CPU.
    pub cpu: u32,
    /// The virtual machine's place; none for the console.
    pub vm: Option<u32>,
    /// From then, in nanoseconds.
    pub from_ns: Ns,
    /// Until then.
    pub until_ns: Ns,
}

const SECOND: f64 = 1e9;

/// Simulates.
///
/// # Errors
/// What is wrong with the scenario, with what is expected.
pub fn simulate(scenario: &Scenario) -> Result<Schedule, String> {
    let mut engine = Engine::new(scenario)?;
    engine.run(scenario.duration_ns);
    Ok(of(&engine))
}

pub(super) fn of(engine: &Engine<'_>) -> Schedule {
    let (scenario, topology, vms) = (engine.scenario, engine.topology, vms(engine));
    let mut all = engine.accounts.waits[0].clone();
    let others = &engine.accounts.waits[1..scenario.vms.len()];
    others.iter().for_each(|other| all.join(other));
    let vcpus: u32 = scenario.vms.iter().map(|vm| vm.vcpus).sum();
    let from = scenario.chart_ns[0].min(scenario.duration_ns);
    let until = (from + scenario.chart_ns[1]).min(scenario.duration_ns);
    Schedule {
        topology: scenario.topology,
        used: topology,
        policy: scenario.policy,
        costs: scenario.costs.clone(),
        seconds: scenario.duration_ns as f64 / SECOND,
        events: engine.events,
        overcommit: f64::from(vcpus) / f64::from(topology.cpus()),
        cpus: cpus(engine),
        waits: waits(&all),
        fairness: fairness(&vms),
        vms,
        residency: residency(engine),
        slices: slices(engine),
        chart: [from as f64 / SECOND, until as f64 / SECOND],
        reservations: engine.reservations.clone(),
        explained: None,
    }
}

fn vms(engine: &Engine<'_>) -> Vec<VmTime> {
    let scenario = engine.scenario;
    let seconds = scenario.duration_ns as f64 / SECOND;
    let console = scenario.console.map_or(0.0, Load::duty);
    let capacity = f64::from(engine.topology.cpus()) - console;
    // What it wanted is when it could have run: on a slow CPU, such as one with a busy sibling, the same work wants more time.
    let wanted = |place: usize| engine.wanted(place) as f64 / scenario.duration_ns as f64;
    let wants = (0..).zip(&scenario.vms).map(|(place, vm)| (vm.shares, wanted(place)));
    let entitled = entitled(capacity, &wants.collect::<Vec<_>>());
    let each = scenario.vms.iter().zip(entitled).enumerate();
    each.map(|(place, (vm, entitled_cpus))| {
        let worlds = &engine.worlds[engine.machines[place].start as usize..engine.machines[place].end as usize];
        let sum = |of: &dyn Fn(&super::world::Totals) -> u64| -> f64 {
            worlds.iter().map(|world| of(&world.totals)).sum::<u64>() as f64 / SECOND
        };
        let moves = |kind: usize| worlds.iter().map(|world| world.totals.moves[kind]).sum();
        let node = worlds
            .first()
            .and_then(|world| (world.lane as usize).checked_sub(engine.cpus.len()));
        let run_s = sum(&|totals| totals.run);
        VmTime {
            name: vm.name.clone(),
            vcpus: vm.vcpus,
            shares: vm.shares,
            node: node.map(|node| node as u32),
            run_s,
            ready_s: sum(&|totals| totals.ready),
            costopped_s: sum(&|totals| totals.costopped),
            asleep_s: sum(&|totals| totals.asleep),
            warming_s: sum(&|totals| totals.warming),
            work_s: sum(&|totals| totals.work >> POINT),
            moves: std::array::from_fn(moves),
            cpus: run_s / seconds,
            entitled_cpus,
            waits: waits(&engine.accounts.waits[place]),
        }
    })
    .collect()
}

fn waits(histogram: &Histogram) -> Waits {
    let us = |time: Ns| time as f64 / 1e3;
    Waits {
        count: histogram.count,
        p50_us: us(histogram.quantile(500_000)),
        p99_us: us(histogram.quantile(990_000)),
        p999_us: us(histogram.quantile(999_000)),
        longest_us: us(histogram.longest),
    }
}

fn fairness(vms: &[VmTime]) -> Fairness {
    let ratios: Vec<f64> = vms.iter().map(|vm| vm.cpus / vm.entitled_cpus.max(1e-12)).collect();
    let errors = ratios.iter().map(|ratio| (ratio - 1.0).abs() * 100.0);
    Fairness {
        mean_error_pct: errors.clone().sum::<f64>() / ratios.len().max(1) as f64,
        max_error_pct: errors.fold(0.0, f64::max),
        jain: jain(&ratios),
    }
}

fn cpus(engine: &Engine<'_>) -> Vec<CpuTime> {
    let all = engine.scenario.duration_ns;
    let part = |time: Ns| time as f64 / all as f64;
    let console = engine.console.map_or(0, |id| engine.worlds[id as usize].totals.run);
    let each = engine.cpus.iter().zip(0..);
    each.map(|(cpu, number)| {
        let console = if number == 0 { console } else { 0 };
        CpuTime {
            cpu: number,
            node: engine.topology.node(number),
            guests: part(cpu.busy - console),
            console: part(console),
            idle: part(all - cpu.busy),
        }
    })
    .collect()
}

fn residency(engine: &Engine<'_>) -> Vec<Residency> {
    let all = engine.scenario.duration_ns as f64;
    let worlds = (0..).zip(&engine.worlds).zip(engine.accounts.places());
    let guests = worlds.filter(|((id, _), _)| Some(*id) != engine.console);
    guests
        .map(|((id, world), places)| Residency {
            vm: world.vm,
            vcpu: id - engine.machines[world.vm as usize].start,
            shares: places.iter().map(|time| *time as f64 / all).collect(),
        })
        .collect()
}

fn slices(engine: &Engine<'_>) -> Vec<Slice> {
    let slice = |slice: &super::accounts::Stretch| {
        let vm = engine.worlds[slice.world as usize].vm;
        Slice {
            cpu: slice.cpu,
            vm: ((vm as usize) < engine.scenario.vms.len()).then_some(vm),
            from_ns: slice.from,
            until_ns: slice.until,
        }
    };
    engine.accounts.slices.iter().map(slice).collect()
}
