//! The place of a service: a plan's drop-in on this machine, applied, verified and undone.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{json, machine, text};
use crate::machine::Bench;

/// What is planned for a service on a machine with systemd.
fn planned(service: &str) -> Value {
    let machine = machine("two-node-smt");
    let goal = format!("placement:{service},cpus=0-1,memory=0");
    json(&["--root", text(&machine), "plan", "--for", &goal, "--json"])["data"]["changes"].take()
}

#[test]
fn the_place_of_a_service_is_applied_verified_and_undone() {
    let Some(bench) = Bench::set_up() else { return };
    let before = bench.picture();
    let service = format!("hugewise-test-{}", std::process::id());
    let mut changes = planned(&service);
    // A capture does not show that a file is absent. Here it is.
    changes[0]["before"] = Value::Null;
    let file = changes[0]["target"]["path"].as_str().expect("a path").to_owned();
    assert_eq!(
        file,
        format!("/etc/systemd/system/{service}.service.d/60-hugewise.conf")
    );
    let plan = bench.plan(changes);
    let run = bench.apply(&plan, &[]).expect("no pool is in it");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let written = fs::read_to_string(&file).expect("written");
    assert_eq!(written, "[Service]\nCPUAffinity=0-1\nNUMAPolicy=bind\nNUMAMask=0\n");
    assert_eq!(bench.run(&["verify", &plan]).code, Some(0));
    fs::write(&file, "[Service]\nCPUAffinity=3\n").expect("changed");
    assert_eq!(
        bench.run(&["verify", &plan]).code,
        Some(1),
        "another place is not as planned"
    );
    fs::write(&file, written).expect("as planned");
    for (place, came) in bench.undo() {
        assert_eq!(came, "restored", "{place}");
    }
    assert!(!Path::new(&file).exists());
    assert_eq!(bench.changed_since(&before), [""; 0]);
}
