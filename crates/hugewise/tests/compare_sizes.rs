//! Arms of THP sizes, live: a run is on pages of its size alone, and the machine's switches are as before after every kind of end.
//!
//! While such a run lasts, every program has that size: nothing else is tested in this file.

mod common;

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{guardian_of, hugewise, journals, refused, sent, skipped, told, valid, words};
use model::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const THP: &str = "/sys/kernel/mm/transparent_hugepage";
/// Copies through a buffer of 64 MiB, which it holds from its first moment to its last.
const HOLDS: [&str; 5] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=120"];

/// The tests here take turns at the switches.
static TURN: Mutex<()> = Mutex::new(());

/// The switches of all sizes, if this test may turn them: only root may, where the kernel has them.
struct Switches {
    before: Vec<String>,
    state: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Switches {
    fn may_turn() -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let of_64k = format!("{THP}/hugepages-64kB/enabled");
        if !Path::new(&of_64k).exists() {
            skipped("this kernel has no switch for THP of 64K");
            return None;
        }
        if std::fs::OpenOptions::new().write(true).open(of_64k).is_err() {
            skipped("not root");
            return None;
        }
        let state = tempfile::tempdir().expect("a directory");
        let before = now();
        Some(Self {
            before,
            state,
            _turn: turn,
        })
    }

    fn compare(&self, options: &str) -> std::process::Command {
        let mut command = hugewise(&words(&format!("compare {options}"), &[&["--"], &HOLDS[..]].concat()));
        command.env("HUGEWISE_STATE_DIR", self.state.path());
        command
    }

    /// A comparison at a moment when a run of 64K lasts.
    fn turned(&self) -> Child {
        let mut command = self.compare("--arms base,mthp-64K --runs 300 --warm-up 0 --json");
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let began = Instant::now();
        while !now().contains(&"64 always".to_owned()) {
            assert!(began.elapsed() < Duration::from_secs(60), "no run of 64K: {:?}", now());
            assert!(child.try_wait().expect("a child").is_none(), "it ended before");
            std::thread::sleep(Duration::from_millis(2));
        }
        child
    }

    fn assert_as_before(&self) {
        assert_eq!(now(), self.before);
        assert_eq!(journals(self.state.path()), 0);
    }
}

/// Every size in kB with what its switch says.
fn now() -> Vec<String> {
    let names = std::fs::read_dir(THP).into_iter().flatten().flatten();
    let mut all: Vec<String> = names
        .filter_map(|name| {
            let text = std::fs::read_to_string(name.path().join("enabled")).ok()?;
            let name = name.file_name().into_string().ok()?;
            let size = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.to_owned();
            let chosen = text.split_once('[')?.1.split_once(']')?.0;
            Some(format!("{size} {chosen}"))
        })
        .collect();
    all.sort();
    all
}

/// Faults that got no page of 64K, since the start of the machine.
fn refused_pages() -> u64 {
    let text = std::fs::read_to_string(format!("{THP}/hugepages-64kB/stats/anon_fault_fallback"));
    text.unwrap_or_default().trim().parse().unwrap_or(0)
}

fn of_kind<'a>(arm: &'a Value, kind: &str) -> Vec<&'a Value> {
    let runs = arm["runs"].as_array().expect("runs");
    runs.iter().map(|run| &run["backing"][kind]).collect()
}

