//! Scenarios as TOML files; a mistake in one is named with its line and with what is expected.

use serde::Deserialize;
use toml::Spanned;

use super::scenario::{check_costs, check_vm};
use super::{Costs, Demand, Idle, Load, MOST_CPUS, MOST_WORLDS, Ns, Policy, Scenario, Topology, Vm};
use crate::tables::{Part, Whole, Word, tables};
use translation::toml_file::{FileError, Scale, TomlFile, numbered};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Sensitivity {
    Normal,
    High,
}

tables! {
    Typed {
        policy: Word;
        seconds, quantum_ms, skew_limit_ms, sibling_chance: Part;
        core_mhz, host_reserved_mhz: Whole;
        topology: Spanned<TypedTopology>;
        costs: Option<Spanned<TypedCosts>>;
        console: Option<Spanned<TypedLoad>>;
        vm: Vec<Spanned<TypedVm>>;
    }
    TypedTopology {
        nodes, sockets, cores_per_socket, threads_per_core: Spanned<i64>;
        logical_cpus: Whole;
    }
    TypedCosts {
        sibling_us, core_us, socket_us, node_us, displaced_us: Part;
        sibling_busy, remote_memory: Option<f64>;
        node_rates: Option<Vec<f64>>;
        idle: Option<Idle>;
    }
    TypedLoad {
        burst_ms, sleep_ms: Spanned<f64>;
    }
    TypedVm {
        name: String;
        vcpus: Spanned<i64>;
        count, shares, node, reservation_mhz: Whole;
        burst_ms, sleep_ms: Spanned<f64>;
        demand: Option<Demand>;
        cpus: Option<Vec<u32>>;
        latency_sensitivity: Option<Sensitivity>;
    }
}

/// The text of a scenario file, which errors call `name`. `policy` replaces the file's.
///
/// # Errors
/// With the line, if it is not of that shape or does not add up.
pub fn parse(name: &str, text: &str, policy: Option<Policy>, seed: u64) -> Result<Scenario, FileError> {
    let file = TomlFile { name, text };
    scenario(file, &file.read()?, policy, seed)
}

fn scenario(file: TomlFile<'_>, typed: &Typed, policy: Option<Policy>, seed: u64) -> Result<Scenario, FileError> {
    let policy = match (policy, &typed.policy) {
        (Some(policy), _) => policy,
        (None, Some(typed)) => file.word(typed)?,
        (None, None) => Policy::Esx253,
    };
    let topology = topology(file, typed.topology.get_ref())?;
    let mut scenario = Scenario::new(topology, policy, Vec::new(), seed);
    let used = scenario.used().or_else(|error| file.fail(&typed.topology, error))?;
    if let Some(typed) = &typed.costs {
        scenario.costs = costs(file, typed)?;
    }
    for vm in &typed.vm {
        vms(file, vm, used, &mut scenario.vms)?;
    }
    if let Some(console) = &typed.console {
        let TypedLoad { burst_ms, sleep_ms } = console.get_ref();
        scenario.console = Some(load(file, burst_ms, sleep_ms, Demand::Time)?);
    }
    times(file, typed, &mut scenario)?;
    match scenario.check() {
        Ok(_) => Ok(scenario),
        Err(error) => file.fail(&typed.topology, error),
    }
}

/// Milliseconds and microseconds up to 1000 s.
const MS: Scale = ([0.0, 1e6], 1e6);
const US: Scale = ([0.0, 1e9], 1e3);

fn times(file: TomlFile<'_>, typed: &Typed, scenario: &mut Scenario) -> Result<(), FileError> {
    const SECONDS: Scale = ([1e-3, 16_000.0], 1e9);
    const QUANTUM: Scale = ([1e-3, 10_000.0], 1e6);
    file.set_scaled("seconds", &typed.seconds, SECONDS, &mut scenario.duration_ns)?;
    file.set_scaled("quantum_ms", &typed.quantum_ms, QUANTUM, &mut scenario.quantum_ns)?;
    if typed.skew_limit_ms.is_some() {
        let limit = scenario.skew_limit_ns.get_or_insert_default();
        file.set_scaled("skew_limit_ms", &typed.skew_limit_ms, MS, limit)?;
    }
    file.set_part("sibling_chance", &typed.sibling_chance, &mut scenario.sibling_chance)?;
    file.set_whole("core_mhz", &typed.core_mhz, [1, 100_000], &mut scenario.core_mhz)?;
    let host = &mut scenario.host_mhz;
    file.set_whole("host_reserved_mhz", &typed.host_reserved_mhz, [0, u32::MAX], host)?;
    let length = scenario.duration_ns / 25;
    scenario.chart_ns = [scenario.duration_ns / 2, length.min(400_000_000)];
    Ok(())
}

