//! `placement` as a user runs it: forced moves, times against rusage, ends of both sides, and published data.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{done, hugewise, json, machine, refused, run, sent, text, told, valid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

/// This test started again as the program to be recorded.
const ROLE: &str = "HUGEWISE_TEST_PLACEMENT";

/// The program: moves to and fro between two CPUs, or threads that use 50 ms each.
#[test]
fn as_the_recorded_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let numbers: Vec<usize> = role.split(' ').filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [first, second, moves] => (0..moves).for_each(|turn| pin(if turn % 2 == 0 { second } else { first })),
        [count] => {
            let threads: Vec<_> = (0..count).map(|_| std::thread::spawn(work)).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("works"));
        }
        _ => panic!("{role}"),
    }
}

fn work() {
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_nsec;
    while used() < 50_000_000 {
        std::hint::black_box((0..1000).sum::<u64>());
    }
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("moved");
}

fn two_cpus() -> Option<[usize; 2]> {
    let all = sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    Some([cpus.next()?, cpus.next()?])
}

/// A recording of this test in a role.
fn recorded(role: &str, flags: &[&str]) -> Value {
    let own = std::env::current_exe().expect("this test");
    let own = own.to_str().expect("text");
    let words = [own, "--exact", "as_the_recorded_program", "--test-threads=1"];
    let args = [&["placement", "record", "--json"], flags, &["--"], &words].concat();
    let run = told(hugewise(&args).env(ROLE, role).output().expect("starts"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let result = valid(&run.out);
    let data = result["data"].clone();
    assert_eq!(data["end"]["exited"], 0, "{}", run.err);
    data
}

/// Was every switch recorded? If not, this machine does not allow that.
fn has_switches(data: &Value) -> bool {
    let has_switches = data["method"] == "switch-records";
    if !has_switches {
        testing::skipped(&format!("not by switch-records: {}", data["no_records"]));
    }
    has_switches
}

fn sum(numbers: &Value) -> f64 {
    numbers
        .as_object()
        .expect("numbers")
        .values()
        .filter_map(Value::as_f64)
        .sum()
}

/// The program starts on the first CPU, as this thread is pinned there, and pins itself from then on.
#[test]
fn each_forced_move_is_counted_and_no_other() {
    let Some([first, second]) = two_cpus() else {
        return testing::skipped("one CPU");
    };
    let before = sched_getaffinity(None).expect("CPUs");
    for count in [10, 1000, 100_000] {
        pin(first);
        let data = recorded(&format!("moves {first} {second} {count}"), &[]);
        sched_setaffinity(None, &before).expect("as before");
        if !has_switches(&data) {
            return;
        }
        let moves = sum(&data["total"]["migrations"]);
        assert_eq!(moves, f64::from(count), "{}", data["missed"]);
        assert_eq!(data["missed"]["lost_records"], 0);
    }
}

/// What the hypervisor withholds is in the one and not in the other, and not every guest's kernel reports it: the best of five counts.
#[test]
fn the_time_of_64_threads_is_within_1_percent_of_rusage() {
    let mut apart: Vec<f64> = Vec::new();
    while apart.len() < 5 && apart.iter().all(|apart| apart.abs() > 0.01) {
        let data = recorded("threads 64", &[]);
        if !has_switches(&data) {
            return;
        }
        apart.push(apart_from_rusage(&data));
    }
    // Nothing is missing, whatever the hypervisor does.
    assert!(apart.iter().all(|apart| *apart > -0.01), "{apart:?}");
    assert!(apart.iter().any(|apart| *apart <= 0.01), "{apart:?}");
}

fn apart_from_rusage(data: &Value) -> f64 {
    let number = |name: &str| data[name].as_f64().expect("a number");
    let (own, usage) = (sum(&data["total"]["cpu_s"]), number("rusage_s"));
    let threads = data["threads"].as_array().expect("threads");
    // The main thread, that of the test, and its own.
    assert!((65..=66).contains(&threads.len()), "{}", threads.len());
    assert!((own + number("unassigned_s") - usage).abs() < 1e-6 || own > usage);
    own / usage - 1.0
}

/// A process ends for the kernel after its last record: the rest of its time is said, and is no part of a CPU.
#[test]
fn every_short_process_is_followed_and_its_end_is_said_to_be_unassigned() {
    let script = "i=0; while [ $i -lt 300 ]; do (j=0; while [ $j -lt 300 ]; do j=$((j+1)); done); i=$((i+1)); done";
    let result = json(&["placement", "record", "--json", "--", "sh", "-c", script]);
    let data = &result["data"];
    if !has_switches(data) {
        return;
    }
    assert_eq!(data["threads"].as_array().map(Vec::len), Some(301));
    let (own, usage) = (sum(&data["total"]["cpu_s"]), data["rusage_s"].as_f64().expect("known"));
    let rest = data["unassigned_s"].as_f64().expect("known");
    assert!(
        own > 0.3 * usage && (own + rest >= usage - 1e-6),
        "{own} s and {rest} s of {usage} s"
    );
}

/// A recording by clocks; `None` if this machine allows none.
fn light(role: &str) -> Option<Value> {
    let data = recorded(role, &["--light"]);
    let unknown = (&data["total"]["runs"], &data["total"]["preempted_s"]);
    assert_eq!(unknown, (&Value::Null, &Value::Null));
    if data["method"] != "clocks" {
        testing::skipped(&format!("no clocks of tasks: {}", data["no_records"]));
        return None;
    }
    Some(data)
}

/// No steal is in it, as in the time by records: the clocks stand still with the CPU.
#[test]
fn clocks_have_all_time_of_64_short_threads_and_the_result_says_what_they_do_not_have() {
    let Some(data) = light("threads 64") else { return };
    let (own, usage) = (sum(&data["total"]["cpu_s"]), data["rusage_s"].as_f64().expect("known"));
    assert!(own > 0.98 * usage, "{own} s of {usage} s");
    assert_eq!(data["no_records"], "not-wanted");
    let slices: f64 = data["slices"]["cpu_s"]
        .as_array()
        .expect("slices")
        .iter()
        .map(sum)
        .sum();
    assert!(
        (slices - own).abs() < 0.01 * own,
        "{slices} s in slices, {own} s in all"
    );
    let text = done(&["placement", "record", "--light", "--", "sleep", "0.1"]).out;
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    assert!(
        text.contains("preemptions and the waits after them are not recorded"),
        "{text}"
    );
}

#[test]
fn beside_clocks_each_move_is_recorded_where_that_is_permitted_and_else_they_are_a_lower_bound() {
    let Some([first, second]) = two_cpus() else {
        return testing::skipped("one CPU");
    };
    let before = sched_getaffinity(None).expect("CPUs");
    pin(first);
    let data = light(&format!("moves {first} {second} 100000"));
    sched_setaffinity(None, &before).expect("as before");
    let Some(data) = data else { return };
    let moves = sum(&data["total"]["migrations"]);
    if data["all_moves"] == true {
        assert!(
            (moves - 100_000.0).abs() < 0.5 || data["missed"]["lost_records"] != 0,
            "{moves}"
        );
    } else {
        assert!(moves <= 100_000.0, "{moves}");
    }
}

#[test]
fn a_process_that_runs_is_recorded_by_clocks_too() {
    let mut process = spinning();
    let pid = process.id().to_string();
    let words = [
        "placement",
        "record",
        "--light",
        "--json",
        "--pid",
        &pid,
        "--for",
        "500ms",
    ];
    let run = done(&words);
    process.kill().expect("ends");
    process.wait().expect("ends");
    let result = valid(&run.out);
    let data = &result["data"];
    if data["method"] != "clocks" {
        return testing::skipped(&format!("no clocks of tasks: {}", data["no_records"]));
    }
    let used = sum(&data["total"]["cpu_s"]);
    assert!(
        used > 0.0 && used < 1.05 * data["seconds"].as_f64().expect("known"),
        "{used} s"
    );
}

fn spinning() -> std::process::Child {
    let words = ["-c", "while :; do :; done"];
    let started = Command::new("sh").args(words).stdout(Stdio::null()).spawn();
    started.expect("starts")
}

#[test]
fn a_process_that_runs_is_recorded_for_a_time_and_left_alone() {
    let mut process = spinning();
    let pid = process.id().to_string();
    let data = json(&["placement", "record", "--json", "--pid", &pid, "--for", "300ms"]);
    let runs_on = process.try_wait().expect("asked").is_none();
    process.kill().expect("ends");
    process.wait().expect("ends");
    let data = &data["data"];
    assert!(runs_on && data["end"] == "time-over", "{}", data["end"]);
    assert!(sum(&data["total"]["cpu_s"]) > 0.0, "{data}");
    assert_eq!(data["target"]["pid"].to_string(), pid);
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Starts a recording with a file, and waits until the file holds time of the program: what is kept first has none yet.
fn begun(file: &Path) -> std::process::Child {
    let output = file.to_str().expect("text");
    let words = [
        "placement",
        "record",
        "--quiet",
        "--output",
        output,
        "--",
        "sh",
        "-c",
        "while :; do :; done",
    ];
    let child = hugewise(&words).stderr(Stdio::null()).spawn().expect("starts");
    let until = Instant::now() + Duration::from_secs(60);
    while !read(file).is_some_and(|kept| sum(&kept["data"]["total"]["cpu_s"]) > 0.0) {
        assert!(Instant::now() < until, "nothing was kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn what_was_recorded_is_there_after_a_kill_and_after_an_interruption() {
    let folder = tempfile::tempdir().expect("a directory");
    for (signal, end, code) in [("-KILL", "so-far", None), ("-INT", "interrupted", Some(130))] {
        let file = folder.path().join("recording.json");
        let mut child = begun(&file);
        sent(signal, &child);
        assert_eq!(child.wait().expect("ends").code(), code);
        let data = read(&file).expect("JSON")["data"].clone();
        assert_eq!(data["end"], end);
        assert!(
            sum(&data["total"]["cpu_s"]) > 0.0 && data["seconds"].as_f64() > Some(0.0),
            "{data}"
        );
        let again = done(&["report", file.to_str().expect("text"), "--format", "text"]);
        assert!(again.out.contains("Share of time on each CPU"), "{}", again.out);
        std::fs::remove_file(&file).expect("removed");
    }
    let result = json(&["placement", "record", "--json", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(result["data"]["end"]["killed"], 9);
}

#[test]
fn recordings_are_compared_and_the_published_tables_are_printed() {
    let folder = tempfile::tempdir().expect("a directory");
    let files = ["a.json", "b.json"].map(|name| folder.path().join(name).to_str().expect("text").to_owned());
    for file in &files {
        done(&[
            "placement",
            "record",
            "--output",
            file,
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done",
        ]);
    }
    let [a, b] = &files;
    let diff = done(&["placement", "diff", a, b]);
    assert!(
        diff.out.contains("runs for each CPU second") && diff.err.contains("one-run"),
        "{} {}",
        diff.out,
        diff.err
    );
    let both = format!("{a},{b}");
    let result = json(&["placement", "diff", &both, &both, "--work", "1,2,3,4", "--json"]);
    assert_eq!(result["data"]["parts"][0]["ratio"]["samples"], 2);
    let published = done(&["placement", "diff", "--published", "ibm-2006"]).out;
    for text in [
        "56.0 to 57.1",
        "46.4",
        "48.4",
        "0.979",
        "0.21",
        "cannot separate",
        "8527",
    ] {
        assert!(published.contains(text), "{text}: {published}");
    }
}

#[test]
fn wrong_words_of_placement_name_the_flag_and_what_to_write() {
    for (args, parts) in [
        (&["placement", "record"][..], &["--pid", "COMMAND"][..]),
        (
            &["placement", "record", "--pid", "4194303"],
            &["--pid 4194303", "no such process"],
        ),
        (&["placement", "record", "--", "/nonexistent"], &["/nonexistent"]),
        (&["placement", "record", "--for", "5", "--", "true"], &["--for"]),
        (&["placement", "diff", "a.json"], &["B.json"]),
        (
            &["placement", "diff", "/etc/passwd", "/etc/passwd"],
            &["/etc/passwd", "placement record --output"],
        ),
        (
            &["placement", "diff", "--published", "ibm-1999"],
            &["--published", "ibm-2006"],
        ),
        (&["placement", "check", "x"], &["`x`", "a PID, or all"]),
        (&["placement", "check", "4194303"], &["4194303"]),
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(2), "{args:?}: {} {}", run.out, run.err);
        parts
            .iter()
            .for_each(|part| assert!(run.err.contains(part), "{args:?}: {part}: {}", run.err));
    }
    let machine = machine("two-node-smt");
    assert!(refused(&["--root", text(&machine), "placement", "record", "--", "true"]).contains("--root"));
}

#[test]
fn a_capture_is_checked_as_its_machine_would_be() {
    let wrong = run(&["--root", text(&machine("pinned-wrongly")), "placement", "check"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.err);
    assert!(
        wrong.out.contains("8 mistakes") && wrong.out.contains("taskset -acp"),
        "{}",
        wrong.out
    );
    let well = done(&["--root", text(&machine("pinned-well")), "placement", "check"]).out;
    assert!(well.contains("Nothing is pinned wrongly"), "{well}");
    let one = run(&["--root", text(&machine("pinned-wrongly")), "placement", "check", "3300"]);
    assert!(one.out.contains("1 mistake"), "{} {}", one.out, one.err);
    let none = refused(&["--root", text(&machine("two-node-smt")), "placement", "check"]);
    assert!(none.contains("captures of older versions"), "{none}");
}

/// A program whose two threads spin on one CPU.
fn two_on_one_cpu() -> Option<std::process::Child> {
    let [first, _] = two_cpus()?;
    let before = sched_getaffinity(None).expect("CPUs");
    pin(first);
    let own = std::env::current_exe().expect("this test");
    let mut program = Command::new(own);
    program
        .args(["--exact", "as_two_that_spin", "--test-threads=2"])
        .env(ROLE, "spin")
        .stdout(Stdio::null());
    let program = program.spawn().expect("starts");
    sched_setaffinity(None, &before).expect("as before");
    std::thread::sleep(Duration::from_millis(300));
    Some(program)
}

#[test]
fn a_planted_mistake_is_found_in_the_capture_of_this_machine_unless_others_use_it_up() {
    let Some(mut program) = two_on_one_cpu() else {
        return testing::skipped("one CPU");
    };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("here.tree");
    let file = file.to_str().expect("text");
    done(&["snapshot", file]);
    let pid = program.id().to_string();
    program.kill().expect("ends");
    program.wait().expect("ends");
    let found = run(&["--root", file, "placement", "check", &pid, "--json"]);
    let result = valid(&found.out);
    let data = &result["data"];
    if data["threads"] == 0 {
        return testing::skipped("others left the program less than a quarter of a CPU");
    }
    let mistakes = data["mistakes"].as_array().expect("mistakes");
    let Some(mistake) = mistakes.first() else {
        return testing::skipped("no core was idle");
    };
    assert_eq!((found.code, &mistake["mistake"]), (Some(1), &"shared-cpu".into()));
    assert_eq!(mistake["pid"].to_string(), pid);
}

/// Two threads on one CPU while another is free for them: the line that fixes it is printed.
#[test]
fn a_planted_mistake_is_found_on_this_machine_unless_others_use_it_up() {
    let Some(mut program) = two_on_one_cpu() else {
        return testing::skipped("one CPU");
    };
    let found = run(&["placement", "check", &program.id().to_string(), "--json"]);
    program.kill().expect("ends");
    program.wait().expect("ends");
    let result = valid(&found.out);
    let mistakes = result["data"]["mistakes"].as_array().expect("mistakes").clone();
    let Some(mistake) = mistakes.first() else {
        return testing::skipped("no core was idle");
    };
    assert_eq!(
        (found.code, &mistake["mistake"]),
        (Some(1), &"shared-cpu".into()),
        "{mistakes:?}"
    );
    // Others may be pinned to that CPU, such as the program of the test before.
    let is_alone = mistake["threads"].as_array().is_some_and(|threads| threads.len() == 2);
    let line = mistake["fixes"][0]["line"].as_str().expect("a line");
    let expected = if is_alone { "taskset -acp " } else { "taskset -cp " };
    assert!(line.starts_with(expected), "{mistake}");
}

#[test]
fn as_two_that_spin() {
    if std::env::var(ROLE).as_deref() != Ok("spin") {
        return;
    }
    let spin = || loop {
        std::hint::black_box(0);
    };
    std::thread::scope(|scope| {
        scope.spawn(spin);
        scope.spawn(spin);
    });
}
