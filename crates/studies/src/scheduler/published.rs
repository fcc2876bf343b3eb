//! IBM's tables of 2006 as scenarios: which host, where the virtual CPUs were seen, and how much time they used.

use model::placement::PublishedRun;

use super::{Costs, Demand, Load, Ns, Policy, Scenario, Topology, Vm};

/// Mean burst of a virtual CPU.
const BURST: Ns = 8_000_000;
const CONSOLE_BURST: Ns = 1_000_000;
/// Time simulated for each run.
const DURATION: Ns = 240_000_000_000;
/// CPUs with less time, in per cent, show the hypervisor's own work, and none of the guest.
const OWN_WORK: f64 = 0.5;

/// The server of the separating experiment: x3950, 2x2.
pub(super) const X3950: Topology = Topology {
    nodes: 2,
    sockets: 4,
    cores_per_socket: 2,
    threads_per_core: 2,
};

fn policy(run: &PublishedRun) -> Policy {
    match run.esx.as_str() {
        "2.5.2" => Policy::Esx252,
        _ => Policy::Esx253,
    }
}

/// As it was bought: the limit of logical CPUs comes later.
fn topology(run: &PublishedRun) -> Topology {
    let cores = run.shares.len() as u32 / run.threads_per_core;
    Topology {
        nodes: if run.numa { 2 } else { 1 },
        sockets: cores / 2,
        cores_per_socket: 2,
        threads_per_core: if run.hyperthreading { 2 } else { 1 },
    }
}

/// The guest's time by CPU: that of the half that it was on. CPU 0 runs the console.
fn guest_shares(run: &PublishedRun) -> Vec<f64> {
    let mut shares = run.shares.clone();
    if let Some(console) = shares.first_mut() {
        *console = 0.0;
    }
    let half = shares.len() / 2;
    let away = if run.node == 1 { 0..half } else { half..shares.len() };
    shares[away].fill(0.0);
    shares
}

/// The run with residency and time as published, at these costs.
pub(super) fn scenario(run: &PublishedRun, costs: &Costs, seed: u64) -> Scenario {
    let mut vm = guest(run.cpu_pct / 200.0);
    vm.node = Some(if run.numa { run.node } else { 0 });
    vm.seen = seen(&guest_shares(run), run.threads_per_core as usize);
    let console = run.shares.first().copied().unwrap_or(0.0) / 100.0;
    Scenario {
        costs: costs.clone(),
        console: Some(load(CONSOLE_BURST, console)),
        duration_ns: DURATION,
        ..Scenario::new(topology(run), policy(run), vec![vm], seed)
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
