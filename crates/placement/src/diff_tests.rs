//! Differences between made recordings.

use std::collections::BTreeMap;

use model::placement::{Caveat, End, Method, Missed, Quantity, Recording, Slices, Tally, Target};
use model::{Envelope, Machine, Reading, Tool};

use super::{Runs, diff};

fn recording(seconds: f64, cpu: f64) -> Recording {
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
        seconds,
        end: End::Exited(0),
        cpus: Vec::new(),
        total: Tally {
            cpu_s: BTreeMap::from([(0, cpu)]),
            ..Tally::default()
        },
        threads: Vec::new(),
        others: 0,
        memory: BTreeMap::new(),
        slices: Slices::default(),
        missed: Missed::default(),
        rusage_s: None,
        unassigned_s: None,
        recorder_s: 0.0,
    }
}

fn runs(recordings: Vec<Recording>, work: &[f64]) -> Runs {
    let machine = Machine {
        cpu: Reading::absent(""),
        kernel: Reading::absent(""),
        hypervisor: Reading::absent(""),
        cpus: Reading::absent(""),
        nodes: Reading::absent(""),
        memory: Reading::absent(""),
        base_page: Reading::absent(""),
    };
    let envelope = |data| Envelope {
        schema: String::new(),
        tool: Tool {
            name: String::new(),
            version: String::new(),
        },
        machine: machine.clone(),
        command: Vec::new(),
        seed: 0,
        started: String::new(),
        warnings: Vec::new(),
        data,
    };
    let named = recordings.into_iter().map(|data| ("a.json".to_owned(), envelope(data)));
    Runs {
        recordings: named.collect(),
        work: work.to_vec(),
    }
}

fn ratio(diff: &model::placement::Diff, what: Quantity) -> Option<(f64, u64)> {
    let part = diff.parts.iter().find(|part| part.what == what)?;
    part.ratio.map(|ratio| (ratio.median, ratio.samples))
}

#[test]
fn throughput_is_cpu_share_times_efficiency() {
    let before = runs(vec![recording(10.0, 20.0)], &[1000.0]);
    let after = runs(vec![recording(10.0, 16.0)], &[1200.0]);
    let found = diff(&[before, after]);
    let [all, share, each] = [Quantity::Throughput, Quantity::CpuShare, Quantity::Efficiency]
        .map(|what| ratio(&found, what).expect("known").0);
    assert!((all - 1.2).abs() < 1e-9 && (share - 0.8).abs() < 1e-9 && (all - share * each).abs() < 1e-9);
    assert_eq!(found.caveats, [Caveat::OneRun, Caveat::NotSeparated]);
}

#[test]
fn repeated_runs_have_an_interval_and_unknown_work_is_said() {
    let side = |seconds: [f64; 3]| runs(seconds.iter().map(|&seconds| recording(seconds, 2.0)).collect(), &[]);
    let found = diff(&[side([10.0, 10.1, 9.9]), side([5.0, 5.1, 4.9])]);
    let (faster, samples) = ratio(&found, Quantity::Throughput).expect("known");
    assert!((faster - 2.0).abs() < 0.05 && samples == 3);
    assert_eq!(found.caveats, [Caveat::SameWork, Caveat::NotSeparated]);
    let mut cut = recording(5.0, 2.0);
    cut.end = End::TimeOver;
    let found = diff(&[runs(vec![recording(5.0, 2.0)], &[]), runs(vec![cut], &[])]);
    assert_eq!(
        found.caveats,
        [Caveat::OneRun, Caveat::UnknownWork, Caveat::NotSeparated]
    );
    assert_eq!(ratio(&found, Quantity::Locality), None);
}
