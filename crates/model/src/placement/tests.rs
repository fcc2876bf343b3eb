//! Sums of recordings.

use std::collections::BTreeMap;

use super::{Cpu, End, Kind, Method, Migrations, Missed, Recording, Slices, Tally, Target};
use crate::Reading;

fn cpu(cpu: u32, node: u32) -> Cpu {
    Cpu {
        cpu,
        core: None,
        package: None,
        node: Some(node),
        steal_s: Reading::Known(0.0),
    }
}

/// 3 s on node 0 and 1 s on node 1, in 4 s.
fn recording(memory: &[(u32, u64)]) -> Recording {
    Recording {
        target: Target {
            pid: 1,
            name: "a".to_owned(),
            command: Vec::new(),
        },
        method: Method::SwitchRecords,
        all_moves: true,
        no_records: None,
        perf_event_paranoid: None,
        seconds: 4.0,
        end: End::Exited(0),
        cpus: vec![cpu(0, 0), cpu(1, 1)],
        total: Tally {
            cpu_s: BTreeMap::from([(0, 3.0), (1, 1.0)]),
            ..Tally::default()
        },
        threads: Vec::new(),
        others: 0,
        memory: memory.iter().copied().collect(),
        slices: Slices::default(),
        missed: Missed::default(),
        rusage_s: None,
        unassigned_s: None,
        recorder_s: 0.0,
    }
}

#[test]
fn locality_is_the_chance_that_time_and_memory_are_on_one_node() {
    let recording = recording(&[(0, 50), (1, 50)]);
    assert_eq!(recording.node_shares(), BTreeMap::from([(0, 0.75), (1, 0.25)]));
    assert_eq!(recording.locality(), Some(0.5));
    assert!((recording.cpus_used() - 1.0).abs() < 1e-9);
}

#[test]
fn memory_that_was_not_read_gives_no_locality() {
    assert_eq!(recording(&[]).locality(), None);
    assert_eq!(recording(&[(0, 9), (1, 0)]).locality(), Some(0.75));
}

#[test]
fn a_sum_knows_only_what_both_know() {
    let one = |runs| Tally {
        migrations: Migrations {
            smt_sibling: 2,
            ..Migrations::default()
        },
        runs,
        queued_s: runs.map(|_| 0.5),
        ..Tally::default()
    };
    let mut sum = one(Some(3));
    sum.add(&one(Some(4)));
    assert_eq!(
        (sum.runs, sum.queued_s, sum.migrations.total()),
        (Some(7), Some(1.0), 4)
    );
    sum.add(&one(None));
    assert_eq!((sum.runs, sum.queued_s), (None, Some(1.0)));
    sum.migrations.add(Kind::OtherNode, 1);
    assert_eq!(sum.migrations.each().map(|(_, count)| count), [6, 0, 0, 0, 1, 0]);
}

/// Two seconds by rusage; what is recorded of them, on so many threads and with so many moves.
#[test]
fn a_recording_is_cut_off_where_more_is_missing_than_its_method_loses() {
    for (method, recorded, threads, moves, is_cut_off) in [
        (Method::SwitchRecords, 1.95, 1, 0, false),
        (Method::SwitchRecords, 1.2, 1, 0, true),
        (Method::SwitchRecords, 1.2, 500, 0, false),
        (Method::Clocks, 1.7, 1, 0, false),
        (Method::Clocks, 0.5, 1, 100, true),
        (Method::Clocks, 0.7, 1, 66_000, false),
        (Method::Clocks, 0.1, 1, 66_000, true),
        (Method::Procfs, 0.0, 1, 0, false),
    ] {
        assert_eq!(
            method.is_cut_off(recorded, 2.0, threads, moves),
            is_cut_off,
            "{method:?}: {recorded} s, {threads} threads, {moves} moves"
        );
    }
}