#[test]
fn an_arm_of_a_size_is_on_pages_of_that_size_and_the_switches_are_as_before() {
    let Some(switches) = Switches::may_turn() else { return };
    let refused = refused_pages();
    let run = told(
        switches
            .compare("--arms base,mthp-64K --runs 2 --warm-up 0 --json")
            .output()
            .expect("runs"),
    );
    switches.assert_as_before();
    assert_eq!(run.code, Some(0), "{}", run.err);
    let result = valid(&run.out);
    let [base, sized] = [0, 1].map(|at| &result["data"]["arms"][at]);
    assert_eq!(
        (sized["name"].as_str(), sized["kind"].as_str()),
        (Some("mthp-64K"), Some("mthp-64K"))
    );
    let technique = sized["technique"].as_str().expect("words");
    assert!(technique.contains("for every program"), "{technique}");
    assert!(run.err.contains("THP of 64K"), "{}", run.err);
    assert_eq!(base["took_effect"], true, "{base}");
    assert!(of_kind(base, "mthp-64K").iter().all(|bytes| bytes.is_null()), "{base}");
    if refused_pages() > refused + 50 {
        return skipped("no huge page to be had: memory has too few free pieces of 64K");
    }
    assert_eq!(sized["took_effect"], true, "{sized}");
    let most = of_kind(sized, "mthp-64K").into_iter().filter_map(Value::as_u64).max();
    assert!(most.is_some_and(|bytes| bytes > Bytes::mib(48).0), "{sized}");
}

#[test]
fn another_comparison_of_sizes_is_refused_meanwhile_and_ctrl_c_puts_the_switches_back() {
    let Some(switches) = Switches::may_turn() else { return };
    let first = switches.turned();
    let mut second = switches.compare("--arms base,mthp-64K --runs 1 --warm-up 0");
    let second = told(second.output().expect("runs"));
    sent("-INT", &first);
    assert_eq!(told(first.wait_with_output().expect("ends")).code, Some(130));
    assert_eq!(second.code, Some(2), "{}", second.err);
    assert!(
        second.err.contains("--arms mthp-64K: another hugewise run holds"),
        "{}",
        second.err
    );
    switches.assert_as_before();
}

#[test]
fn after_a_kill_its_guardian_puts_the_switches_back() {
    let Some(switches) = Switches::may_turn() else { return };
    let mut child = switches.turned();
    child.kill().expect("killed");
    child.wait().expect("ended");
    let until = Instant::now() + Duration::from_secs(30);
    while now() != switches.before || journals(switches.state.path()) > 0 {
        assert!(Instant::now() < until, "{:?}", now());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn after_a_kill_of_both_the_next_command_puts_the_switches_back_and_says_so() {
    let Some(switches) = Switches::may_turn() else { return };
    let mut child = switches.turned();
    let guardian = guardian_of(child.id()).expect("it has one while switches are turned");
    // Neither may act on the end of the other.
    for process in [guardian, Pid::from_child(&child)] {
        kill_process(process, Signal::STOP).expect("stopped");
    }
    for process in [guardian, Pid::from_child(&child)] {
        kill_process(process, Signal::KILL).expect("killed");
    }
    child.wait().expect("ended");
    let mut next = hugewise(&["schema"]);
    let next = told(
        next.env("HUGEWISE_STATE_DIR", switches.state.path())
            .output()
            .expect("runs"),
    );
    switches.assert_as_before();
    let who = format!("hugewise (process {}) ended without giving back: THP of ", child.id());
    // It may have been killed between two of its own steps.
    assert!(next.err.is_empty() || next.err.contains(&who), "{}", next.err);
}

#[test]
fn what_cannot_be_an_arm_of_a_size_is_refused_before_anything_runs() {
    for (line, part) in [
        ("--arms base,mthp-3K", "mthp-SIZE such as mthp-64K"),
        ("--arms base,mthp-1G", "--arms mthp-1G: this kernel has no"),
        ("--arms base,mthp-64K --live 1", "base,thp"),
    ] {
        let command = if line.contains("--live") {
            &[][..]
        } else {
            &["--", "/bin/true"]
        };
        let error = refused(&words(&format!("compare {line}"), command));
        assert!(error.contains(part), "{line}: {error}");
    }
    if Path::new(&format!("{THP}/hugepages-64kB/enabled")).exists() {
        let line = "compare --arms base,mthp-64K --design slices --metric ops=([0-9]+),from=/tmp/{arm}";
        let error = refused(&words(line, &["--", "/bin/true"]));
        assert!(
            error.contains("--design slices: the switches") && error.contains("--design runs"),
            "{error}"
        );
    }
}
