//! Scenario files: what is left out has a usual value, and mistakes have a line.

use super::parse;
use crate::scheduler::{Demand, Idle, Policy};

const WHOLE: &str = "policy = 'linux-like'
seconds = 2
quantum_ms = 10

[topology]
nodes = 2
sockets = 4
cores_per_socket = 2
threads_per_core = 2
logical_cpus = 16

[costs]
sibling_us = 10
idle = 'spins'

[console]
burst_ms = 1
sleep_ms = 19

[[vm]]
name = 'web'
count = 3
vcpus = 2
burst_ms = 0.5
sleep_ms = 5
demand = 'time'

[[vm]]
name = 'db'
vcpus = 4
shares = 8000
burst_ms = 20
sleep_ms = 0
node = 1
latency_sensitivity = 'high'
reservation_mhz = 12000
";

fn error(from: &str, to: &str) -> String {
    assert!(WHOLE.contains(from), "{from}");
    parse("mine.toml", &WHOLE.replace(from, to), None, 1)
        .expect_err(to)
        .to_string()
}

#[test]
fn a_file_says_it_all() {
    let scenario = parse("mine.toml", WHOLE, None, 9).expect("a scenario");
    assert_eq!((scenario.policy, scenario.seed), (Policy::LinuxLike, 9));
    assert_eq!((scenario.duration_ns, scenario.quantum_ns), (2_000_000_000, 10_000_000));
    assert_eq!(
        (scenario.costs.warm_up_ns[0], scenario.costs.idle),
        (10_000, Idle::Spins)
    );
    let names: Vec<&str> = scenario.vms.iter().map(|vm| vm.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-2", "web-3", "db"]);
    assert_eq!(
        (scenario.vms[0].load.demand, scenario.vms[0].shares),
        (Demand::Time, 2000)
    );
    assert!(scenario.vms[3].is_latency_sensitive && scenario.vms[3].shares == 8000 && scenario.console.is_some());
    let other = parse("mine.toml", WHOLE, Some(Policy::Pinned), 9).expect("a scenario");
    assert_eq!(other.policy, Policy::Pinned);
}

#[test]
fn mistakes_have_a_file_a_line_and_what_is_expected() {
    for (from, to, parts) in [
        ("logical_cpus = 16", "logical_cpus = 24", ["line 10", "expected 16"]),
        ("sockets = 4", "sockets = 3", ["line 7", "same number of sockets"]),
        ("nodes = 2", "nodes = 0", ["line 6", "from 1 to"]),
        (
            "shares = 8000",
            "shares = -5",
            ["line 31", "shares is -5: expected a whole number from 4"],
        ),
        ("'linux-like'", "'cfs'", ["line 1", "write esx-2.5.2"]),
        ("seconds = 2", "seconds = -2", ["line 2", "expected 0.001"]),
        ("node = 1", "node = 2", ["line 34", "from 0 to 1"]),
        ("burst_ms = 20", "burst_ms = 0", ["line 32", "above 0"]),
        (
            "sibling_us = 10",
            "sibling_busy = 1.5",
            ["line 12", "expected 0 to below 1"],
        ),
        ("vcpus = 4", "vcpu = 4", ["line 30", "expected"]),
        (
            "name = 'db'",
            "name = 'db'\ncpus = [1]",
            ["line 28", "expected 4, one for each"],
        ),
    ] {
        let error = error(from, to);
        assert!(error.starts_with("mine.toml"), "{error}");
        for part in parts {
            assert!(error.contains(part), "{to}: {error}");
        }
    }
}

#[test]
fn a_policy_that_uses_fewer_cpus_says_so() {
    let large = WHOLE
        .replace("sockets = 4", "sockets = 16")
        .replace("logical_cpus = 16", "logical_cpus = 64");
    let error = parse("mine.toml", &large, Some(Policy::Esx253), 1)
        .expect_err("32 cores")
        .to_string();
    assert!(
        error.contains("line 5") && error.contains("at most 16 logical CPUs"),
        "{error}"
    );
    assert!(parse("mine.toml", &large, None, 1).is_ok());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", cut in 0_usize..400) {
        let _ = parse("any", &text, None, 1);
        let _ = parse("cut", WHOLE.get(..cut.min(WHOLE.len())).unwrap_or_default(), None, 1);
    }
}
