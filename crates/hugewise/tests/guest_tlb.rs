//! TLB discovery inside a guest of this machine: evidence that goes together, every form, and what does not combine.

mod common;

use common::{done, refused, skipped, valid};

const SMALL: [&str; 7] = [
    "measure",
    "guest",
    "--tlb",
    "--quick",
    "--pages=base,thp",
    "--no-pool",
    "--seed=7",
];

#[test]
fn leaves_and_timing_are_named_apart_and_every_form_shows_them() {
    if std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_err()
    {
        return skipped("/dev/kvm cannot be used");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("r.json");
    let told = done(&[&SMALL[..], &["--json"]].concat()).out;
    std::fs::write(&json, &told).expect("writes");
    let result = valid(&told);
    assert_eq!(result["schema"], "hugewise/guest-tlb/2");
    let behind = result["data"]["behind"].as_array().expect("kinds");
    assert_eq!(behind.len(), 2);
    for behind in behind {
        let measured = behind["not_measured"].is_null();
        assert!(!measured || behind["walks"]["lines"] == 4096, "{behind}");
        assert!(!measured || behind["kvm"]["visited"] == 128, "{behind}");
        // No base page makes KVM map large; what timing shows of it is this machine's business.
        assert!(
            !measured || behind["kind"] != "base" || behind["leaf"] == "4K",
            "{behind}"
        );
        assert!(
            behind["consistent"].is_boolean() || behind["consistent"].is_null(),
            "{behind}"
        );
    }
    let path = json.to_str().expect("text");
    for (format, part) in [
        ("text", "timing says"),
        ("markdown", "| base"),
        ("html", "</table>"),
        ("csv", "\nbase,"),
    ] {
        let shown = done(&["report", path, "--format", format]).out;
        assert!(shown.contains(part), "{format}: {shown}");
    }
}

#[test]
fn working_sets_and_discovery_do_not_go_together() {
    let why = refused_by_clap(&["measure", "guest", "--tlb", "--sizes", "1M"]);
    assert!(why.contains("--tlb") && why.contains("--sizes"), "{why}");
    let why = refused_by_clap(&["measure", "guest", "--quick"]);
    assert!(why.contains("--tlb"), "{why}");
    let captured = format!("{}/../../fixtures/machines/denied.tree", env!("CARGO_MANIFEST_DIR"));
    assert!(refused(&["--root", &captured, "measure", "guest", "--tlb"]).contains("the machine itself"));
}

fn refused_by_clap(args: &[&str]) -> String {
    let run = common::run(args);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
    run.err
}
