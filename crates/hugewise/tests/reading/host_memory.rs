//! `simulate host`: results fit their schema, repeat by seed, have every form; captured hosts get answers, and mistakes are named.

use crate::common::{done, file, json, machine, refused, text};
use serde_json::Value;

const HOST: &str = "seconds = 900\npolicies = ['never-break', 'break-all', 'ksm']\n
[host]\nmemory = '4G'\nused = '256M'\n
[translation]\nmachine = 'xeon-8452y'\n
[[vm]]\nname = 'web'\ncount = 6\nmemory = '1G'\ncommon = 0.3\n";

#[test]
fn host_memory_fits_its_schema_repeats_by_seed_and_has_every_form() {
    let folder = tempfile::tempdir().expect("a directory");
    let host = file(folder.path(), "host.toml", HOST);
    let words = ["simulate", "host", &host, "--seed", "7", "--json"];
    let [one, again] = [(); 2].map(|()| json(&words));
    assert_eq!(one["data"], again["data"]);
    assert_eq!(one["data"]["outcomes"].as_array().map(Vec::len), Some(3));
    for (form, holds) in [
        ("csv", "saved_bytes"),
        ("markdown", "never-break"),
        ("svg", "<svg"),
        ("html", "Guest memory backed by huge pages"),
        ("text", "broken to share"),
    ] {
        let out = done(&["simulate", "host", &host, "--format", form]).out;
        assert!(out.contains(holds), "{form}: {out}");
    }
    let one = done(&["simulate", "host", &host, "--policy", "break-all"]).out;
    assert!(one.contains("web-6") && !one.contains("ksm"), "{one}");
}

#[test]
fn publications_stand_beside_what_is_simulated() {
    let rows = |name: &str| {
        let result = json(&["simulate", "host", "--preset", name, "--json"]);
        result["data"]["published"].as_array().expect("rows").clone()
    };
    let exact = &rows("minfree")[0];
    assert!(
        (exact["simulated"]["middle"].as_f64().expect("a number") - 1920.47).abs() < 0.005,
        "{exact}"
    );
    for row in rows("ksm-thp") {
        let simulated = row["simulated"]["middle"].as_f64().expect("a number");
        match row["published"]
            .as_array()
            .and_then(|values| values.first())
            .and_then(Value::as_f64)
        {
            // Hours are published as about 2, the rest as measured.
            Some(published) => assert!((simulated - published).abs() <= 0.07 * published, "{row}"),
            None => assert!(simulated > 0.0, "{row}"),
        }
    }
}

#[test]
fn the_study_of_esx_35_is_within_its_range_and_switches_are_obeyed() {
    let result = json(&["simulate", "host", "--preset", "esx35-large-pages", "--json"]);
    let rows = result["data"]["published"].as_array().expect("rows");
    let value = |what: &str| {
        let row = rows
            .iter()
            .find(|row| row["what"].as_str().is_some_and(|text| text.contains(what)));
        row.expect(what)["simulated"]["middle"].as_f64().expect("a number")
    };
    // The first is fitted to the middle of the published range, the other is predicted.
    for system in ["Linux and Windows", "Solaris"] {
        let gain = value(&format!("SPECjbb2005 with large pages, {system}"));
        assert!((8.0..=10.0).contains(&gain), "{system}: {gain}");
    }
    assert_eq!(value("as it comes: backed by huge pages"), 100.0);
    assert_eq!(value("Mem.AllocGuestLargePage = 0: SPECjbb2005"), 0.0);
    assert_eq!(
        value("monitor_control.disable_mmu_largepages = TRUE: backed by huge pages"),
        0.0
    );
}

