//! Real children: their accounts, their setups, and their ends.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use model::PageKind;
use model::compare::Metric;

use super::{Arm, Counting, Live, Server};
use crate::place::Bound;
use crate::simulated::Told;
use crate::technique::{Setup, ThpSwitch};
use crate::{Error, Executor};

pub(super) fn shell(line: &str) -> Arm {
    Arm {
        name: "test".to_owned(),
        command: ["/bin/sh", "-c", line].map(OsString::from).to_vec(),
        ..Arm::default()
    }
}

pub(super) fn live(arm: Arm, metrics: &[&str]) -> Live<'static> {
    Live {
        arms: vec![arm],
        asked: metrics.iter().map(|text| text.parse().expect("a metric")).collect(),
        server: None,
        counting: Counting::default(),
        ignore_failure: false,
        stop: &|| false,
        patience: Duration::from_secs(600),
        around: &(),
        is_told: Cell::default(),
        failed: std::cell::RefCell::default(),
        began: Instant::now(),
        lender: None,
        whole: Cell::default(),
        peaks: BTreeMap::new(),
    }
}

#[test]
fn of_a_program_that_takes_long_somebody_is_told_and_it_ends_all_the_same() {
    for (seconds, expected) in [("0.3", 1), ("0", 0)] {
        let told = Told::default();
        let mut live = Live {
            patience: Duration::from_millis(100),
            around: &told,
            ..live(shell(&format!("sleep {seconds}; exit 0")), &[])
        };
        let run = live.run(0).expect("a run");
        assert!(run.metrics["wall"] >= seconds.parse().expect("a number"));
        assert_eq!(told.still_runs.get(), expected, "sleep {seconds}");
    }
}

#[test]
fn a_run_has_its_times_and_what_it_printed() {
    let run = |_| {
        let program = shell("sleep 0.2; echo rate: 17; echo rate: 18");
        live(program, &["rate=rate: ([0-9]+)"]).run(0).expect("runs")
    };
    // On a busy machine a run may end before it is looked at.
    let run = (0..20).map(run).find(|run| run.backing.known().is_some());
    let run = run.expect("one of 20 was looked at");
    let of = |metric: Metric| run.metrics[metric.name()];
    assert!(of(Metric::Wall) >= 0.2 && of(Metric::Cpu) < 0.2);
    assert_eq!(run.metrics["rate"], 18.0);
    assert!(of(Metric::Memory) > 100_000.0 && of(Metric::Faults) > 10.0);
    let backing = run.backing.known().expect("looked at");
    assert!(backing.share(PageKind::Base).expect("something") > 0.9, "{backing}");
}

#[test]
fn a_failure_says_how_it_ended_and_what_it_said() {
    let error = live(shell("echo no such thing >&2; exit 3"), &[])
        .run(0)
        .expect_err("fails")
        .to_string();
    assert!(
        error.contains("exit status: 3") && error.contains("no such thing"),
        "{error}"
    );
    let mut lenient = live(shell("exit 3"), &[]);
    lenient.ignore_failure = true;
    assert!(lenient.run(0).is_ok());
    let missing = Arm {
        command: vec!["/no/such/program".into()],
        ..shell("")
    };
    let error = live(missing, &[]).run(0).expect_err("not there");
    assert!(matches!(error, Error::Start { .. }), "{error}");
}

#[test]
fn the_child_has_its_switch_variables_and_cpus_and_this_process_has_not() {
    let cpu = rustix::thread::sched_getaffinity(None)
        .ok()
        .and_then(|set| (0..1024).find(|&cpu| set.is_set(cpu)));
    let cpu = cpu.expect("some CPU") as u32;
    let line = "grep -E 'THP_enabled|Cpus_allowed_list' /proc/self/status; echo $HUGEWISE_A-$HUGEWISE_B";
    let arm = Arm {
        setup: Setup {
            env: vec![("HUGEWISE_A".into(), "7".into())],
            thp: ThpSwitch::Off,
            ..Setup::default()
        },
        bound: Bound {
            cpus: vec![cpu],
            ..Bound::default()
        },
        ..shell(line)
    };
    let metrics = [
        "enabled=THP_enabled:\\s*([0-9])",
        "place=Cpus_allowed_list:\\s*([0-9]+)\n",
        "a=([0-9]+)-",
    ];
    let run = live(arm, &metrics).run(0).expect("runs");
    assert_eq!(
        (run.metrics["enabled"], run.metrics["place"], run.metrics["a"]),
        (0.0, f64::from(cpu), 7.0)
    );
    let own = std::fs::read_to_string("/proc/self/status").expect("status");
    assert!(own.contains("THP_enabled:\t1"), "this process keeps its THP");
}

#[test]
fn a_child_that_is_no_longer_wanted_ends_with_its_own_children() {
    let began = Instant::now();
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 5
    };
    let arms = vec![shell("sleep 61.25 & sleep 61.25")];
    let mut live = Live {
        arms,
        asked: Vec::new(),
        server: None,
        counting: Counting::default(),
        ignore_failure: false,
        stop: &stop,
        patience: Duration::from_secs(600),
        around: &(),
        is_told: Cell::default(),
        failed: std::cell::RefCell::default(),
        began,
        lender: None,
        whole: Cell::default(),
        peaks: BTreeMap::new(),
    };
    assert!(matches!(live.run(0), Err(Error::Interrupted)));
    assert!(began.elapsed() < Duration::from_secs(20));
    std::thread::sleep(Duration::from_millis(50));
    let left = std::fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments == b"sleep\x0061.25\0"
    });
    assert!(!left, "a sleep is still there");
}

#[test]
fn a_server_is_waited_for_loaded_and_stopped() {
    let folder = std::env::temp_dir().join(format!("hugewise-server-{}", std::process::id()));
    let place = folder.display();
    let line = format!(
        "mkdir -p {place}; sleep 0.1; : > {place}/ready; trap 'rm -r {place}; exit 0' TERM; while :; do sleep 0.02; done"
    );
    let mut live = live(shell(&line), &["answers=answers: ([0-9]+)"]);
    live.server = Some(Server {
        ready: Some(format!("test -e {place}/ready")),
        is_daemon: false,
        patience: Duration::from_secs(20),
        warm_up: 1,
        loads: 2,
        load: "sleep 0.15; echo answers: 5".to_owned(),
        check: Some(format!("test -e {place}/ready")),
        stop: None,
    });
    let run = live.run(0).expect("runs");
    assert!(run.metrics[Metric::Wall.name()] >= 0.15 && run.metrics["answers"] == 5.0);
    assert!(!folder.exists(), "it was asked to end, and did");
    live.server
        .iter_mut()
        .for_each(|server| server.check = Some("echo two rows differ >&2; false".to_owned()));
    let error = live.run(0).expect_err("a failed check").to_string();
    assert!(
        error.contains("the check after the loads failed") && error.contains("two rows differ"),
        "{error}"
    );
    let _ = std::fs::remove_dir_all(&folder);
}
