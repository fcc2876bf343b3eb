//! Simulations: their result fits its schema, repeats by seed, and can be shown again in every form.

use crate::common::{done, file, json, machine, refused, text, valid};
use serde_json::Value;

const FEW: [&str; 12] = [
    "simulate",
    "translation",
    "--machine",
    "8452y",
    "--working-sets",
    "256M",
    "--accesses",
    "50000",
    "--seed",
    "7",
    "--pattern",
    "chase",
];

fn result(more: &[&str]) -> Value {
    let words: Vec<&str> = FEW.iter().chain(more).chain(&["--json"]).copied().collect();
    json(&words)
}

#[test]
fn a_result_fits_its_schema_and_repeats_by_seed() {
    let (one, again) = (result(&[]), result(&[]));
    assert_eq!(
        (one["schema"].as_str(), one["seed"].as_u64()),
        (Some("hugewise/simulation/2"), Some(7))
    );
    assert_eq!(one["data"], again["data"]);
    assert_eq!(
        one["data"]["cases"].as_array().map(Vec::len),
        Some(6),
        "three page sizes, natively and nested"
    );
}

#[test]
fn guest_and_host_pages_are_chosen_apart_and_the_smaller_one_counts() {
    let result = result(&[
        "--mode",
        "nested",
        "--guest-pages",
        "4K,2M",
        "--host-pages",
        "4K,2M",
        "--baseline",
        "nested:2M/2M",
    ]);
    let cases = result["data"]["cases"].as_array().expect("cases");
    let entries: Vec<u64> = cases.iter().filter_map(|case| case["entry"].as_u64()).collect();
    assert_eq!(entries, [4096, 4096, 4096, 2 << 20]);
    let times: Vec<f64> = cases
        .iter()
        .filter_map(|case| case["relative"]["middle"].as_f64())
        .collect();
    assert!(
        times[3] == 1.0 && times[..3].iter().all(|&time| time > 1.0),
        "{times:?}"
    );
    assert!(
        times[1] < times[0] && times[2] < times[0],
        "one huge page already shortens walks: {times:?}"
    );
}

#[test]
fn a_share_of_huge_pages_is_simulated_between_both_page_sizes_and_named_in_every_form() {
    let words = ["--mode", "native", "--pages", "4K,4K+30%,2M", "--baseline", "native:4K"];
    let json = result(&words);
    let cases = json["data"]["cases"].as_array().expect("cases");
    let time = |case: &Value| case["relative"]["middle"].as_f64().expect("a time");
    assert!(
        time(&cases[0]) > time(&cases[1]) && time(&cases[1]) > time(&cases[2]),
        "{cases:?}"
    );
    let shares = cases.iter().map(|case| case["setting"]["share"].as_u64());
    assert_eq!(shares.collect::<Vec<_>>(), [None, Some(30), None]);
    let shown = |more: &[&str]| done(&[&FEW[..], &words, more].concat()).out;
    let text = shown(&[]);
    assert!(
        text.contains("native:4K+30%") && text.contains("30 % of the aligned 2 MiB ranges"),
        "{text}"
    );
    let csv = shown(&["--format", "csv"]);
    assert!(
        csv.lines()
            .next()
            .is_some_and(|head| head.ends_with(",huge_share_percent")),
        "{csv}"
    );
    assert!(csv.lines().nth(2).is_some_and(|line| line.ends_with(",30")), "{csv}");
    let refusal = refused(&["simulate", "translation", "--pages", "4K+100%"]);
    assert!(
        refusal.contains("from 1% to 99%") && refusal.contains("--pages"),
        "{refusal}"
    );
}

#[test]
fn a_result_is_shown_again_in_other_forms() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("result.json");
    let name = file.to_str().expect("text");
    let words: Vec<&str> = FEW.iter().chain(&["--output", name]).copied().collect();
    done(&words);
    for (form, holds) in [
        ("csv", "walk_rate"),
        ("markdown", "native:4K"),
        ("svg", "<svg"),
        ("html", "native:4K"),
        ("text", "native:4K"),
    ] {
        assert!(done(&["report", name, "--format", form]).out.contains(holds), "{form}");
    }
}

#[test]
fn pages_without_a_known_tlb_are_named_as_their_rows_mean_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("mine.toml");
    let text = "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4K']\nentries = 64\nways = 4\n\
                [[cache]]\nlevel = 1\nkind = 'data'\nkib = 32\nways = 8\n";
    std::fs::write(&file, text).expect("written");
    let words = [
        "simulate",
        "translation",
        "--working-sets",
        "64M",
        "--accesses",
        "20000",
        "--mode",
        "native",
        "--json",
    ];
    let warned = |more: &[&str]| {
        let result = json(&[&words[..], more].concat());
        let warnings = result["warnings"].as_array().expect("warnings").clone();
        warnings
            .iter()
            .find(|warning| warning["code"] == "no-tlb")
            .map(|warning| warning["text"].to_string())
    };
    let mine = file.to_str().expect("text");
    let text = warned(&["--machine", mine, "--pages", "4K,2M"]).expect("a warning");
    assert!(text.contains("pages of 2M are known"), "{text}");
    assert_eq!(warned(&["--machine", mine, "--pages", "4K"]), None);
    assert_eq!(warned(&["--machine", "8452y", "--pages", "4K,2M,1G"]), None);
}

