//! How long an hour of a host's memory takes on one core, and how that grows with machines and with time.
//!
//! `cargo bench -p hugewise-studies --bench host_memory` prints three tables, each the best of three runs: an hour of a host with 1 TB and 200
//! virtual machines under each policy, machines from 10 to 1,000, and time. Guests use a fifth more memory than there is.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use model::Bytes;
use studies::host_memory::{Host, Ksm, Outcome, Policy, Scenario, Vm, simulate};

const RUNS: usize = 3;
const HOUR: u64 = 3600;

/// So many machines on a host that has so much for each of them.
fn scenario(policy: Policy, machines: u64, each: Bytes, seconds: u64) -> Scenario {
    let host = Host {
        memory: Bytes(machines * each.0),
        used: Bytes(machines * each.0 / 50),
        large_pages: true,
        fragmented: 0,
    };
    let vm = Vm {
        group: "all".to_owned(),
        rewritten: 1 << 13,
        ..Vm::new("vm", Bytes(each.0 / 5 * 6).round_up_to(Bytes::mib(2)))
    };
    Scenario {
        policies: vec![policy],
        // As fast as it was measured: 5000 pages each 10 ms.
        ksm: Ksm {
            pages_to_scan: 5000,
            sleep_millisecs: 10,
            ..Ksm::default()
        },
        duration_ns: seconds * 1_000_000_000,
        ..Scenario::new(host, vec![vm; machines as usize], 42)
    }
}

/// The outcome, and the seconds that the best of some runs took.
fn timed(scenario: &Scenario) -> (Outcome, f64) {
    let runs = (0..RUNS).map(|_| {
        let begun = Instant::now();
        let mut result = simulate(scenario).expect("a scenario");
        (result.outcomes.pop().expect("a policy"), begun.elapsed().as_secs_f64())
    });
    runs.min_by(|one, other| one.1.total_cmp(&other.1)).expect("some runs")
}

fn main() {
    println!(
        "| policy | an hour of 1 TB, 200 machines | regions looked at or changed | broken | swapped out |\n|---|---|---|---|---|"
    );
    for policy in Policy::ALL {
        let (outcome, seconds) = timed(&scenario(policy, 200, Bytes(5 << 30), HOUR));
        let totals = &outcome.totals;
        println!(
            "| {} | {seconds:.2} s | {} | {} | {} |",
            policy.name(),
            totals.events,
            totals.broken + totals.broken_to_swap,
            totals.swapped_out
        );
    }
    println!("\n| machines of 1 GB, an hour | break-all | ksm |\n|---|---|---|");
    for machines in [10, 100, 1000] {
        let [one, other] =
            [Policy::BreakAll, Policy::Ksm].map(|policy| timed(&scenario(policy, machines, Bytes::gib(1), HOUR)).1);
        println!("| {machines} | {one:.3} s | {other:.3} s |");
    }
    println!("\n| hours, 100 machines of 1 GB | break-all | ksm |\n|---|---|---|");
    for hours in [1, 2, 4] {
        let [one, other] =
            [Policy::BreakAll, Policy::Ksm].map(|policy| timed(&scenario(policy, 100, Bytes::gib(1), hours * HOUR)).1);
        println!("| {hours} | {one:.3} s | {other:.3} s |");
    }
}
