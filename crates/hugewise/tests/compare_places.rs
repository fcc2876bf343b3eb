//! Where the arms of a comparison ran: at the places that `--place` names, and as the result says.

mod common;

use common::{done, valid};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;

/// Works for some tenths of a second, mostly in user mode.
const WORKS: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"];

fn two_cpus() -> Option<[u32; 2]> {
    let all = sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| all.is_set(cpu))
        .map(|cpu| cpu as u32);
    Some([cpus.next()?, cpus.next()?])
}

fn compared(places: &str) -> Value {
    let words = [
        "compare",
        "--arms",
        "system",
        "--place",
        places,
        "--runs",
        "3",
        "--warm-up",
        "0",
        "--json",
        "--",
    ];
    valid(&done(&[&words[..], &WORKS].concat()).out)
}

#[test]
fn every_arm_runs_at_each_place_and_the_result_proves_it() {
    let Some([first, second]) = two_cpus() else {
        return testing::skipped("one CPU");
    };
    let result = compared(&format!("pin={first};pin={second}"));
    let arms = result["data"]["arms"].as_array().expect("arms");
    for (arm, cpu) in arms.iter().zip([first, second]) {
        assert_eq!(arm["name"], format!("system@pin={cpu}"));
        assert_eq!(arm["place"], format!("pin={cpu}"));
        for run in arm["runs"].as_array().expect("runs") {
            let Some(ran) = run.get("ran") else {
                return testing::skipped("no clocks of tasks");
            };
            let cpus: Vec<&String> = ran["cpu_s"].as_object().expect("seconds").keys().collect();
            assert_eq!(cpus, [&cpu.to_string()], "{ran}");
            let used = ran["cpu_s"][&cpu.to_string()].as_f64().expect("seconds");
            let usage = run["metrics"]["cpu"].as_f64().expect("seconds");
            // Starting the program is in the one and not in the other; steal the other way round.
            assert!(used > 0.5 * usage && used < 1.5 * usage + 0.01, "{used} s of {usage} s");
            // A program of one thread is read until it has ended.
            assert!(ran["queued_s"].is_number() || ran["queued_s"].is_null(), "{ran}");
        }
    }
    // They had to run on different CPUs: that is no reason to warn.
    let warnings = result["warnings"].as_array().expect("warnings");
    assert!(
        warnings.iter().all(|warning| warning["code"] != "different-places"),
        "{warnings:?}"
    );
}

#[test]
fn the_table_of_places_has_a_column_for_each_cpu() {
    let words = [
        "compare",
        "--arms",
        "system",
        "--place",
        "pack;spread",
        "--runs",
        "1",
        "--warm-up",
        "0",
        "--",
    ];
    let out = done(&[&words[..], &WORKS].concat()).out;
    if !out.contains("Where the arms ran") {
        return testing::skipped("no clocks of tasks");
    }
    assert!(
        out.contains("CPU ") && out.contains("waited %") && out.contains("system@spread"),
        "{out}"
    );
}
