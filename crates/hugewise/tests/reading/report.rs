//! The report is one offline file, and a browser draws its charts without complaint.

use std::path::Path;
use std::process::Command;

use crate::common::{done, machines, missing, refused};

/// A measurement of this machine as a page.
fn page(directory: &Path) -> String {
    let file = directory.join("report.html");
    let args = [
        "measure",
        "latency",
        "--pages",
        "base,thp",
        "--sizes",
        "16K,64K,256K,1M",
        "--budget",
        "1s",
        "--no-pool",
        "--output",
    ];
    done(&[&args[..], &[file.to_str().expect("plain")]].concat());
    std::fs::read_to_string(&file).expect("the page")
}

#[test]
fn it_is_one_small_file_that_refers_to_nothing_outside() {
    let directory = tempfile::tempdir().expect("a directory");
    for make in [page, comparison] {
        let html = make(directory.path());
        is_one_small_file(&html);
        assert!(!html.contains("http:") && !html.contains("https:"));
        assert!(
            html.contains("name=\"viewport\"")
                && html.contains("prefers-color-scheme:dark")
                && html.contains("@media print")
        );
    }
}

/// Findings name documents by their addresses, as text: nothing is loaded from there.
#[test]
fn the_checkup_of_every_machine_is_one_small_file_that_loads_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.html");
    let report = report.to_str().expect("plain");
    for (_, machine) in machines() {
        let machine = machine.to_str().expect("plain");
        done(&["--root", machine, "checkup", "--report", report]);
        is_one_small_file(&std::fs::read_to_string(report).expect("the page"));
    }
}

fn result(name: &str) -> String {
    format!("{}/../../fixtures/results/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn several_results_are_shown_one_after_the_other_as_text_alone() {
    let names = ["compare", "tlb"].map(result);
    let files = [names[0].as_str(), names[1].as_str()];
    let each = files.map(|file| done(&["report", file]).out);
    assert_eq!(done(&["report", files[0], files[1]]).out, each.join("\n"));
    let why = refused(&["report", "--json", files[0], files[1]]);
    assert!(why.contains("as text alone (run it for each of the 2 files)"), "{why}");
}

/// A page of HTML comes by `--format html` or a file of that name alone, into a pipe as on a terminal.
#[test]
fn a_result_is_text_unless_another_form_is_asked_for() {
    for name in ["compare", "tlb", "guest", "kernel", "cores", "latency"] {
        let text = done(&["report", &result(name)]).out;
        assert!(!text.contains('<') || !text.contains("<html"), "{name}: {text}");
        assert!(
            !text.trim_start().starts_with('<') && !text.is_empty(),
            "{name}: {text}"
        );
        let page = done(&["report", &result(name), "--format", "html"]).out;
        assert!(page.starts_with("<!"), "{name}");
    }
}

#[test]
fn one_chart_has_its_title_machine_and_verdict_and_a_wrong_name_lists_all() {
    let svg = done(&["report", &result("compare"), "--chart", "gains"]).out;
    for part in [
        "Compared: /bin/ls /",
        "AMD EPYC, kernel",
        "is inconclusive",
        "thp, wall: ",
        "gain, %",
    ] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
    assert!(!svg.contains("Every run by"), "that is another chart");
    let told = crate::common::refused(&["report", &result("compare"), "--chart", "gain"]);
    assert!(told.contains("it has gains, runs-wall, runs-cpu"), "{told}");
}

/// Each sweep is a line of its own: no line goes back and forth between costs of different sweeps.
#[test]
fn lines_of_the_tlb_chart_do_not_jump_between_sweeps() {
    let svg = done(&["report", &result("tlb"), "--chart", "tlb-pages"]).out;
    assert!(svg.contains("base, sweep 1") && svg.contains("base, sweep 2"), "{svg}");
}

/// On a terminal, where both streams go to one place.
#[test]
fn a_checkup_gives_its_answer_before_its_warnings() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.html");
    let terminal = directory.path().join("terminal");
    let file = std::fs::File::create(&terminal).expect("a file");
    let report = report.to_str().expect("plain");
    let args = [
        "checkup",
        "--quick",
        "--budget",
        "3s",
        "--skip",
        "doctor,ps,tlb,guest",
        "--no-pool",
        "--report",
        report,
    ];
    let mut command = crate::common::hugewise(&args);
    let status = command.stdout(file.try_clone().expect("a file")).stderr(file).status();
    assert!(status.expect("the program starts").success());
    let text = std::fs::read_to_string(&terminal).expect("text");
    let next = text.find("What to type next").expect("the answer");
    match text.find("warning: ") {
        Some(warning) => assert!(next < warning, "{text}"),
        None => testing::skipped("this checkup has no warning"),
    }
}

#[test]
fn a_page_leads_with_what_to_do_and_ends_with_the_tlb() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report.html");
    let (_, machine) = machines()
        .into_iter()
        .find(|(name, _)| name == "cgroup-v2")
        .expect("a machine");
    let args = [
        "--root",
        machine.to_str().expect("plain"),
        "checkup",
        "--report",
        report.to_str().expect("plain"),
    ];
    done(&args);
    let html = std::fs::read_to_string(&report).expect("the page");
    let place = |part: &str| html.find(part).unwrap_or_else(|| panic!("{part}"));
    let order = [
        "class=\"verdict\"",
        "<h2>What to type next",
        "<h2>Page kinds behind processes",
        "<h2>Findings",
        "<h2>error: C01",
        "<h2>Glossary",
    ];
    let places: Vec<usize> = order.map(place).to_vec();
    assert!(places.is_sorted(), "{places:?}");
}

#[track_caller]
fn is_one_small_file(html: &str) {
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
    for outside in [" src=", " href=", "url(", "@import"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn a_browser_draws_every_chart_without_a_complaint() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| is_there(name))
    else {
        return missing("chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.html");
    for make in [page, comparison] {
        let html = make(directory.path());
        draws(browser, &file, &html);
    }
}

/// A comparison of a program with itself as a page.
fn comparison(directory: &Path) -> String {
    let file = directory.join("report.html");
    let words = [
        "compare",
        "--arms",
        "base,system",
        "--runs",
        "2",
        "--warm-up",
        "0",
        "--metric",
        "cpu",
    ];
    let output = [
        "--metric",
        "wall",
        "--output",
        file.to_str().expect("plain"),
        "--",
        "/bin/true",
    ];
    done(&[&words[..], &output].concat());
    std::fs::read_to_string(&file).expect("the page")
}

fn draws(browser: &str, file: &Path, html: &str) {
    let charts = html.matches("<section class=\"chart\"").count();
    assert!(charts >= 1);
    let profile = file.with_file_name("profile");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser runs");
    let (dom, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        dom.contains(&format!("data-charts=\"{charts}\"")),
        "{charts} charts: {}",
        &dom[..dom.len().min(300)]
    );
    let complaints: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}