fn topology(file: TomlFile<'_>, typed: &TypedTopology) -> Result<Topology, FileError> {
    let count = |name, typed| file.whole(name, typed, 1, MOST_CPUS);
    let topology = Topology {
        nodes: count("nodes", &typed.nodes)?,
        sockets: count("sockets", &typed.sockets)?,
        cores_per_socket: count("cores_per_socket", &typed.cores_per_socket)?,
        threads_per_core: count("threads_per_core", &typed.threads_per_core)?,
    };
    topology.check().or_else(|error| file.fail(&typed.sockets, error))?;
    match &typed.logical_cpus {
        Some(said) if i64::from(topology.cpus()) != *said.get_ref() => {
            let why = format!(
                "logical_cpus is {}: expected {}, which is {} sockets x {} cores x {} threads",
                said.get_ref(),
                topology.cpus(),
                topology.sockets,
                topology.cores_per_socket,
                topology.threads_per_core
            );
            file.fail(said, why)
        }
        _ => Ok(topology),
    }
}

fn costs(file: TomlFile<'_>, at: &Spanned<TypedCosts>) -> Result<Costs, FileError> {
    let (typed, mut costs) = (at.get_ref(), Costs::default());
    let [sibling, core, socket, node] = &mut costs.warm_up_ns;
    file.set_scaled("sibling_us", &typed.sibling_us, US, sibling)?;
    file.set_scaled("core_us", &typed.core_us, US, core)?;
    file.set_scaled("socket_us", &typed.socket_us, US, socket)?;
    file.set_scaled("node_us", &typed.node_us, US, node)?;
    file.set_scaled("displaced_us", &typed.displaced_us, US, &mut costs.displaced_ns)?;
    costs.sibling_busy = typed.sibling_busy.unwrap_or(costs.sibling_busy);
    costs.remote_memory = typed.remote_memory.unwrap_or(costs.remote_memory);
    costs.node_rates = typed.node_rates.clone().unwrap_or_default();
    costs.idle = typed.idle.unwrap_or_default();
    check_costs(&costs).or_else(|error| file.fail(at, error))?;
    Ok(costs)
}

fn load(file: TomlFile<'_>, burst: &Spanned<f64>, sleep: &Spanned<f64>, demand: Demand) -> Result<Load, FileError> {
    let time = |name, typed| Ok((file.number(name, typed, MS.0)? * MS.1).round() as Ns);
    let load = Load {
        burst_ns: time("burst_ms", burst)?,
        sleep_ns: time("sleep_ms", sleep)?,
        demand,
    };
    match load.burst_ns {
        0 => file.fail(burst, "burst_ms is 0: expected a time above 0".to_owned()),
        _ => Ok(load),
    }
}

fn vms(file: TomlFile<'_>, at: &Spanned<TypedVm>, used: Topology, all: &mut Vec<Vm>) -> Result<(), FileError> {
    let typed = at.get_ref();
    let vcpus = file.whole("vcpus", &typed.vcpus, 1, MOST_CPUS)?;
    let mut count = 1;
    file.set_whole("count", &typed.count, [1, MOST_WORLDS as u32], &mut count)?;
    let load = load(file, &typed.burst_ms, &typed.sleep_ms, typed.demand.unwrap_or_default())?;
    let mut vm = Vm::new(&typed.name, vcpus, load);
    file.set_whole("shares", &typed.shares, [vcpus, 1_000_000_000], &mut vm.shares)?;
    if let Some(node) = &typed.node {
        vm.node = Some(file.whole("node", node, 0, used.nodes - 1)?);
    }
    if let Some(mhz) = &typed.reservation_mhz {
        vm.reservation_mhz = Some(u64::from(file.whole("reservation_mhz", mhz, 0, u32::MAX)?));
    }
    vm.cpus = typed.cpus.clone().unwrap_or_default();
    vm.is_latency_sensitive = matches!(typed.latency_sensitivity, Some(Sensitivity::High));
    check_vm(&vm, used).or_else(|error| file.fail(at, error))?;
    all.extend(numbered(&typed.name, count).map(|name| Vm { name, ..vm.clone() }));
    Ok(())
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
