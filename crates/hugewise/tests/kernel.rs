//! Operations of the kernel by the program itself: its workers, its result, and nothing left after Ctrl-C.

mod common;

use common::{begun, done, hugewise, refused, valid};

const SMALL: [&str; 12] = [
    "measure",
    "kernel",
    "--ops",
    "segv,fw,anon-write",
    "--pages",
    "base",
    "--workers",
    "1",
    "--budget",
    "500ms",
    "--no-pool",
    "--seed=7",
];

#[test]
fn a_result_has_a_number_and_the_kernels_counts_for_each_operation() {
    let result = valid(&done(&[&SMALL[..], &["--json"]].concat()).out);
    assert_eq!(
        (result["seed"].as_u64(), &result["schema"]),
        (Some(7), &"hugewise/kernel/2".into())
    );
    let points = result["data"]["points"].as_array().expect("points");
    let names: Vec<&str> = points.iter().filter_map(|point| point["op"].as_str()).collect();
    assert_eq!(names, ["segv", "fw", "anon-write"]);
    for (point, count) in points.iter().zip(["signals", "children", "faults"]) {
        // Where a busy machine changes from visit to visit, half a second is enough for a bound only.
        let of = if point["ns"].is_null() { "bound" } else { "ns" };
        let ends = ["low", "median", "high"].map(|name| point[of][name].as_f64());
        let ends: Vec<f64> = ends.into_iter().flatten().collect();
        assert!(of == "bound" || ends.len() == 3, "{point}");
        assert!(
            ends.first().is_some_and(|low| *low > 0.0) && ends.is_sorted(),
            "{point}"
        );
        let per_operation = point["per_operation"][count].as_f64().expect("counted");
        assert!((1.0..1.05).contains(&per_operation), "{point}");
    }
    assert_eq!(points[2]["backing"]["asked"], "base");
}

#[test]
fn a_result_can_be_shown_again_in_every_form() {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("r.json");
    let json = json.to_str().expect("plain");
    done(&[&SMALL[..], &["--output", json]].concat());
    let again = |format| done(&["report", json, "--format", format]).out;
    assert_eq!(again("csv").lines().count(), 4);
    assert!(again("text").contains("segv") && again("markdown").contains("| segv"));
    assert!(again("html").starts_with("<!DOCTYPE html>"));
}

#[test]
fn wrong_words_are_answered_with_right_ones() {
    let why = refused(&["measure", "kernel", "--ops", "segv,nonsense"]);
    assert!(why.contains("nonsense") && why.contains("segv, pcd, nps, fw"), "{why}");
    assert!(refused(&["measure", "kernel", "--workers", "0"]).contains("--workers"));
    assert!(refused(&["kernel-operations-worker", "x"]).starts_with("hugewise: "));
}

/// Processes that descend from `pid` and live.
fn descendants(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mine: Vec<u32> = pids.filter(|&child| parent(child) == Some(pid)).collect();
    mine.iter()
        .flat_map(|&child| descendants(child).into_iter().chain([child]))
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    (words.next()? != "Z").then(|| words.next()?.parse().ok())?
}

#[test]
fn an_interrupt_ends_with_130_and_no_process_is_left() {
    let args = [
        "measure",
        "kernel",
        "--ops",
        "pcd",
        "--live",
        "30",
        "--budget",
        "60s",
        "--no-pool",
    ];
    for signal in ["-INT", "-TERM", "-KILL"] {
        let running = begun(&mut hugewise(&args));
        let mut seen = Vec::new();
        while seen.len() < 20 {
            seen = descendants(running.child.id());
        }
        let (code, _) = running.ended_by(signal);
        assert_eq!(code, (signal != "-KILL").then_some(130), "{signal}");
        let left = |seen: &[u32]| seen.iter().filter(|&&pid| parent(pid).is_some()).count();
        for _ in 0..500 {
            if left(&seen) > 0 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        assert_eq!(left(&seen), 0, "{signal}");
    }
}