#[test]
fn a_captured_host_gets_an_answer_to_each_what_if() {
    for name in ["pinned-well", "pool-1g"] {
        let tree = machine(name);
        let words = [
            "simulate",
            "host",
            "--capture",
            text(&tree),
            "--draws",
            "3",
            "--seed",
            "5",
            "--json",
        ];
        let result = json(&words);
        let advice = &result["data"]["advice"];
        let rows = advice["rows"].as_array().expect("rows");
        let changes: Vec<&str> = rows.iter().filter_map(|row| row["change"].as_str()).collect();
        assert_eq!(
            changes,
            ["as-is", "large-pages-off", "ksm-on", "more-vms", "giant-pages"],
            "{name}"
        );
        assert!(advice["unknown"].as_array().is_some_and(|drawn| drawn.len() == 6));
        for row in rows.iter().filter(|row| row["refused"].is_null()) {
            let [low, middle, high] = ["low", "middle", "high"].map(|end| row["free"][end].as_f64().expect("a number"));
            assert!(low <= middle && middle <= high, "{name}: {row}");
        }
        let of = |change: usize, what: &str| rows[change][what]["middle"].as_f64().expect("a number");
        assert_eq!(of(1, "large"), 0.0, "{name}: huge pages are off");
        assert_eq!(of(0, "saved"), 0.0, "{name}: KSM is off");
        assert_eq!(result["data"], json(&words)["data"]);
    }
}

#[test]
fn more_machines_than_memory_run_short() {
    let text = std::fs::read_to_string(machine("pinned-well")).expect("a fixture");
    let small = text
        .replace("MemTotal:       130191104 kB", "MemTotal:         1200000 kB")
        .replace("MemAvailable:    79424476 kB", "MemAvailable:     1100000 kB");
    assert_ne!(small, text);
    let folder = tempfile::tempdir().expect("a directory");
    let file = file(folder.path(), "small.tree", small);
    let result = json(&[
        "simulate",
        "host",
        "--capture",
        &file,
        "--more",
        "200",
        "--draws",
        "9",
        "--json",
    ]);
    let rows = result["data"]["advice"]["rows"].as_array().expect("rows");
    let [as_is, more] = [0, 3].map(|row| rows[row]["short"].as_f64().expect("a part"));
    assert!(as_is < more && more > 0.3, "{as_is} {more}");
    assert_eq!(rows[3]["count"].as_u64(), Some(6));
}

#[test]
fn merging_saves_nothing_where_memory_is_in_a_pool() {
    let tree = machine("pool-1g");
    let result = json(&["simulate", "host", "--capture", text(&tree), "--draws", "3", "--json"]);
    let merging = &result["data"]["advice"]["rows"][2];
    assert_eq!(
        (merging["saved"]["high"].as_f64(), merging["large"]["low"].as_f64()),
        (Some(0.0), Some(1.0))
    );
}

#[test]
fn what_does_not_add_up_is_refused_with_what_is_expected() {
    let folder = tempfile::tempdir().expect("a directory");
    let error = refused(&[
        "simulate",
        "host",
        &file(folder.path(), "host.toml", HOST.replace("count = 6", "shares = -1")),
    ]);
    assert!(
        error.contains("host.toml, line 13") && error.contains("expected"),
        "{error}"
    );
    let error = refused(&["simulate", "host", "--capture", text(&machine("postgres-good"))]);
    assert!(error.contains("no virtual machine"), "{error}");
    let error = refused(&[
        "simulate",
        "host",
        "--capture",
        text(&machine("pool-1g")),
        "--giant-pages",
        "absent",
    ]);
    assert!(error.contains("no virtual machine is called absent"), "{error}");
    let error = refused(&["simulate", "host"]);
    assert!(error.contains("FILE.toml"), "{error}");
}

#[test]
fn what_would_take_much_memory_or_minutes_is_refused_before_it_starts() {
    let folder = tempfile::tempdir().expect("a directory");
    let host = |seconds: u32, count: u32, memory: &str| {
        format!(
            "seconds = {seconds}\nstep_ms = 1000\n[host]\nmemory = \"64T\"\n[[vm]]\nname = \"vm\"\ncount = {count}\nmemory = \"{memory}\"\n"
        )
    };
    for (text, part) in [
        (host(60, 64, "1T"), "of memory: expected at most 512M"),
        (host(604_800, 5000, "1G"), "s: expected at most 60"),
    ] {
        let error = refused(&["simulate", "host", &file(folder.path(), "host.toml", &text)]);
        assert!(error.contains("host.toml") && error.contains(part), "{error}");
    }
}
