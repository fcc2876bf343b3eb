//! Scenarios as TOML files; a mistake in one is named with its line and with what is expected.

use serde::Deserialize;
use toml::Spanned;

use super::scenario::{check_costs, check_vm};
use super::{Console, Costs, Demand, Idle, Load, MOST_WORLDS, Ns, Policy, Scenario, Topology, Vm};
use crate::typed_file::{FileError, TypedFile};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    policy: Option<Spanned<String>>,
    seconds: Option<Spanned<f64>>,
    quantum_ms: Option<Spanned<f64>>,
    skew_limit_ms: Option<Spanned<f64>>,
    sibling_chance: Option<Spanned<f64>>,
    core_mhz: Option<Spanned<i64>>,
    host_reserved_mhz: Option<Spanned<i64>>,
    topology: Spanned<TypedTopology>,
    costs: Option<Spanned<TypedCosts>>,
    console: Option<Spanned<TypedLoad>>,
    vm: Vec<Spanned<TypedVm>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedTopology {
    nodes: Spanned<i64>,
    sockets: Spanned<i64>,
    cores_per_socket: Spanned<i64>,
    threads_per_core: Spanned<i64>,
    logical_cpus: Option<Spanned<i64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedCosts {
    sibling_us: Option<Spanned<f64>>,
    core_us: Option<Spanned<f64>>,
    socket_us: Option<Spanned<f64>>,
    node_us: Option<Spanned<f64>>,
    displaced_us: Option<Spanned<f64>>,
    sibling_busy: Option<f64>,
    remote_memory: Option<f64>,
    node_rates: Option<Vec<f64>>,
    idle: Option<Idle>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedLoad {
    burst_ms: Spanned<f64>,
    sleep_ms: Spanned<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sensitivity {
    Normal,
    High,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedVm {
    name: String,
    count: Option<Spanned<i64>>,
    vcpus: Spanned<i64>,
    shares: Option<Spanned<i64>>,
    burst_ms: Spanned<f64>,
    sleep_ms: Spanned<f64>,
    demand: Option<Demand>,
    node: Option<Spanned<i64>>,
    cpus: Option<Vec<u32>>,
    latency_sensitivity: Option<Sensitivity>,
    reservation_mhz: Option<Spanned<i64>>,
}

/// The text of a scenario file, which errors call `name`. `policy` replaces the file's.
///
/// # Errors
/// With the line, if it is not of that shape or does not add up.
pub fn parse(name: &str, text: &str, policy: Option<Policy>, seed: u64) -> Result<Scenario, FileError> {
    let file = TypedFile { name, text };
    Reader { file }.scenario(&file.read()?, policy, seed)
}

struct Reader<'a> {
    file: TypedFile<'a>,
}

impl Reader<'_> {
    /// A time in so many nanoseconds for each unit, at most 1000 s; whole nanoseconds.
    fn time(&self, name: &str, typed: &Spanned<f64>, unit: f64) -> Result<Ns, FileError> {
        let most = 1e12 / unit;
        Ok((self.file.number(name, typed, [0.0, most])? * unit).round() as Ns)
    }

    fn scenario(&self, typed: &Typed, policy: Option<Policy>, seed: u64) -> Result<Scenario, FileError> {
        let policy = match (policy, &typed.policy) {
            (Some(policy), _) => policy,
            (None, Some(typed)) => typed.get_ref().parse().or_else(|error| self.file.fail(typed, error))?,
            (None, None) => Policy::Esx253,
        };
        let topology = self.topology(typed.topology.get_ref())?;
        let mut scenario = Scenario::new(topology, policy, Vec::new(), seed);
        let used = scenario
            .used()
            .or_else(|error| self.file.fail(&typed.topology, error))?;
        if let Some(costs) = &typed.costs {
            scenario.costs = self.costs(costs)?;
        }
        for vm in &typed.vm {
            self.vms(vm, used, &mut scenario.vms)?;
        }
        if let Some(console) = &typed.console {
            let load = self.load(&console.get_ref().burst_ms, &console.get_ref().sleep_ms, Demand::Time)?;
            scenario.console = Some(Console { load });
        }
        self.rest(typed, &mut scenario)?;
        match scenario.check() {
            Ok(_) => Ok(scenario),
            Err(error) => self.file.fail(&typed.topology, error),
        }
    }

    fn rest(&self, typed: &Typed, scenario: &mut Scenario) -> Result<(), FileError> {
        if let Some(seconds) = &typed.seconds {
            let seconds = self.file.number("seconds", seconds, [1e-3, 16_000.0])?;
            scenario.duration_ns = (seconds * 1e9).round() as Ns;
        }
        if let Some(quantum) = &typed.quantum_ms {
            let quantum = self.file.number("quantum_ms", quantum, [1e-3, 10_000.0])?;
            scenario.quantum_ns = (quantum * 1e6).round() as Ns;
        }
        if let Some(limit) = &typed.skew_limit_ms {
            scenario.skew_limit_ns = Some(self.time("skew_limit_ms", limit, 1e6)?);
        }
        if let Some(chance) = &typed.sibling_chance {
            let chance = self.file.number("sibling_chance", chance, [0.0, 1.0])?;
            scenario.sibling_chance = (chance * 65_536.0).round() as u32;
        }
        if let Some(mhz) = &typed.core_mhz {
            scenario.core_mhz = u64::from(self.file.whole("core_mhz", mhz, 1, 100_000)?);
        }
        if let Some(mhz) = &typed.host_reserved_mhz {
            scenario.host_mhz = u64::from(self.file.whole("host_reserved_mhz", mhz, 0, u32::MAX)?);
        }
        let length = scenario.duration_ns / 25;
        scenario.chart_ns = [scenario.duration_ns / 2, length.min(400_000_000)];
        Ok(())
    }

    fn topology(&self, typed: &TypedTopology) -> Result<Topology, FileError> {
        let count = |name, typed| self.file.whole(name, typed, 1, super::MOST_CPUS);
        let topology = Topology {
            nodes: count("nodes", &typed.nodes)?,
            sockets: count("sockets", &typed.sockets)?,
            cores_per_socket: count("cores_per_socket", &typed.cores_per_socket)?,
            threads_per_core: count("threads_per_core", &typed.threads_per_core)?,
        };
        topology
            .check()
            .or_else(|error| self.file.fail(&typed.sockets, error))?;
        let Some(said) = &typed.logical_cpus else {
            return Ok(topology);
        };
        match i64::from(topology.cpus()) == *said.get_ref() {
            true => Ok(topology),
            false => self.file.fail(
                said,
                format!(
                    "logical_cpus is {}: expected {}, which is {} sockets x {} cores x {} threads",
                    said.get_ref(),
                    topology.cpus(),
                    topology.sockets,
                    topology.cores_per_socket,
                    topology.threads_per_core
                ),
            ),
        }
    }

    fn costs(&self, typed: &Spanned<TypedCosts>) -> Result<Costs, FileError> {
        let (at, mut costs) = (typed, Costs::default());
        let typed = typed.get_ref();
        let names = ["sibling_us", "core_us", "socket_us", "node_us"];
        let moves = [&typed.sibling_us, &typed.core_us, &typed.socket_us, &typed.node_us];
        for (kind, (name, us)) in names.into_iter().zip(moves).enumerate() {
            if let Some(us) = us {
                costs.warm_up_ns[kind] = self.time(name, us, 1e3)?;
            }
        }
        if let Some(us) = &typed.displaced_us {
            costs.displaced_ns = self.time("displaced_us", us, 1e3)?;
        }
        costs.sibling_busy = typed.sibling_busy.unwrap_or(costs.sibling_busy);
        costs.remote_memory = typed.remote_memory.unwrap_or(costs.remote_memory);
        costs.node_rates = typed.node_rates.clone().unwrap_or_default();
        costs.idle = typed.idle.unwrap_or_default();
        check_costs(&costs).or_else(|error| self.file.fail(at, error))?;
        Ok(costs)
    }

    fn load(&self, burst: &Spanned<f64>, sleep: &Spanned<f64>, demand: Demand) -> Result<Load, FileError> {
        let load = Load {
            burst_ns: self.time("burst_ms", burst, 1e6)?,
            sleep_ns: self.time("sleep_ms", sleep, 1e6)?,
            demand,
        };
        match load.burst_ns {
            0 => self
                .file
                .fail(burst, "burst_ms is 0: expected a time above 0".to_owned()),
            _ => Ok(load),
        }
    }

    fn vms(&self, at: &Spanned<TypedVm>, used: Topology, all: &mut Vec<Vm>) -> Result<(), FileError> {
        let typed = at.get_ref();
        let most = MOST_WORLDS as u32;
        let vcpus = self.file.whole("vcpus", &typed.vcpus, 1, super::MOST_CPUS)?;
        let count = typed
            .count
            .as_ref()
            .map_or(Ok(1), |count| self.file.whole("count", count, 1, most))?;
        let load = self.load(&typed.burst_ms, &typed.sleep_ms, typed.demand.unwrap_or_default())?;
        let mut vm = Vm::new(&typed.name, vcpus, load);
        if let Some(shares) = &typed.shares {
            vm.shares = u64::from(self.file.whole("shares", shares, vcpus, 1_000_000_000)?);
        }
        if let Some(node) = &typed.node {
            vm.node = Some(self.file.whole("node", node, 0, used.nodes - 1)?);
        }
        if let Some(mhz) = &typed.reservation_mhz {
            vm.reservation_mhz = Some(u64::from(self.file.whole("reservation_mhz", mhz, 0, u32::MAX)?));
        }
        vm.cpus = typed.cpus.clone().unwrap_or_default();
        vm.is_latency_sensitive = matches!(typed.latency_sensitivity, Some(Sensitivity::High));
        check_vm(&vm, used).or_else(|error| self.file.fail(at, error))?;
        for number in 1..=count {
            let name = if count == 1 {
                vm.name.clone()
            } else {
                format!("{}-{number}", vm.name)
            };
            all.push(Vm { name, ..vm.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
