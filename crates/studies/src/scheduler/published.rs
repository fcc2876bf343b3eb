//! IBM's tables of 2006 as scenarios: which host, where the virtual CPUs were seen, and how much time they used.

use serde::Deserialize;

use super::{Console, Costs, Demand, Load, Ns, Policy, Scenario, Topology, Vm};

/// Mean burst of a virtual CPU.
const BURST: Ns = 8_000_000;
const CONSOLE_BURST: Ns = 1_000_000;
/// Time simulated for each run.
const DURATION: Ns = 240_000_000_000;
/// CPUs with less time, in per cent, show the hypervisor's own work, and none of the guest.
const OWN_WORK: f64 = 0.5;

#[derive(Debug, Deserialize)]
pub(super) struct Tables {
    pub(super) source: String,
    pub(super) runs: Vec<Run>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Run {
    pub(super) tables: Vec<u32>,
    pub(super) server: String,
    pub(super) run: String,
    pub(super) esx: String,
    pub(super) hyperthreading: bool,
    numa: bool,
    threads_per_core: u32,
    pub(super) throughput: f64,
    /// Per cent of time by logical CPU.
    pub(super) shares: Vec<f64>,
}

/// The tables.
///
/// # Errors
/// None but a mistake in the data that `model` carries.
pub(super) fn ibm_2006() -> Result<Tables, String> {
    serde_json::from_str(model::placement::IBM_2006).map_err(|error| error.to_string())
}

/// The server of the separating experiment: x3950, 2x2.
pub(super) const X3950: Topology = Topology {
    nodes: 2,
    sockets: 4,
    cores_per_socket: 2,
    threads_per_core: 2,
};

impl Run {
    fn policy(&self) -> Policy {
        match self.esx.as_str() {
            "2.5.2" => Policy::Esx252,
            _ => Policy::Esx253,
        }
    }

    /// As it was bought: the limit of logical CPUs comes later.
    fn topology(&self) -> Topology {
        let cores = self.shares.len() as u32 / self.threads_per_core;
        Topology {
            nodes: if self.numa { 2 } else { 1 },
            sockets: cores / 2,
            cores_per_socket: 2,
            threads_per_core: if self.hyperthreading { 2 } else { 1 },
        }
    }

    /// The half of the CPUs that the guest was on. CPU 0 runs the console.
    fn home(&self) -> (u32, Vec<f64>) {
        let mut shares = self.shares.clone();
        if let Some(console) = shares.first_mut() {
            *console = 0.0;
        }
        let half = shares.len() / 2;
        let sum = |part: &[f64]| part.iter().sum::<f64>();
        let is_second = sum(&shares[half..]) > sum(&shares[..half]);
        let away = if is_second { 0..half } else { half..shares.len() };
        shares[away].fill(0.0);
        (u32::from(is_second), shares)
    }

    /// The node that the guest was on; 0 on a host with one.
    pub(super) fn node(&self) -> u32 {
        self.home().0
    }

    /// Per cent of a CPU that the guest used.
    pub(super) fn cpu_pct(&self) -> f64 {
        self.home().1.iter().sum()
    }

    /// The part of the guest's time on the sibling that a core was used less on.
    pub(super) fn sibling_part(&self) -> f64 {
        let shares = self.home().1;
        let lesser = |core: &[f64]| core.iter().copied().fold(f64::INFINITY, f64::min);
        match self.threads_per_core {
            2 => shares.chunks(2).map(lesser).sum::<f64>() / self.cpu_pct(),
            _ => 0.0,
        }
    }

    /// The run with residency and time as published, at these costs.
    pub(super) fn scenario(&self, costs: &Costs, seed: u64) -> Scenario {
        let mut vm = guest(self.cpu_pct() / 200.0);
        vm.node = Some(if self.numa { self.node() } else { 0 });
        vm.seen = seen(&self.home().1, self.threads_per_core as usize);
        let console = self.shares.first().copied().unwrap_or(0.0) / 100.0;
        let console = load(CONSOLE_BURST, console);
        Scenario {
            costs: costs.clone(),
            console: Some(Console { load: console }),
            duration_ns: DURATION,
            ..Scenario::new(self.topology(), self.policy(), vec![vm], seed)
        }
    }
}

/// A run that the policy alone decides.
pub(super) fn by_policy(policy: Policy, node: u32, duty: f64, sibling_part: f64, costs: &Costs, seed: u64) -> Scenario {
    let mut vm = guest(duty);
    vm.node = Some(node);
    Scenario {
        costs: costs.clone(),
        sibling_chance: (sibling_part * 65_536.0).round() as u32,
        duration_ns: DURATION,
        ..Scenario::new(X3950, policy, vec![vm], seed)
    }
}

fn guest(duty: f64) -> Vm {
    Vm::new("SPECjbb2005", 2, load(BURST, duty))
}

/// Time, not work, is what is published.
fn load(burst_ns: Ns, duty: f64) -> Load {
    let duty = duty.clamp(0.001, 1.0);
    Load {
        burst_ns,
        sleep_ns: (burst_ns as f64 * (1.0 / duty - 1.0)).round() as Ns,
        demand: Demand::Time,
    }
}

/// Weights for two virtual CPUs: each has one of the two busiest cores, and half of all time.
fn seen(shares: &[f64], threads: usize) -> Vec<Vec<(u32, u64)>> {
    let shares: Vec<f64> = shares
        .iter()
        .map(|share| if *share < OWN_WORK { 0.0 } else { *share })
        .collect();
    let of_core = |core: usize| shares[core * threads..(core + 1) * threads].iter().sum::<f64>();
    let mut cores: Vec<usize> = (0..shares.len() / threads).collect();
    cores.sort_by(|one, other| of_core(*other).total_cmp(&of_core(*one)));
    let half = shares.iter().sum::<f64>() / 2.0;
    let missing = |core: usize| (half - of_core(core)).max(0.0);
    let all = (missing(cores[0]) + missing(cores[1])).max(f64::MIN_POSITIVE);
    let part = |vcpu: usize| missing(cores[vcpu]) / all;
    let weights = |vcpu: usize| {
        let weight = |cpu: usize| match cpu / threads {
            core if core == cores[vcpu] => shares[cpu],
            core if core == cores[1 - vcpu] => 0.0,
            _ => shares[cpu] * part(vcpu),
        };
        let each = (0..shares.len()).map(|cpu| (cpu as u32, (weight(cpu) * 1e4).round() as u64));
        each.filter(|(_, weight)| *weight > 0).collect()
    };
    vec![weights(0), weights(1)]
}