#[test]
fn how_many_entries_would_be_enough_is_a_table_of_its_own_in_every_form() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("result.json");
    let name = file.to_str().expect("text");
    let words: Vec<&str> = FEW.iter().chain(&["--curve", "--output", name]).copied().collect();
    done(&words);
    let read = valid(&std::fs::read_to_string(&file).expect("a result"));
    let curves = read["data"]["curves"].as_array().expect("curves");
    let entries: Vec<u64> = curves.iter().filter_map(|curve| curve["entry"].as_u64()).collect();
    assert_eq!(entries, [4 << 10, 2 << 20, 1 << 30], "nested pages are no others");
    // 256 MiB are 128 pages of 2 MiB: a chase in any order needs all of them.
    let misses = |entries: u64| {
        let points = curves[1]["points"].as_array().expect("points");
        points
            .iter()
            .find(|point| point["entries"] == entries)
            .and_then(|point| point["miss_rate"].as_f64())
    };
    assert_eq!(misses(128), Some(0.0));
    assert!(misses(16).is_some_and(|rate| rate > 0.5), "{:?}", misses(16));
    for form in ["csv", "markdown", "html", "text"] {
        let shown = done(&["report", name, "--format", form]).out;
        assert!(shown.contains("131072"), "{form}");
    }
    let told = refused(&["simulate", "translation", "--curve", "--vcpus", "2"]);
    assert!(told.contains("--curve") && told.contains("--vcpus"), "{told}");
}

#[test]
fn a_machine_file_is_read_and_its_mistakes_have_a_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| file(folder.path(), name, text);
    let mine = write(
        "mine.toml",
        "like = 'xeon-8452y'\nwalk_caches = [32, 8, 4, 2]\nl2_tlb_hit_cycles = 7\n",
    );
    let words = [
        "simulate",
        "translation",
        "--machine",
        &mine,
        "--working-sets",
        "64M",
        "--accesses",
        "20000",
        "--json",
    ];
    let result = json(&words);
    let unknown = result["data"]["unknown"].as_array().expect("a list");
    assert!(
        unknown
            .iter()
            .all(|sweep| sweep["unknown"] != "walk-caches" && sweep["unknown"] != "l2-tlb-hit"),
        "{unknown:?}"
    );
    let bad = write("bad.toml", "like = 'xeon-8452y'\nwalk_cache = 3\n");
    let told = refused(&["simulate", "translation", "--machine", &bad]);
    assert!(told.contains("bad.toml") && told.contains("line 2"), "{told}");
}

#[test]
fn a_trace_is_recognised_and_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| file(folder.path(), name, bytes);
    let lines: String = (0..5000)
        .map(|at| format!(" L {:x},8\nI  40ab70,3\n", 0x7f00_0000_0000_u64 + at * 4096))
        .collect();
    let trace = file("a.lackey", format!("==7== Lackey\n{lines}").as_bytes());
    let words = [
        "simulate",
        "translation",
        "--machine",
        "8452y",
        "--mode",
        "native",
        "--pages",
        "4K,2M",
    ];
    let run = |more: &[&str]| -> Value {
        let words: Vec<&str> = words.iter().chain(more).chain(&["--json"]).copied().collect();
        json(&words)
    };
    let data = &run(&["--trace", &trace])["data"];
    assert!(
        data["input"]
            .as_str()
            .is_some_and(|input| input.ends_with("a.lackey (lackey)")),
        "{data}"
    );
    let walked = |case: usize| data["cases"][case]["miss_rates"][1].as_f64().expect("a rate");
    // 20 MB in a row: every page is new, and so is each of ten huge pages.
    assert_eq!(
        (data["accesses"].as_u64(), walked(0), walked(1)),
        (Some(5000), 1.0, 0.002)
    );
    assert_eq!(run(&["--trace", &trace, "--fetches"])["data"]["accesses"], 10_000);
}

#[test]
fn a_bad_trace_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes, reason) in [
        (
            "bad.lackey",
            &b" L 7f00,8\n L 7f0x,8\n"[..],
            "line 2: no line of lackey",
        ),
        (
            "cut.u64",
            &[0, 0, 0, 0, 1, 0x7f, 0, 0, 1][..],
            "offset 8: the trace ends within an address",
        ),
        (
            "absurd.u64",
            &[0, 0, 0, 0, 1, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0x41][..],
            "offset 0: the content fits no trace format",
        ),
        ("none", b"", "offset 0: the trace holds no loads and stores"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        let path = path.to_str().expect("text");
        let why = refused(&["simulate", "translation", "--machine", "8452y", "--trace", path]);
        assert!(why.contains(&format!("--trace {path}: {reason}")), "{why}");
    }
    let why = refused(&["simulate", "translation", "--machine", "8452y", "--trace", "/dev/zero"]);
    assert!(why.contains("--trace /dev/zero: it is a device"), "{why}");
}

