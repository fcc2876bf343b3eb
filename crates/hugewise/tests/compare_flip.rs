//! Programs that are started once and compared with themselves in place; where that does not suit them, whole runs. None is left.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::stall::{Reference, assert_gone};
use common::{Run, alive, compiled, hugewise, lines, refused, run, sent, skipped, told, valid};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// A folder with a program that chases through its memory and counts its steps.
struct Bench {
    folder: tempfile::TempDir,
    program: String,
}

impl Bench {
    /// `None` where there is no C compiler.
    fn set_up() -> Option<Self> {
        Self::with("compare_flip/chase.c")
    }

    fn with(source: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        compiled(source, &program)?;
        let program = program.display().to_string();
        Some(Self { folder, program })
    }

    /// `None` also where this user may not collapse memory of a process, which would be run anew, and for ever.
    fn flipping() -> Option<Self> {
        static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
        let bench = Self::set_up()?;
        let why_not = WHY_NOT.get_or_init(|| {
            let words = bench.words(&["--quiet", "--design", "flip", "--runs", "1"], "16");
            let run = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
            (run.code == Some(2)).then_some(run.err)
        });
        match why_not {
            Some(why) => {
                skipped(why.trim());
                None
            }
            None => Some(bench),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    /// A comparison of the program that counts in a file, with short slices.
    fn words(&self, options: &[&str], mib: &str) -> Vec<String> {
        let steps = self.name("steps");
        let metric = format!("steps=steps ([0-9]+),from={steps}");
        let first = [
            "compare",
            "--metric",
            &metric,
            "--slice",
            "100ms",
            "--warm-up",
            "0",
            "--json",
        ];
        let all = first.iter().chain(options).copied();
        all.chain(["--", &self.program, mib, &steps])
            .map(str::to_owned)
            .collect()
    }

    fn compare(&self, options: &[&str]) -> Run {
        let words = self.words(options, "32");
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A comparison that has finished so many slices.
    fn begun(&self, options: &[&str], log: &Path, slices: usize) -> Child {
        let words = self.words(options, "16");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let child = hugewise(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let began = Instant::now();
        while lines(log) <= slices && child.try_wait().is_ok_and(|end| end.is_none()) {
            assert!(began.elapsed() < Duration::from_secs(60), "no slices");
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }

    /// Processes of the program.
    fn left(&self) -> usize {
        alive(Path::new(&self.program))
    }
}

fn interrupt(child: Child) -> Run {
    sent("-INT", &child);
    told(child.wait_with_output().expect("it ends"))
}

/// The method, if this machine can flip pages; otherwise why whole runs were made.
fn is_flipped(data: &Value) -> bool {
    let is_flipped = data["design"]["method"] == "flip";
    if !is_flipped {
        skipped(&data["design"]["reason"].to_string());
    }
    is_flipped
}

#[test]
fn a_program_that_counts_is_started_once_flipped_and_ended() {
    let Some(bench) = Bench::flipping() else { return };
    let run = bench.compare(&["--runs", "2"]);
    assert_eq!((run.code, bench.left()), (Some(0), 0), "{}", run.err);
    let data = &valid(&run.out)["data"];
    if !is_flipped(data) {
        return;
    }
    assert!(run.err.contains("by slices of one process"), "{}", run.err);
    assert_eq!(data["design"]["reason"]["code"], "counters");
    assert_eq!(data["design"]["in_place"]["started"], true);
    let slices = |arm: usize| data["arms"][arm]["runs"].as_array().expect("slices").iter();
    assert_eq!((slices(0).count(), slices(1).count()), (4, 2));
    let large = |slice: &Value| slice["slice"]["large_after"].as_u64();
    assert!(slices(0).all(|slice| large(slice) <= Some(4 * MIB)), "{data}");
    if data["arms"][1]["took_effect"] == true {
        assert!(slices(1).all(|slice| large(slice) >= Some(16 * MIB)), "{data}");
    }
    assert!(slices(1).all(|slice| slice["metrics"]["steps"].as_f64() > Some(0.0)));
    assert!(data["restored"].is_null(), "it has ended");
    assert!(bench.file("steps.ended").exists(), "it was asked to end, not killed");
}

#[test]
fn what_it_prints_and_what_a_load_tells_are_scores_too() {
    let Some(bench) = Bench::flipping() else { return };
    let arguments = ["--", &bench.program, "8", "-"];
    let printed = [
        "compare",
        "--metric",
        "steps=steps ([0-9]+)",
        "--slice",
        "100ms",
        "--runs",
        "1",
        "--json",
    ];
    let printed = run(&[&printed[..], &arguments].concat());
    assert_eq!((printed.code, bench.left()), (Some(0), 0), "{}", printed.err);
    let data = &valid(&printed.out)["data"];
    if !is_flipped(data) {
        return;
    }
    let (steps, pid, stopped) = (bench.name("steps"), bench.name("pid"), bench.name("stopped"));
    let line = format!("echo $$ > {pid}; exec {} 8 {steps}", bench.program);
    let server = [
        "compare",
        "--ready",
        &format!("test -s {steps}"),
        "--load",
        "sleep 0.1; echo answers 5",
        "--stop",
        &format!("kill $(cat {pid}) && : > {stopped}"),
        "--metric",
        "answers=answers ([0-9]+)",
        "--runs",
        "1",
        "--json",
    ];
    let served = run(&[&server[..], &["--", "/bin/sh", "-c", &line]].concat());
    assert_eq!((served.code, bench.left()), (Some(0), 0), "{}", served.err);
    let data = &valid(&served.out)["data"];
    assert_eq!(data["design"]["method"], "flip", "{}", served.err);
    assert!(data["design"]["in_place"]["slice_seconds"].is_null());
    assert_eq!(data["arms"][1]["runs"][0]["metrics"]["answers"], 5.0);
    assert!(data["arms"][0]["runs"][0]["metrics"]["wall"].as_f64() >= Some(0.1));
    assert!(Path::new(&stopped).exists() && bench.file("steps.ended").exists());
}

#[test]
fn memory_of_a_child_is_flipped_there_and_the_child_ends_too() {
    if Bench::flipping().is_none() {
        return;
    }
    let Some(bench) = Bench::with("compare_slices/count.c") else {
        return;
    };
    let counts = bench.name("counts");
    let metric = format!("ops=ops=([0-9]+),from={counts}");
    let words = [
        "compare", "--metric", &metric, "--slice", "100ms", "--runs", "1", "--json",
    ];
    let run = run(&[&words[..], &["--", &bench.program, &counts, "16"]].concat());
    assert_eq!((run.code, bench.left()), (Some(0), 0), "{}", run.err);
    let data = &valid(&run.out)["data"];
    if is_flipped(data) && data["arms"][1]["took_effect"] == true {
        let large = data["arms"][1]["runs"][0]["backing"]["thp"].as_u64();
        assert!(large >= Some(8 * MIB), "{data}");
    }
}

#[test]
fn a_program_that_ends_or_counts_at_its_end_is_run_anew_and_the_reason_is_told() {
    let Some(bench) = Bench::set_up() else { return };
    let short = [
        "--metric",
        "steps=steps ([0-9]+)",
        "--runs",
        "1",
        "--json",
        "--",
        &bench.program,
        "4",
        "-",
        "1",
    ];
    let run = run(&[&["compare"][..], &short].concat());
    assert_eq!((run.code, bench.left()), (Some(0), 0), "{}", run.err);
    let design = &valid(&run.out)["data"]["design"];
    assert_eq!(design["method"], "runs");
    let reason = &design["reason"];
    assert_eq!((&reason["code"], &reason["method"]), (&"tried".into(), &"flip".into()));
    let asked = refused(&[&["compare", "--quiet", "--design", "flip"][..], &short].concat());
    assert!(
        asked.contains("--design flip: ") && asked.contains("(--design runs starts"),
        "{asked}"
    );
}

/// Two processes share its memory, so that it cannot be flipped in one; and neither ends.
#[test]
fn that_whole_runs_wait_for_a_program_which_may_never_end_is_said_with_quiet_too() {
    ends_with_all_its_processes("");
}

#[test]
fn after_ctrl_c_a_process_in_a_session_of_its_own_has_ended_too() {
    ends_with_all_its_processes("setsid ");
}

fn ends_with_all_its_processes(session: &str) {
    let Some(bench) = Bench::set_up() else { return };
    let (program, steps) = (&bench.program, bench.name("steps"));
    let line = format!("{session}{program} 16 {steps} & exec {program} 16 -");
    let metric = format!("steps=steps ([0-9]+),from={steps}");
    let words = ["compare", "--quiet", "--metric", &metric, "--", "/bin/sh", "-c", &line];
    let said = bench.file("said");
    let mut child = hugewise(&words)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&said).expect("a file"))
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    while lines(&said) == 0 && child.try_wait().is_ok_and(|end| end.is_none()) {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is said");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = interrupt(child);
    let said = std::fs::read_to_string(said).expect("text");
    assert!(said.starts_with("hugewise: it had not ended by itself"), "{said}");
    assert_eq!((ended.code, bench.left()), (Some(130), 0), "{said}");
}

#[test]
fn after_ctrl_c_nothing_is_left_and_whole_blocks_are_gone_on_with() {
    let Some(bench) = Bench::flipping() else { return };
    let log = bench.file("log.jsonl");
    let name = bench.name("log.jsonl");
    let begun = bench.begun(&["--runs", "900", "--log", &name], &log, 5);
    assert_eq!(bench.left(), 1, "one process is both arms");
    let stopped = interrupt(begun);
    assert_eq!((stopped.code, bench.left()), (Some(130), 0), "{}", stopped.err);
    if !is_flipped(&valid(&stopped.out)["data"]) {
        return;
    }
    let resumed = bench.compare(&["--runs", "3", "--resume", &name]);
    assert!(resumed.err.contains("it is of `"), "another program: {}", resumed.err);
    let words = bench.words(&["--runs", "3", "--resume", &name], "16");
    let resumed = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((resumed.code, bench.left()), (Some(0), 0), "{}", resumed.err);
    let data = &valid(&resumed.out)["data"];
    assert_eq!((&data["design"]["blocks"], lines(&log)), (&3.into(), 10), "{data}");
    assert_eq!(data["design"]["reason"]["code"], "resumed");
    let other = [
        "compare",
        "--quiet",
        "--design",
        "runs",
        "--resume",
        &name,
        "--",
        &bench.program,
        "16",
        &bench.name("steps"),
    ];
    assert!(refused(&other).contains("write the same --design"));
}

#[test]
fn after_kill_9_the_program_ends_too() {
    let Some(bench) = Bench::flipping() else { return };
    let reference = std::env::var_os("HUGEWISE_TEST_KILLS").map(|_| Reference::start());
    let log = bench.file("log.jsonl");
    let mut begun = bench.begun(&["--runs", "900", "--log", &bench.name("log.jsonl")], &log, 2);
    begun.kill().expect("killed");
    begun.wait().expect("ended");
    assert_gone("after kill -9", reference.as_ref(), || bench.left());
}

#[test]
fn what_cannot_be_one_process_is_refused_with_what_to_write() {
    let counter = "x=([0-9]+),from=/tmp/x";
    for (options, part) in [
        (vec!["--metric", "wall"], "takes a --load"),
        (vec!["--metric", counter, "--arms", "base,hugetlb-2M"], "write base,thp"),
        (
            vec!["--metric", counter, "--place", "pack"],
            "--place makes them different ones",
        ),
        (
            vec!["--metric", "x=([0-9]+),from=/tmp/{arm}"],
            "{arm} makes them different ones",
        ),
    ] {
        let words = [&["compare", "--design", "flip"][..], &options, &["--", "/bin/true"]].concat();
        let error = refused(&words);
        assert!(
            error.contains("--design flip: ") && error.contains(part),
            "{options:?}: {error}"
        );
    }
    let runs = ["compare", "--design", "runs", "--range", "heap", "--", "/bin/true"];
    assert!(refused(&runs).contains("write --design flip"));
}

/// A log whose last block is not whole is rewritten before anything is run.
#[test]
fn a_log_killed_while_it_is_rewritten_is_the_old_one_or_has_all_whole_blocks() {
    let Some(bench) = Bench::flipping() else { return };
    let (log, name) = (bench.file("log.jsonl"), bench.name("log.jsonl"));
    let words = |option: &str| bench.words(&["--runs", "2", option, &name], "16");
    let first = words("--log");
    let first = run(&first.iter().map(String::as_str).collect::<Vec<_>>());
    if !is_flipped(&valid(&first.out)["data"]) {
        return;
    }
    let whole = std::fs::read_to_string(&log).expect("a log");
    let torn: String = whole.split_inclusive('\n').take(6).collect();
    let resume = words("--resume");
    let resume: Vec<&str> = resume.iter().map(String::as_str).collect();
    let mut within = 0;
    for round in 0..60_u64 {
        std::fs::write(&log, &torn).expect("written");
        let child = hugewise(&resume).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("it starts");
        while drafts(&bench) == 0 && child.try_wait().is_ok_and(|end| end.is_none()) {}
        std::thread::sleep(Duration::from_micros(round * 61 % 900));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let now = std::fs::read_to_string(&log).expect("a log");
        assert!(now == torn || has_whole_blocks(&now, &torn), "round {round}:\n{now}");
        within += drafts(&bench);
        if within >= 5 {
            break;
        }
    }
    assert!(within > 0, "no kill came within a write");
    assert_gone("after the last kill", None, || bench.left());
    assert_eq!(run(&resume).code, Some(0));
    assert_eq!((drafts(&bench), lines(&log)), (0, 7));
}

/// Temporary files of the log.
fn drafts(bench: &Bench) -> usize {
    let entries = std::fs::read_dir(bench.folder.path()).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".log.jsonl.")).count()
}

/// Its head and first block, and maybe further runs, the last one perhaps by half.
fn has_whole_blocks(now: &str, torn: &str) -> bool {
    let whole = now.rfind('\n').map_or("", |end| &now[..end]);
    let blocks: Option<Vec<u64>> = whole.lines().skip(1).map(block).collect();
    let first = blocks.is_some_and(|blocks| blocks.iter().filter(|block| **block == 0).count() == 3);
    first && now.lines().next() == torn.lines().next()
}

fn block(line: &str) -> Option<u64> {
    serde_json::from_str::<Value>(line).ok()?["run"]["block"].as_u64()
}
