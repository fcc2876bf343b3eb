//! Inside a guest of this machine: every form, what was not obtained, and the obstacles that scripts can distinguish.

mod common;

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::{Run, begun, done, hugewise, refused, skipped, told, valid};
use serde_json::Value;

const SMALL: [&str; 12] = [
    "measure",
    "guest",
    "--guest-pages",
    "4K,2M",
    "--pages",
    "base,thp",
    "--sizes",
    "1M,16M",
    "--budget",
    "500ms",
    "--no-pool",
    "--seed=7",
];

/// Is there a KVM that this user may use?
fn has_kvm() -> bool {
    std::fs::File::options().read(true).write(true).open("/dev/kvm").is_ok()
}

fn estimate(value: &Value) -> bool {
    let ends = ["low", "median", "high"].map(|name| value[name].as_f64().unwrap_or(f64::NAN));
    ends[0] > 0.0 && ends[0] <= ends[1] && ends[1] <= ends[2]
}

#[test]
fn the_matrix_has_native_and_every_guest_page_on_every_kind() {
    if !has_kvm() {
        return skipped("/dev/kvm cannot be used");
    }
    let result = valid(&done(&[&SMALL[..], &["--json"]].concat()).out);
    assert_eq!(
        (&result["schema"], &result["seed"]),
        (&"hugewise/guest/2".into(), &7.into())
    );
    let data = &result["data"];
    let points = data["points"].as_array().expect("points");
    assert_eq!(points.len(), 2 * 3 * 2, "kinds, native and two guest pages, sizes");
    let emulated = data["sanity"]["emulated"].as_bool().expect("a sanity check");
    let mut ratios = 0;
    for point in points {
        let native = point["guest_page"].is_null();
        // On a busy machine the time of some points is enough for a bound only.
        let is_answered = estimate(&point["ns"]) || point["bound"].is_object();
        assert!(
            is_answered || (emulated && !native) || point["not_measured"].is_string(),
            "{point}"
        );
        let same = |other: &&Value| ["kind", "bytes"].iter().all(|name| other[name] == point[name]);
        // The ratio is of the turns beside this guest. The native point joins those of all guests, and may have a bound where each
        // alone came to rest.
        let is_timed = |other: &Value| estimate(&other["ns"]) || other["bound"].is_object();
        let has_native = points
            .iter()
            .filter(same)
            .any(|other| other["guest_page"].is_null() && is_timed(other));
        let may_have_ratio = !native && has_native && point["ns"].is_object();
        let has_ratio = estimate(&point["ratio"]);
        assert!(point["ratio"].is_null() || (has_ratio && may_have_ratio), "{point}");
        ratios += u32::from(has_ratio);
    }
    if ratios == 0 {
        skipped("the ratios to native: at no point did both sides come to rest");
    }
    let touches = data["fault_ns"].as_array().expect("first touches");
    assert!(!touches.is_empty());
    for touch in touches {
        assert!(
            touch["touched"].as_u64() > Some(0) && estimate(&touch["touch_ns"]),
            "{touch}"
        );
    }
    assert!(data["exits"].as_array().is_some_and(|exits| exits.len() >= 2));
    let shadow = data["mmu"] == "shadow-pvm";
    for operation in data["churn"].as_array().expect("operations") {
        assert_eq!(operation["emulated"], shadow, "{operation}");
    }
}

