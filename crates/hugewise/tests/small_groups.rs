//! In small control groups nothing is killed for want of memory: what does not fit is left out, and what it would take is said.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Run, skipped, told, valid};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// A control group of this test with little memory and no swap.
struct Group {
    directory: PathBuf,
    is_v1: bool,
}

impl Group {
    /// `None` where none can be made; it has said why.
    fn of(mib: u64) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let made = parents().into_iter().find_map(|(parent, is_v1)| {
            let directory = parent.join(format!("hugewise-test-{}-{number}", std::process::id()));
            fs::create_dir(&directory).ok()?;
            let group = Self { directory, is_v1 };
            let (limit, swap) = match is_v1 {
                true => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
                false => ("memory.max", "memory.swap.max"),
            };
            let bytes = (mib * MIB).to_string();
            fs::write(group.directory.join(limit), &bytes).ok()?;
            // Without swap accounting there is no such file.
            let _ = fs::write(group.directory.join(swap), if is_v1 { &bytes } else { "0" });
            Some(group)
        });
        if made.is_none() {
            skipped("no control groups can be made with a limit on memory");
        }
        made
    }

    /// Runs the program in it.
    fn run(&self, words: &[&str]) -> Run {
        let tasks = self.directory.join("cgroup.procs");
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(tasks)
            .arg(env!("CARGO_BIN_EXE_hugewise"))
            .args(words)
            .stdin(Stdio::null())
            .env("HUGEWISE_STATE_DIR", common::NO_STATE);
        told(command.output().expect("the program starts"))
    }

    /// A run of which no process was killed.
    fn lives(&self, words: &[&str]) -> Run {
        let run = self.run(words);
        assert_eq!(
            self.killed(),
            0,
            "{words:?} in {}: {} {}",
            self.directory.display(),
            run.out,
            run.err
        );
        run
    }

    fn killed(&self) -> u64 {
        let file = if self.is_v1 {
            "memory.oom_control"
        } else {
            "memory.events"
        };
        let text = fs::read_to_string(self.directory.join(file)).expect("counts");
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok());
        count.expect("a count")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that were killed take a moment to leave.
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Groups that a group with a limit may be made in: this process's own, and those above it.
fn parents() -> Vec<(PathBuf, bool)> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mount = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_it = words[2] == kind && (option.is_empty() || words[3].split(',').any(|one| one == option));
            is_it.then(|| words[1].to_owned())
        })
    };
    let own = |prefix: &str| {
        groups
            .lines()
            .find_map(|line| line.split_once(prefix).map(|(_, path)| path.to_owned()))
    };
    let mut found = Vec::new();
    for (mount, own, is_v1) in [
        (mount("cgroup", "memory"), own(":memory:"), true),
        (mount("cgroup2", ""), own("0::"), false),
    ] {
        let Some((mount, own)) = mount.zip(own) else { continue };
        let above = Path::new(&own).ancestors();
        found.extend(above.map(|path| (PathBuf::from(format!("{mount}{}", path.display())), is_v1)));
    }
    let may_limit = |(parent, is_v1): &(PathBuf, bool)| {
        let controllers = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
        *is_v1 || controllers.split_whitespace().any(|name| name == "memory")
    };
    found.into_iter().filter(may_limit).collect()
}

fn codes(result: &Value) -> Vec<String> {
    let warnings = result["warnings"].as_array().expect("warnings").iter();
    warnings
        .map(|warning| format!("{}: {}", warning["code"], warning["text"]))
        .collect()
}

#[test]
fn operations_of_the_kernel_fit_or_are_named_with_what_they_take() {
    for mib in [40, 100] {
        let Some(group) = Group::of(mib) else { return };
        let run = group.lives(&["measure", "kernel", "--budget", "1s", "--no-pool", "--json"]);
        assert_eq!(run.code, Some(0), "{mib}M: {}", run.err);
        let result = valid(&run.out);
        let points = result["data"]["points"].as_array().expect("points");
        let why = |point: &Value| point["not_measured"].as_str().unwrap_or_default().to_owned();
        assert!(points.iter().any(|point| why(point).is_empty()), "{mib}M: {points:?}");
        // Workers of one CPU have room in the larger group.
        let is_roomy = mib > 40 && std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
        assert!(
            is_roomy || points.iter().any(|point| why(point).contains("of memory")),
            "{mib}M: {points:?}"
        );
    }
}

#[test]
fn tlbs_are_found_or_what_their_pages_would_take_is_said() {
    // The largest walks take 36M on any machine. What the quick ones take depends on it, as their search has taken some before.
    for (mib, effort, is_short) in [
        (40, None, true),
        (40, Some("--quick"), false),
        (64, Some("--quick"), false),
    ] {
        let Some(group) = Group::of(mib) else { return };
        let words = ["measure", "tlb", "--no-pool", "--json"].into_iter().chain(effort);
        let run = group.lives(&words.collect::<Vec<_>>());
        assert_eq!(run.code, Some(0), "{mib}M: {}", run.err);
        let codes = codes(&valid(&run.out));
        let is_said = |text: &String| text.contains("of memory, and") && text.contains("may be taken");
        assert!(!is_short || codes.iter().any(is_said), "{codes:?}");
    }
}

#[test]
fn latencies_have_room_or_what_they_take_is_said_before_they_start() {
    for mib in [48, 160] {
        let Some(group) = Group::of(mib) else { return };
        let run = group.lives(&["measure", "latency", "--budget", "1s", "--no-pool"]);
        // What clears a large cache has no room in either.
        let is_said = run.code == Some(2) && run.err.contains("what clears the last-level cache");
        assert!(run.code == Some(0) || is_said, "{mib}M: {}", run.err);
    }
}

#[test]
fn a_comparison_and_a_checkup_stay_within_a_small_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.html");
    let log = folder.path().join("log");
    let [report, log] = [&report, &log].map(|path| path.to_str().expect("a plain path"));
    for words in [
        &["checkup", "--quick", "--budget", "5s", "--report", report, "--no-pool"][..],
        &[
            "compare",
            "--runs",
            "1",
            "--arms",
            "base,thp",
            "--no-pool",
            "--log",
            log,
            "--",
            "true",
        ],
    ] {
        let Some(group) = Group::of(48) else { return };
        let run = group.lives(words);
        assert_eq!(run.code, Some(0), "{words:?}: {}", run.err);
    }
}

#[test]
fn a_group_without_room_for_any_measurement_is_told_the_least() {
    let Some(group) = Group::of(20) else { return };
    for what in ["kernel", "tlb", "latency"] {
        let run = group.lives(&["measure", what]);
        assert_eq!(run.code, Some(2), "{what}: {}", run.err);
        assert!(
            run.err.contains("the least that a measurement takes is 32M"),
            "{}",
            run.err
        );
    }
}
