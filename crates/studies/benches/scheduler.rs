//! How many events a second the scheduler's simulation takes on one core, and how that grows with machines and with time.
//!
//! `cargo bench -p hugewise-studies --bench scheduler` prints two tables: millions of events a second and nanoseconds for each event, the best of
//! three runs of at least five million events. Virtual machines have two virtual CPUs each and use a tenth of what there is for them, or one and a
//! half times of it.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use studies::scheduler::{Demand, Load, Policy, Scenario, Topology, Vm, simulate};

const RUNS: usize = 3;
const EVENTS: u64 = 5_000_000;
const BURST: u64 = 500_000;

/// A host with 64 logical CPUs, and one that ESX Server 2.5 can use.
fn host(policy: Policy) -> Topology {
    let is_old = policy.cpu_limit().is_some();
    Topology {
        nodes: 2,
        sockets: 2,
        cores_per_socket: if is_old { 4 } else { 16 },
        threads_per_core: 2,
    }
}

/// So many machines that together want this part of all CPUs.
fn scenario(policy: Policy, machines: usize, wanted: f64, nanoseconds: u64) -> Scenario {
    let topology = host(policy);
    let duty = (wanted * f64::from(topology.cpus()) / (2.0 * machines as f64)).min(1.0);
    let load = Load {
        burst_ns: BURST,
        sleep_ns: (BURST as f64 * (1.0 / duty - 1.0)) as u64,
        demand: Demand::Work,
    };
    let vms = (0..machines)
        .map(|number| Vm::new(&number.to_string(), 2, load))
        .collect();
    Scenario {
        duration_ns: nanoseconds,
        ..Scenario::new(topology, policy, vms, 42)
    }
}

/// Events, and nanoseconds for each of them: the best of some runs.
fn timed(scenario: &Scenario) -> (u64, f64) {
    let runs = (0..RUNS).map(|_| {
        let begun = Instant::now();
        let events = simulate(scenario).expect("a scenario").events;
        (events, begun.elapsed().as_secs_f64() * 1e9 / events as f64)
    });
    runs.min_by(|one, other| one.1.total_cmp(&other.1)).expect("some runs")
}

/// Long enough for so many events.
fn long_enough(policy: Policy, machines: usize, wanted: f64) -> u64 {
    let second = 1_000_000_000;
    let events = simulate(&scenario(policy, machines, wanted, second))
        .expect("a scenario")
        .events;
    (EVENTS * second / events.max(1)).min(10_000 * second)
}

fn main() {
    println!("| policy | load | 2 machines | 10 | 100 | 1000 |\n|---|---|---|---|---|---|");
    for policy in Policy::ALL {
        for wanted in [0.1, 1.5] {
            let cells: Vec<String> = [2, 10, 100, 1000]
                .into_iter()
                .map(|machines| {
                    let long = long_enough(policy, machines, wanted);
                    let (_, each) = timed(&scenario(policy, machines, wanted, long));
                    format!("{:.1} ({each:.0} ns)", 1e3 / each)
                })
                .collect();
            println!("| {} | {wanted} | {} |", policy.name(), cells.join(" | "));
        }
    }
    println!("\nMillions of events a second (nanoseconds for each event).\n");
    println!("| simulated time | events | ns for each |\n|---|---|---|");
    let long = long_enough(Policy::LinuxLike, 100, 0.1);
    for times in [1, 2, 4] {
        let (events, each) = timed(&scenario(Policy::LinuxLike, 100, 0.1, long * times));
        println!("| {:.0} s | {events} | {each:.1} |", (long * times) as f64 / 1e9);
    }
}
