//! The suite of published experiments: what it lists, what it keeps, and that nothing is left of it however it ends.

mod common;
#[path = "suite/left.rs"]
mod left;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{done, hugewise, missing, sent, skipped, told, valid};
use left::{Before, MARK, marked};
use serde_json::Value;
use tempfile::TempDir;

/// Short loads on small data: what is tested is what is left.
const OLTP: &str = "oltp:order-entry,scale=1,shared_buffers=64MB,transactions=200,clients=2";
/// A machine that is busy may take long to bring a cluster up.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Is all here that an experiment needs? Of memory a test needs less if its data are small.
fn can(experiment: &str, has_small_data: bool) -> bool {
    let list = listed(&["--only", experiment], None);
    let lacks = list["data"]["experiments"][0]["lacking"].as_array();
    let lacks = lacks.expect("a list");
    if lacks.iter().any(|lack| lack.get("program").is_some()) {
        missing(&format!("{lacks:?}"));
        return false;
    }
    let is_short = !lacks.is_empty() && !has_small_data;
    if is_short {
        skipped(&format!("this machine has not what {experiment} needs: {lacks:?}"));
    }
    !is_short
}

#[test]
fn claims_are_printed_with_what_stands_beside_them_and_nothing_is_run() {
    let result = valid(&done(&["suite", "--claims", "--json"]).out);
    let claims = result["data"]["claims"].as_array().expect("claims");
    assert!(claims.len() >= 40, "{}", claims.len());
    let pressure = claims
        .iter()
        .find(|claim| claim["id"] == "vcf-pressure")
        .expect("a claim");
    assert_eq!(
        (pressure["figure"].as_str(), pressure["measure"]["of"].as_str()),
        (Some("about 12"), Some("virtual machine over bare metal"))
    );
    let text = done(&["suite", "--claims"]).out;
    assert!(
        text.contains("cannot be compared") && text.contains("Where it is published"),
        "{text}"
    );
    assert!(common::refused(&["suite", "--claims", "--list"]).contains("--list"));
}

#[test]
fn simulations_and_sums_that_claims_name_are_commands() {
    let result = valid(&done(&["suite", "--claims", "--json"]).out);
    let claims = result["data"]["claims"].as_array().expect("claims");
    let here = claims
        .iter()
        .flat_map(|claim| claim["here"].as_array().expect("counterparts"));
    let named: BTreeSet<&str> = here.filter_map(|here| here["by"].as_str()).collect();
    let is_preset = |by: &&&str| by.contains("--preset");
    let is_run = |by: &&&str| by.starts_with("simulate translation ") || by.starts_with("size ");
    let mut count = 0;
    for by in named.iter().filter(is_run).filter(|by| !is_preset(by)) {
        let mut words: Vec<&str> = by.split(' ').collect();
        if words[0] == "simulate" {
            words.extend(["--accesses", "10000"]);
        }
        done(&words);
        count += 1;
    }
    assert!(count > 15, "{count}");
}

