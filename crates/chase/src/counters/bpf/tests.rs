//! What the programs record of this thread, and how records are read.

use std::collections::HashMap;
use std::process::Command;

use model::placement::NoBpf;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::{Traced, decode};
use crate::counters::switches::{Record, What};

/// `None` where this machine does not allow it.
fn traced() -> Option<Traced> {
    match Traced::new() {
        Ok(traced) => Some(traced),
        Err(NoBpf::Failed(error)) => panic!("{error}"),
        Err(why) => {
            testing::skipped(&format!("no BPF: {why:?}"));
            None
        }
    }
}

/// What was recorded of a new thread and of all that it started, in the order of time.
fn of(work: impl FnOnce(&Traced) + Send + 'static) -> Option<Vec<Record>> {
    let mut traced = traced()?;
    let done = std::thread::spawn(move || {
        work(&traced);
        traced
    });
    traced = done.join().expect("no panic");
    // A thread can be joined before it leaves its CPU for the last time.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let mut records = Vec::new();
    traced.drain(&mut records);
    assert_eq!((traced.lost(), traced.unfollowed()), (0, 0));
    records.sort_by_key(|record| record.at);
    Some(records)
}

#[test]
fn each_move_of_a_thread_between_two_cpus_is_recorded() {
    let all = sched_getaffinity(None).expect("the CPUs of this thread");
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
        return testing::skipped("one CPU");
    };
    let to = |cpu: usize| {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).expect("moved");
    };
    let records = of(move |traced| {
        to(first);
        traced.follow_own().expect("followed");
        (0..100).for_each(|turn| to(if turn % 2 == 0 { second } else { first }));
    });
    let Some(records) = records else { return };
    let gained = records.iter().filter(|record| record.what == What::In);
    let went: Vec<u32> = [first as u32]
        .into_iter()
        .chain(gained.map(|record| record.cpu))
        .collect();
    let moves = went.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(moves, 100, "{records:?}");
    // It leaves its CPU each time before it gets one again, and ends there.
    let tid = records[0].tid;
    assert!(records.iter().all(|record| record.tid == tid));
    let is_in = |record: &&Record| record.what == What::In;
    assert!(
        records
            .chunks(2)
            .all(|pair| !is_in(&&pair[0]) && pair.get(1).is_none_or(|next| is_in(&next)))
    );
    assert_eq!(records.last().map(|record| &record.what), Some(&What::Exit));
}

/// `sh` executes `sleep` under its own number; the shell's child has a number and an end of its own.
#[test]
fn what_a_thread_starts_is_recorded_with_its_names_and_ends() {
    let records = of(|traced| {
        traced.follow_own().expect("followed");
        let ended = Command::new("sh").args(["-c", "(exit 3); exec sleep 0.01"]).status();
        assert!(ended.expect("starts").success());
    });
    let Some(records) = records else { return };
    let started: Vec<u32> = records
        .iter()
        .filter(|record| record.what == What::Fork)
        .map(|record| record.tid)
        .collect();
    assert_eq!(started.len(), 2, "{records:?}");
    let of_first: Vec<&What> = records
        .iter()
        .filter(|record| record.tid == started[0])
        .map(|record| &record.what)
        .collect();
    let names: Vec<&str> = of_first
        .iter()
        .filter_map(|what| match what {
            What::Name(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["sh", "sleep"]);
    for tid in started {
        let last = records.iter().rfind(|record| record.tid == tid);
        assert_eq!(last.map(|record| &record.what), Some(&What::Exit));
    }
}

fn bytes(at: u64, words: [u32; 4]) -> Vec<u8> {
    let mut bytes = at.to_ne_bytes().to_vec();
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

#[test]
fn one_record_is_what_both_threads_of_a_switch_did_and_a_short_one_is_nothing() {
    let mut pids = HashMap::from([(5, 4), (6, 4)]);
    let mut of = |bytes: &[u8]| {
        let mut records = Vec::new();
        let _ = decode(bytes, &mut pids, &mut records);
        let of = |record: Record| (record.pid, record.tid, record.what);
        records.into_iter().map(of).collect::<Vec<_>>()
    };
    let out = What::Out { preempted: true };
    assert_eq!(of(&bytes(9, [5, 6, 1, 1 | 2 | 4])), [(4, 5, out), (4, 6, What::In)]);
    assert_eq!(of(&bytes(9, [7, 4, 1, 16])), [(4, 7, What::Fork)]);
    assert_eq!(of(&bytes(9, [7, 0, 1, 1 | 8])), [(4, 7, What::Exit)]);
    // Another thread of that number.
    assert_eq!(of(&bytes(9, [0, 7, 1, 2])), [(7, 7, What::In)]);
    let named = [bytes(9, [5, 0, 1, 32]), b"abc\0defghijklmno".to_vec()].concat();
    assert_eq!(of(&named), [(4, 5, What::Name("abc".to_owned()))]);
    let executed = [(4, 6, What::Exit), (4, 4, What::Fork), (4, 4, What::In)];
    assert_eq!(of(&bytes(9, [6, 4, 1, 64])), executed);
    assert_eq!(of(&bytes(9, [5, 6, 1, 3])[..23]), []);
}