#[test]
fn a_publication_stands_beside_what_is_simulated_of_it() {
    let words = ["simulate", "translation", "--preset"];
    let text = done(&[&words[..], &["vcf-tlb-table"]].concat()).out;
    assert!(
        text.contains("2048 entries x 2M") && text.contains("predicted"),
        "{text}"
    );
    let words = [
        &words[..],
        &["esx35-large-pages", "--accesses", "20000", "--seed", "1", "--json"],
    ]
    .concat();
    let result = json(&words);
    let rows = result["data"]["published"].as_array().expect("rows");
    let fitted: Vec<bool> = rows.iter().filter_map(|row| row["is_fitted"].as_bool()).collect();
    assert_eq!(fitted, [true, true, false, false, false], "{rows:?}");
    let why = refused(&["simulate", "translation", "--preset", "vcf"]);
    assert!(
        why.contains("`vcf` is not a preset") && why.contains("vcf-spr"),
        "{why}"
    );
}

#[test]
fn here_is_this_machines_cpu_by_the_table_as_it_is_without_a_word() {
    let [guest, unknown] = ["epyc-guest", "rhel5-jboss"].map(machine);
    let simulate = [
        "simulate",
        "translation",
        "--working-sets",
        "1M",
        "--accesses",
        "2000",
        "--json",
    ];
    let run = |more: &[&str]| -> Value {
        let words = [&simulate[..], &["--seed", "1", "--root", text(&guest)], more].concat();
        json(&words)
    };
    let (here, without) = (run(&["--machine", "here"]), run(&[]));
    assert_eq!(here["data"], without["data"]);
    let id = here["data"]["machine"]["id"].as_str();
    assert!(id.is_some_and(|id| id.starts_with("epyc-")), "{id:?}");
    let why = refused(&[&simulate[..], &["--root", text(&unknown), "--machine", "here"]].concat());
    assert!(why.contains("the CPU table does not have this machine's CPU"), "{why}");
    assert!(!why.contains("measure"), "{why}");
    let why = refused(&[&simulate[..], &["--machine", "here", "--measured", "tlb.json"]].concat());
    assert!(why.contains("unexpected argument '--measured'"), "{why}");
}

/// Each machine with each pattern is a result, in the order typed, and the same as alone.
#[test]
fn lists_of_machines_and_patterns_give_a_line_of_json_each() {
    let common = [
        "--working-sets",
        "1M",
        "--mode",
        "native",
        "--accesses",
        "2000",
        "--seed",
        "7",
    ];
    let run = |machines: &str, patterns: &str, form: &[&str]| {
        let head = ["simulate", "translation", "--machine", machines, "--pattern", patterns];
        done(&[&head, &common[..], form].concat()).out
    };
    let out = run("skylake-sp,9654", "chase,zipf", &["--json"]);
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let of = |result: &Value| (result["data"]["machine"]["id"].clone(), result["data"]["input"].clone());
    let expected = ["skylake-sp", "epyc-9654"].map(|id| ["chase", "zipf"].map(|pattern| (id.into(), pattern.into())));
    assert_eq!(lines.iter().map(of).collect::<Vec<_>>(), expected.concat());
    let alone = valid(&run("9654", "zipf", &["--json"]));
    assert_eq!(alone["data"], lines[3]["data"]);
    let text = run("skylake-sp,9654", "chase", &[]);
    assert_eq!(text.matches("simulated: chase").count(), 2, "{text}");
    assert!(text.contains("\n\nAddress translation on AMD EPYC 9654"), "{text}");
}

#[test]
fn a_list_of_results_in_a_file_is_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("runs.jsonl");
    let name = file.to_str().expect("text");
    let few = [
        "--working-sets",
        "1M",
        "--mode",
        "native",
        "--accesses",
        "2000",
        "--vcpus",
        "1,2,4",
    ];
    let head = [
        "simulate",
        "translation",
        "--machine",
        "8452y",
        "--json",
        "--output",
        name,
    ];
    done(&[&head, &few[..]].concat());
    let lines = std::fs::read_to_string(&file).expect("written");
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn several_results_have_no_form_that_holds_one() {
    let why = refused(&[
        "simulate",
        "translation",
        "--machine",
        "8452y",
        "--pattern",
        "chase,zipf",
        "--format",
        "csv",
    ]);
    assert!(why.contains("--format csv: 2 simulations"), "{why}");
    assert!(why.contains("json"), "{why}");
}