fn listed(options: &[&str], path: Option<&str>) -> Value {
    let mut command = hugewise(&[&["suite", "--list", "--json"][..], options].concat());
    path.iter().for_each(|path| {
        command.env("PATH", path);
    });
    let run = told(command.output().expect("runs"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    valid(&run.out)
}

#[test]
fn without_any_program_the_list_says_how_to_install_each() {
    let list = listed(&[], Some(""));
    let experiments = list["data"]["experiments"].as_array().expect("a list");
    assert!(experiments.len() > 20);
    for experiment in experiments {
        let name = &experiment["experiment"]["name"];
        let lacking = experiment["lacking"].as_array().expect("a list");
        // PostgreSQL's programs are looked for in the folders of its packages, too.
        let is_found = name.as_str().is_some_and(|name| name.starts_with("oltp"));
        assert!(!lacking.is_empty() || is_found, "{name}: it needs some program");
        let programs = lacking.iter().filter_map(|lack| lack.get("program"));
        programs.for_each(|lack| {
            assert!(
                lack["package"].as_str().is_some_and(|package| !package.is_empty()),
                "{name}"
            );
        });
    }
    let text = told(hugewise(&["suite", "--list"]).env("PATH", "").output().expect("runs"));
    assert!(
        text.out.contains("apt-get install default-jdk-headless g++ gcc"),
        "{}",
        text.out
    );
}

#[test]
fn what_does_not_exist_is_refused_before_anything_runs() {
    for (options, part) in [
        (
            &["--only", "jb"][..],
            "there is no such experiment (write jbb-parallel-1g",
        ),
        (&["--resume", "/nonexistent"][..], "there is no such directory"),
        (&["--list", "--budget", "5m"][..], "cannot be used with"),
    ] {
        let error = common::refused(&[&["suite"][..], options].concat());
        assert!(error.contains(part), "{error}");
    }
}

/// Commands that may leave something, one test at a time.
struct Bench {
    folder: TempDir,
    before: Before,
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Bench {
    fn set_up() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            folder: tempfile::tempdir().expect("a directory"),
            before: Before::now(),
            _turn: turn,
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = hugewise(words);
        command.env("XDG_STATE_HOME", self.folder.path());
        command.env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        command.env("HUGEWISE_STATE_DIR", self.folder.path().join("pools"));
        command.env(MARK, std::process::id().to_string());
        command
    }

    /// An experiment that needs a C compiler alone.
    fn suite(&self, options: &[&str]) -> Command {
        let words = ["suite", "--only", "memtest", "--no-host-page", "--json"];
        self.command(&[&words[..], options].concat())
    }

    fn compare(&self, workload: &str, arms: &str) -> Command {
        let words = ["compare", "--workload", workload, "--arms", arms];
        self.command(&[&words[..], &["--runs", "2", "--warm-up", "0", "--json"]].concat())
    }

    fn assert_nothing_left(&self, of: &str) {
        self.before.assert_same(of, self.folder.path());
    }
}

/// Starts a command, and waits until a program of that name runs in it, and a moment longer.
fn begun(mut command: Command, program: &str, moment: Duration) -> Child {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    while marked().iter().all(|name| !name.contains(program)) {
        assert!(
            child.try_wait().expect("a child").is_none(),
            "it ended before {program} ran"
        );
        assert!(began.elapsed() < TIMEOUT, "no {program} within {TIMEOUT:?}");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(moment);
    child
}

#[test]
fn a_finished_experiment_is_kept_with_its_page_and_not_repeated() {
    if !can("memtest", false) {
        return;
    }
    let bench = Bench::set_up();
    let first = told(bench.suite(&["--budget", "45s"]).output().expect("runs"));
    if first.code == Some(1) && first.err.contains("--only memtest") {
        return skipped("the machine is too busy for a block of runs in 45 s");
    }
    assert_eq!(first.code, Some(0), "{}", first.err);
    let result = valid(&first.out);
    let page = &result["data"]["pages"][0];
    let arms = page["outcome"]["compared"]["compare"]["arms"].as_array();
    assert!(arms.is_some_and(|arms| arms.len() == 3), "{page}");
    let source = page["experiment"]["published"]["source"].as_str();
    assert!(source.is_some_and(|source| source.contains("VMware")));
    let kept = bench.folder.path().join("hugewise/suite-1");
    for name in ["memtest.json", "memtest.html", "report.json", "report.html"] {
        assert!(kept.join(name).is_file(), "{name}");
    }
    assert!(!kept.join("memtest.jsonl").exists(), "the result holds its runs");
    let again = told(bench.suite(&["--resume", name(&kept)]).output().expect("runs"));
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(again.err.contains("finished before, and not repeated"), "{}", again.err);
    assert_eq!(valid(&again.out)["data"]["pages"][0]["experiment"], page["experiment"]);
    let page = done(&["report", name(&kept.join("memtest.json")), "--format", "markdown"]).out;
    assert!(page.contains("why they may differ"), "{page}");
    bench.assert_nothing_left("a suite that was resumed");
}

fn name(path: &Path) -> &str {
    path.to_str().expect("a name")
}

#[test]
fn a_suite_that_is_interrupted_or_killed_leaves_finished_runs_alone() {
    if !can("memtest", false) {
        return;
    }
    let bench = Bench::set_up();
    for signal in ["-INT", "-KILL"] {
        let mut child = begun(
            bench.suite(&["--budget", "5m"]),
            "memtest 512",
            Duration::from_millis(500),
        );
        sent(signal, &child);
        let ended = child.wait().expect("ends");
        if signal == "-INT" {
            assert_eq!(ended.code(), Some(130));
        }
        bench.assert_nothing_left(signal);
    }
    let kept = fs::read_dir(bench.folder.path().join("hugewise"))
        .expect("a list")
        .count();
    assert_eq!(kept, 2, "each has a directory, with which --resume continues");
}

#[test]
fn a_cluster_is_gone_with_its_comparison_however_that_ends() {
    if !can("oltp-order-entry", true) {
        return;
    }
    let bench = Bench::set_up();
    // While the cluster is made, while it is filled, and under load.
    for (signal, moment) in [("-KILL", 0), ("-KILL", 1500), ("-INT", 100), ("-TERM", 3000)] {
        let command = bench.compare(OLTP, "base,hugetlb-2M");
        let mut child = begun(command, "postgres", Duration::from_millis(moment));
        sent(signal, &child);
        child.wait().expect("ends");
        bench.assert_nothing_left(&format!("{signal} after {moment} ms"));
    }
}

#[test]
fn order_entry_is_checked_and_says_that_it_is_not_compliant() {
    if !can("oltp-order-entry", true) {
        return;
    }
    let bench = Bench::set_up();
    let run = told(bench.compare(OLTP, "base,system").output().expect("runs"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("not TPC-C compliant"), "{}", run.err);
    let result = valid(&run.out);
    let cpu = &result["data"]["arms"][0]["runs"][0]["metrics"]["cpu"];
    assert!(cpu.as_f64().is_some_and(|seconds| seconds > 0.0), "{cpu}");
    bench.assert_nothing_left("a comparison that ended well");
    // A server that cannot start leaves as little.
    let failing = OLTP.replace("64MB", "64XB");
    let run = told(bench.compare(&failing, "base,system").output().expect("runs"));
    assert_eq!(run.code, Some(2), "{}", run.err);
    bench.assert_nothing_left("a comparison that failed");
}
