//! What is said of recordings that lack something.

use host::{Snapshot, Source};
use model::placement::{End, Method, Missed, NoRecords, Recording, Target};

use super::{method, warnings};

pub(super) fn recording(no_records: Option<NoRecords>, level: Option<i64>) -> Recording {
    let is_whole = no_records.is_none();
    Recording {
        target: Target {
            pid: 1,
            name: "a".to_owned(),
            command: Vec::new(),
        },
        method: if is_whole {
            Method::SwitchRecords
        } else {
            Method::Procfs
        },
        all_moves: is_whole,
        no_records,
        perf_event_paranoid: level,
        seconds: 1.0,
        end: End::Exited(0),
        cpus: Vec::new(),
        total: model::placement::Tally::default(),
        threads: Vec::new(),
        others: 0,
        memory: std::collections::BTreeMap::new(),
        slices: model::placement::Slices::default(),
        missed: Missed::default(),
        rusage_s: None,
        unassigned_s: None,
        recorder_s: 0.0,
    }
}

#[test]
fn time_that_was_not_recorded_is_no_time_of_zero() {
    let cut_off = Recording {
        rusage_s: Some(1.0),
        unassigned_s: Some(1.0),
        ..recording(None, None)
    };
    let text = super::headline(&cut_off);
    assert!(
        text.contains("used 1 s of CPU time") && text.contains("of which 0 s are recorded"),
        "{text}"
    );
    assert!(text.contains("at least 0 times") && !text.contains("0 CPUs"), "{text}");
    let how = method(&cut_off);
    assert!(
        how.contains(super::CUT_OFF) && !how.contains("no record was lost"),
        "{how}"
    );
    assert!(!how.contains('%'), "{how}");
    let nowhere = Snapshot::take(&Source::from_tree("made", host::Tree::default()));
    let codes = |recording: &Recording| -> Vec<String> {
        warnings(recording, &nowhere)
            .into_iter()
            .map(|warning| warning.code.to_string())
            .collect()
    };
    assert_eq!(codes(&cut_off), ["recording-cut-off"]);
    let clocks = Recording {
        method: Method::Clocks,
        ..cut_off.clone()
    };
    assert_eq!(codes(&clocks), ["recording-cut-off"]);
    // The ends of its processes are as long as they usually are.
    let mut whole = cut_off;
    whole.total.cpu_s.insert(0, 0.98);
    assert_eq!(codes(&whole), [""; 0]);
}

fn warning(recording: &Recording) -> Option<String> {
    let nowhere = Snapshot::take(&Source::from_tree("made", host::Tree::default()));
    let all = warnings(recording, &nowhere);
    let found = all.into_iter().find(|warning| warning.code == "no-switch-records");
    found.map(|warning| warning.text)
}

#[test]
fn at_each_level_of_perf_event_paranoid_what_is_lost_and_what_to_do_is_said() {
    for level in 0..=4 {
        // Records came, or --light was wanted: nothing to say.
        for none in [None, Some(NoRecords::NotWanted)] {
            assert_eq!(warning(&recording(none, Some(level))), None);
        }
        let text = warning(&recording(Some(NoRecords::NotPermitted), Some(level))).expect("a warning");
        assert!(
            text.contains(&format!("kernel.perf_event_paranoid is {level}")),
            "{text}"
        );
        let [lower, filter] = ["lower it to 2", "filter of system calls"].map(|part| text.contains(part));
        assert_eq!([lower, filter], [level > 2, level <= 2], "{text}");
        for lost in ["lower bound", "preemptions", "threads that lived less than 10 ms"] {
            assert!(text.contains(lost), "{lost}: {text}");
        }
    }
}

#[test]
fn of_clocks_it_is_said_what_they_count_and_what_they_do_not() {
    let mut recording = Recording {
        method: Method::Clocks,
        all_moves: true,
        ..recording(Some(NoRecords::NotWanted), Some(2))
    };
    let text = method(&recording);
    for part in [
        "TASK_CLOCK",
        "Each move was recorded",
        "preemptions",
        "10 times a second",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    recording.all_moves = false;
    recording.missed.migrations = Some(3);
    let text = method(&recording);
    assert!(text.contains("by the kernel's own count 3 moves more"), "{text}");
    assert!(super::headline(&recording).contains("at least"));
}

#[test]
fn each_reason_for_having_no_records_has_its_own_remedy() {
    for (reason, remedy) in [
        (NoRecords::NotPermitted, "perf_event_paranoid to 2"),
        (NoRecords::OtherUser, "run as that user"),
        (NoRecords::NoLockedMemory, "kernel.perf_event_mlock_kb"),
        (NoRecords::NoDescriptors, "ulimit -n"),
        (NoRecords::NotBuilt, "no perf events"),
        (NoRecords::Failed("of that".to_owned()), "of that"),
    ] {
        let recording = recording(Some(reason), None);
        let text = warning(&recording).expect("a warning");
        assert!(
            text.contains(remedy) && method(&recording).contains(remedy),
            "{remedy}: {text}"
        );
    }
}
