//! Real programs that take turns: who runs when, what is read of them, and that none is left behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chase::counters::program::{Countable, Event};
use model::compare::{Method, Metric};

use super::super::{Error, Keep, Named, Slot, Spec, Wanted, run, simulated};
use super::{Plan, Slices};
use crate::Executor;
use crate::live::{Arm, Counting};
use crate::threads::Threads;
use model::compare::{Ended, Run};

/// Counts in a file of the arm's own, which is empty for a moment whenever it is written.
const COUNTS: &str = "i=0; while :; do i=$((i+1)); [ $((i % 1000)) = 0 ] && echo $i >{dir}/{arm}; done";

fn arms(folder: &Path, line: &str) -> Vec<Arm> {
    let line = line.replace("{dir}", &folder.to_string_lossy());
    let arm = |name: &str| Arm {
        name: name.to_owned(),
        command: ["/bin/sh", "-c", &line].map(OsString::from).to_vec(),
        ..Arm::default()
    };
    ["one", "two"].map(arm).to_vec()
}

fn slices(folder: &Path, line: &str) -> Slices<'static> {
    let metric = format!("count=([0-9]+),from={}/{{arm}}", folder.display());
    let plan = Plan {
        slice: Duration::from_millis(30),
        threads: Threads::All,
        patience: Duration::from_secs(20),
        warm_up: 1,
        seed: 5,
    };
    Slices::new(
        arms(folder, line),
        vec![metric.parse().expect("a metric")],
        Counting::here(&host::Snapshot::take(&host::Source::live())),
        plan,
        &|| false,
    )
}

/// In memory where that is possible: on a busy disk a file that is written anew all the time is empty most of the time.
fn folder(name: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let folder = base.join(format!("hugewise-slices-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn count(folder: &Path, arm: &str) -> u64 {
    let text = std::fs::read_to_string(folder.join(arm)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Processes with the folder's name in their arguments.
fn left(folder: &Path) -> usize {
    let name = folder.to_string_lossy().into_owned();
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    all.filter(|entry| {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(&name)
    })
    .count()
}

#[test]
fn only_the_arm_whose_turn_it_is_runs_and_none_outlives_the_comparison() {
    let folder = folder("turns");
    // The counting shell is a child in a session of its own: stopping the group alone would not reach it.
    let line = format!("setsid sh -c '{COUNTS}' & wait");
    let mut slices = slices(&folder, &line);
    let memory = slices.start_next(0.5, &()).expect("starts");
    assert!(memory.is_some_and(|memory| memory.0 > 100_000));
    slices.start_all(0.5, &()).expect("starts");
    assert_eq!((slices.arms.len(), left(&folder)), (3, 6));
    // As for every further start, in whatever order.
    slices.begin(0).expect("starts anew");
    assert_eq!(left(&folder), 6);
    let counts = || ["one", "two", "one-again"].map(|arm| count(&folder, arm));
    let before = counts();
    let slice = slices.run(1).expect("a slice");
    let after = counts();
    assert!(
        before[1] < after[1] && before[0] == after[0] && before[2] == after[2],
        "{before:?} {after:?}"
    );
    assert!(slice.metrics["count"] > 0.0 && slice.metrics["cpu"] > 0.0 && slice.backing.known().is_some());
    let slice = slices.again(0).expect("a slice");
    assert!(slice.metrics["wall"] >= 0.03 && counts()[2] > after[2] && counts()[0] == after[0]);
    drop(slices);
    assert_eq!(left(&folder), 0);
    std::fs::remove_dir_all(folder).expect("removed");
}

/// Ends the programs after a number of runs.
struct Ends {
    after: usize,
    kept: usize,
    sign: PathBuf,
}

impl Keep for Ends {
    fn keep(&mut self, _: Slot, _: &Run) -> Result<(), Error> {
        self.kept += 1;
        if self.kept == self.after {
            std::fs::write(&self.sign, "").expect("written");
        }
        Ok(())
    }
}

fn spec() -> Spec {
    let named = |name: &str| Named {
        name: name.to_owned(),
        technique: String::new(),
        kind: None,
        place: None,
    };
    let wanted = Wanted {
        name: "count".to_owned(),
        higher: true,
    };
    Spec {
        arms: ["one", "two"].map(named).to_vec(),
        most: 1000,
        per_start: 2,
        ..simulated::spec(Method::Slices, &[], wanted)
    }
}

/// The kernel counts moves between CPUs by itself, so that there is a counter on machines without hardware for it, too.
#[test]
fn every_slice_has_what_was_counted_in_it_or_it_is_said_why_not() {
    let folder = folder("counted");
    let mut slices = slices(&folder, COUNTS);
    slices.start_all(0.5, &()).expect("starts");
    let spec = Spec {
        most: 1,
        per_start: 1,
        ..spec()
    };
    let (compare, _) = run(&spec, Vec::new(), &mut slices, &mut (), &()).expect("a block");
    drop(slices);
    std::fs::remove_dir_all(folder).expect("removed");
    let has_all = |metric: Metric| {
        let values = compare.arms.iter().flat_map(|arm| arm.values(metric.name()));
        values.count() == 3
    };
    assert!(
        has_all(Metric::Instructions) || compare.pmu_note.is_some(),
        "{compare:?}"
    );
    let may_count = Countable::probe(Event::Migrations).is_ok();
    assert_eq!(has_all(Metric::Migrations), may_count, "{compare:?}");
}

#[test]
fn when_a_program_ends_what_was_finished_is_judged_and_that_is_said() {
    let folder = folder("ends");
    let line = COUNTS.replace("while :", "while [ ! -e {dir}/over ]");
    let mut slices = slices(&folder, &line);
    slices.start_all(0.5, &()).expect("starts");
    let mut keep = Ends {
        after: 8,
        kept: 0,
        sign: folder.join("over"),
    };
    let (compare, warnings) = run(&spec(), Vec::new(), &mut slices, &mut keep, &()).expect("two blocks");
    // The first start's two blocks of three slices; the second's first slice ends it, whichever block it stands in.
    assert_eq!((compare.design.ended, compare.design.blocks), (Ended::ProgramEnded, 1));
    assert!((8..=9).contains(&keep.kept), "{}", keep.kept);
    assert!(
        warnings.iter().any(|warning| warning.code == "program-ended"),
        "{warnings:?}"
    );
    drop(slices);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_program_that_ends_or_never_counts_is_no_case_for_slices() {
    let folder = folder("never");
    let error = slices(&folder, "echo over >&2; exit 3")
        .start_next(0.5, &())
        .expect_err("it ends");
    assert!(
        matches!(&error, Error::Gone { status, said, .. } if status == "exit status: 3" && said.contains("over")),
        "{error}"
    );
    let mut silent = slices(&folder, "echo 5 >{dir}/{arm}; exec sleep 60");
    silent.plan.patience = Duration::from_millis(200);
    let error = silent.start_next(0.5, &()).expect_err("it stands still").to_string();
    assert!(error.contains("did not go up"), "{error}");
    std::fs::remove_dir_all(folder).expect("removed");
}
