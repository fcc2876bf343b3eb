//! `simulate scheduler`: results fit their schema, repeat by seed, have every form, and mistakes are named.

use crate::common::{done, file, json, refused};

const HOST: &str = "seconds = 2\n[topology]\nnodes = 2\nsockets = 2\ncores_per_socket = 2\nthreads_per_core = 2\n
[[vm]]\nname = 'web'\ncount = 8\nvcpus = 2\nburst_ms = 5\nsleep_ms = 2\n";

#[test]
fn a_schedule_fits_its_schema_repeats_by_seed_and_has_every_form() {
    let folder = tempfile::tempdir().expect("a directory");
    let host = file(folder.path(), "host.toml", HOST);
    let words = ["simulate", "scheduler", &host, "--seed", "7", "--json"];
    let [one, again] = [(); 2].map(|()| json(&words));
    assert_eq!(one["data"], again["data"]);
    assert_eq!(one["data"]["vms"].as_array().map(Vec::len), Some(8));
    for (form, holds) in [
        ("csv", "wait_p999_us"),
        ("markdown", "web-8"),
        ("svg", "<svg"),
        ("html", "Over time"),
        ("text", "web-1"),
    ] {
        let out = done(&["simulate", "scheduler", &host, "--format", form]).out;
        assert!(out.contains(holds), "{form}: {out}");
    }
}

#[test]
fn every_policy_runs_and_an_unknown_one_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let host = file(folder.path(), "host.toml", HOST);
    for policy in [
        "esx-2.5.2",
        "esx-2.5.3",
        "linux-like",
        "pinned",
        "latency-sensitivity-high",
    ] {
        assert!(
            done(&["simulate", "scheduler", &host, "--policy", policy])
                .out
                .contains(policy)
        );
    }
    let error = refused(&[
        "simulate",
        "scheduler",
        &file(folder.path(), "host.toml", HOST.replace("count = 8", "shares = -1")),
    ]);
    assert!(
        error.contains("host.toml, line 10") && error.contains("expected"),
        "{error}"
    );
}

#[test]
fn the_study_of_2006_is_explained_with_its_fits() {
    let result = json(&["simulate", "scheduler", "--preset", "ibm-2006-table-4", "--json"]);
    assert_eq!(result["data"]["explained"]["runs"].as_array().map(Vec::len), Some(6));
    let text = done(&["simulate", "scheduler", "--preset", "ibm-2006"]).out;
    let left_out = "x3850 Baseline: 30.7 % on CPUs that are simulated with 0";
    for part in ["slow node 1", "the 9 runs on node 0", "not in the paper", left_out] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Blocks of a page by their language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let ends = page.split(start.as_str()).skip(1);
    ends.filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_how_to_page_does_what_it_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/simulate-scheduler.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let folder = tempfile::tempdir().expect("a directory");
    let host = file(folder.path(), "host.toml", blocks(&page, "toml")[0]);
    let html = folder.path().join("schedule.html");
    let html = html.to_str().expect("text");
    let typed: Vec<_> = blocks(&page, "text").into_iter().flat_map(str::lines).collect();
    assert_eq!(typed.len(), 2, "{typed:?}");
    for line in typed {
        let words = line.strip_prefix("$ hugewise ").expect("a command");
        let words: Vec<_> = words
            .split_whitespace()
            .map(|word| match word {
                "host.toml" => host.as_str(),
                "schedule.html" => html,
                other => other,
            })
            .collect();
        done(&words);
    }
    // "The page has a heat map of residency and a chart of CPUs over time."
    let written = std::fs::read_to_string(html).expect("the page");
    assert!(written.contains("Per cent of the time on each logical CPU") && written.contains("Over time"));
}
