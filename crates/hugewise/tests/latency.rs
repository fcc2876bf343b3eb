//! A measurement on the machine at hand: every form of it, what was not obtained, and being interrupted.

mod common;

use common::{begun, done, hugewise, skipped, told, valid};

const SMALL: [&str; 9] = [
    "measure",
    "latency",
    "--sizes",
    "16K,32K,64K",
    "--budget",
    "600ms",
    "--no-pool",
    "--seed",
    "7",
];

fn small(more: &[&'static str]) -> Vec<&'static str> {
    SMALL.iter().chain(more).copied().collect()
}

#[test]
fn every_point_has_a_spread_and_a_proof() {
    let result = valid(&done(&small(&["--pages", "base", "--json"])).out);
    assert_eq!(result["seed"], 7);
    assert_eq!(result["command"].as_array().map(Vec::len), Some(1 + 9 + 3));
    let points = result["data"]["points"].as_array().expect("points");
    assert_eq!(points.len(), 3);
    for point in points {
        // A machine that is busy may not let it converge; then there is a bound, and never both. It may even disturb every block.
        assert!(!(point["ns"].is_object() && point["bound"].is_object()), "{point}");
        if !point["ns"].is_object() && !point["bound"].is_object() {
            let dropped = ["switches", "migrations", "clock"].map(|name| point["dropped"][name].as_u64());
            assert!(dropped.into_iter().flatten().sum::<u64>() > 0, "{point}");
            continue;
        }
        let ends: Vec<f64> = match point["ns"].is_object() {
            true => ["low", "median", "high"]
                .map(|name| point["ns"][name].as_f64().expect("a number"))
                .to_vec(),
            false => ["low", "high"]
                .iter()
                .filter_map(|name| point["bound"][name].as_f64())
                .collect(),
        };
        assert!(ends[0] > 0.0 && ends.is_sorted(), "{point}");
        assert_eq!(point["backing"]["asked"], "base");
        assert_eq!(point["backing"]["got"]["base"], point["bytes"], "{point}");
    }
}

#[test]
fn every_form_is_what_it_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("r.json");
    let json = json.to_str().expect("plain");
    done(&[&small(&["--pages", "base", "--output"])[..], &[json]].concat());
    valid(&std::fs::read_to_string(json).expect("the result"));
    let again = |format: &'static str| {
        let output = hugewise(&["report", json, "--format", format]).output().expect("runs");
        assert!(
            output.status.success(),
            "{format}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };
    assert_eq!(
        again("csv")
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .count(),
        4
    );
    assert!(
        again("markdown")
            .windows(6)
            .any(|part| part == b"| ---:" || part == b"|-----"),
        "a table"
    );
    assert!(again("svg").starts_with(b"<svg"));
    assert!(again("html").starts_with(b"<!DOCTYPE html>"));
    assert_eq!(
        again("json"),
        std::fs::read(json).expect("the result"),
        "nothing is lost on the way"
    );
    assert!(
        String::from_utf8(again("text"))
            .expect("text")
            .contains("at least 100 % of the memory was of that kind")
    );
}

#[test]
fn a_kind_that_was_not_obtained_has_a_reason_and_no_number() {
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    let surplus = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages");
    let (Ok(free), Ok(surplus)) = (free, surplus) else {
        return skipped("this kernel has no pool of 2M pages");
    };
    if free.trim() != "0" || surplus.trim() != "0" {
        return skipped("the pool of 2M pages has pages to give");
    }
    let run = done(&[
        "measure",
        "latency",
        "--pages",
        "base,hugetlb-2M",
        "--sizes",
        "64K",
        "--budget",
        "300ms",
        "--no-pool",
        "--json",
    ]);
    let result = valid(&run.out);
    let points = result["data"]["points"].as_array().expect("points");
    let pool = points
        .iter()
        .find(|point| point["kind"] == "hugetlb-2M")
        .expect("the point is there");
    if pool["ns"].is_object() {
        return skipped("another run lent pages to the pool at the same time");
    }
    assert!(
        pool["not_measured"].as_str().is_some_and(|why| !why.is_empty()),
        "{pool}"
    );
    assert_ne!(pool["backing"]["got"]["hugetlb-2M"], pool["bytes"]);
}

#[test]
fn the_first_signal_ends_the_run_with_130() {
    let args = [
        "measure",
        "latency",
        "--pages",
        "base",
        "--from",
        "16K",
        "--to",
        "64M",
        "--budget",
        "120s",
        "--no-pool",
    ];
    for signal in ["-INT", "-TERM", "-HUP"] {
        let (code, rest) = begun(&mut hugewise(&args)).ended_by(signal);
        assert_eq!(code, Some(130), "{signal}: {rest}");
        assert!(rest.contains("interrupted; every setting is as it was"), "{rest}");
    }
}

#[test]
fn quiet_means_no_notes_and_an_old_result_survives_a_failure() {
    let directory = tempfile::tempdir().expect("a directory");
    let old = directory.path().join("old.json");
    std::fs::write(&old, "old").expect("written");
    let run = told(
        hugewise(&[
            "measure",
            "latency",
            "--pages",
            "base",
            "--sizes",
            "16K",
            "--cpu",
            "100000",
            "--no-pool",
            "--quiet",
            "--output",
        ])
        .arg(&old)
        .output()
        .expect("runs"),
    );
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(
        run.err.contains("--cpu") && !run.err.contains("measuring"),
        "{}",
        run.err
    );
    assert_eq!(std::fs::read_to_string(&old).expect("still there"), "old");
}