#[test]
fn every_form_shows_the_matrix() {
    if !has_kvm() {
        return skipped("/dev/kvm cannot be used");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("r.json");
    let json = json.to_str().expect("plain");
    done(&[&SMALL[..], &["--output", json]].concat());
    let again = |format| done(&["report", json, "--format", format]).out;
    let text = again("text");
    for part in [
        "guest page, at 16M",
        "native",
        "First touch",
        "exit-to-user",
        "Changes to guest page tables",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(again("csv").lines().count(), 13);
    assert!(again("markdown").contains("| native"));
    assert!(again("svg").contains("guest page, at 16M"));
    let html = again("html");
    assert!(html.contains("class=\"n h") && html.contains("prefers-color-scheme:dark"));
    let colored = hugewise(&["report", json, "--format", "text"])
        .env("CLICOLOR_FORCE", "1")
        .output()
        .expect("runs");
    assert!(String::from_utf8_lossy(&colored.stdout).contains("48;2;"), "a heat map");
}

#[test]
fn wrong_words_are_answered_with_right_ones() {
    for (more, parts) in [
        (&["--guest-pages", "8K"][..], &["8K", "4K, 2M or 1G"][..]),
        (&["--access", "both"], &["both", "read"]),
        (&["--from", "2M", "--to", "1M"], &["--from 2M", "--to 1M"]),
    ] {
        let why = refused(&[&["measure", "guest"], more].concat());
        assert!(parts.iter().all(|part| why.contains(part)), "{more:?}: {why}");
    }
    if !has_kvm() {
        return skipped("/dev/kvm cannot be used");
    }
    let sizes = "1M,2M,3M,4M,5M,6M,7M,8M";
    let why = refused(&["measure", "guest", "--sizes", sizes, "--no-pool", "--quiet"]);
    assert!(
        why.starts_with("hugewise: bad-input: ") && why.contains("7 is the most"),
        "{why}"
    );
}

/// Says which obstacle is met; notes of the run before it do not count.
fn obstacle(run: &Run) -> &str {
    let last = run.err.lines().last().unwrap_or_default();
    last.strip_prefix("hugewise: ")
        .and_then(|text| text.split(": ").next())
        .unwrap_or(last)
}

#[test]
fn no_device_and_no_permission_are_told_apart() {
    let args = ["measure", "guest", "--sizes", "1M", "--pages", "base", "--no-pool"];
    let program = env!("CARGO_BIN_EXE_hugewise");
    let hidden = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .args(["mount -t tmpfs none /dev && exec \"$0\" \"$@\"", program])
        .args(args)
        .stdin(Stdio::null())
        .output();
    match hidden.map(told) {
        Ok(run) if run.err.contains("hugewise: ") => {
            assert_eq!((run.code, obstacle(&run)), (Some(2), "no-kvm"), "{}", run.err);
        }
        _ => skipped("no namespace in which /dev/kvm can be hidden"),
    }
    let nobody = hugewise(&args).uid(65534).gid(65534).output();
    match nobody.map(told) {
        Ok(run) if has_kvm() && run.code == Some(2) => assert_eq!(obstacle(&run), "kvm-denied", "{}", run.err),
        _ => skipped("this user cannot become another one, or every user may use /dev/kvm"),
    }
}

#[test]
fn nothing_obtained_is_an_obstacle_with_a_reason() {
    let free = |file: &str| {
        let value = std::fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-1048576kB/{file}"));
        value.ok().and_then(|value| value.trim().parse::<u64>().ok())
    };
    if !has_kvm() || free("free_hugepages") != Some(0) || free("nr_overcommit_hugepages") != Some(0) {
        return skipped("/dev/kvm cannot be used, or the pool of 1G pages is not empty");
    }
    let run = common::run(&[
        "measure",
        "guest",
        "--pages",
        "hugetlb-1G",
        "--sizes",
        "1M",
        "--no-pool",
    ]);
    if run.code == Some(0) {
        return skipped("another run lent pages to the pool at the same time");
    }
    assert_eq!((run.code, obstacle(&run)), (Some(2), "not-obtained"), "{}", run.err);
    assert!(run.err.contains("too few free pages"), "{}", run.err);
}

#[test]
fn an_interrupt_ends_with_130_and_leaves_nothing() {
    if !has_kvm() {
        return skipped("/dev/kvm cannot be used");
    }
    let args = [
        "measure",
        "guest",
        "--sizes",
        "16M",
        "--pages",
        "base",
        "--budget",
        "60s",
        "--no-pool",
    ];
    let (code, rest) = begun(&mut hugewise(&args)).ended_by("-INT");
    assert_eq!(code, Some(130), "{rest}");
}
