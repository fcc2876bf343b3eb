//! Records of made bytes, and of this thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::{Record, Recorded, Switches, What, parse};
use crate::counters::rings::{free, prepare};

fn bytes(body: &[u32], pid: u32, tid: u32, at: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = body.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend([pid, tid].iter().flat_map(|word| word.to_ne_bytes()));
    bytes.extend(at.to_ne_bytes());
    bytes
}

#[test]
fn each_kind_of_record_is_read_and_a_short_one_is_none() {
    let what = |kind, misc, body: &[u32]| parse(kind, misc, &bytes(body, 7, 8, 99), 3).map(|record| record.what);
    assert_eq!(what(14, 0, &[]), Some(What::In));
    assert_eq!(what(14, 1 << 13, &[]), Some(What::Out { preempted: false }));
    assert_eq!(what(14, 3 << 13, &[]), Some(What::Out { preempted: true }));
    assert_eq!(what(2, 0, &[1, 0, 5, 0]), Some(What::Lost(5)));
    let name = [7, 8, u32::from_ne_bytes(*b"abc\0"), 0];
    assert_eq!(what(3, 0, &name), Some(What::Name("abc".to_owned())));
    assert_eq!(what(9, 0, &[]), Some(What::Moved));
    assert_eq!(what(5, 0, &[0; 6]), Some(What::Throttled));
    assert_eq!(what(10, 0, &[]), None);
    assert_eq!(parse(14, 0, &[0; 15], 3), None);
    let forked = parse(7, 0, &bytes(&[20, 7, 21, 8, 99, 0], 7, 8, 99), 3);
    let new = Record {
        at: 99,
        cpu: 3,
        pid: 20,
        tid: 21,
        what: What::Fork,
    };
    assert_eq!(forked, Some(new));
}

/// Those that this thread may run on.
fn cpus() -> Vec<u32> {
    let all = sched_getaffinity(None).expect("the CPUs of this thread");
    let set = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu));
    set.map(|cpu| cpu as u32).collect()
}

/// Moves this thread.
fn to(cpu: u32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).expect("moved");
}

/// What is recorded of a thread that moves 100 times between two CPUs, the CPU that it begins on, and how many records were lost;
/// `None` if this machine does not allow that.
fn of_a_thread_that_moves(what: Recorded) -> Option<(Vec<Record>, u32, u64)> {
    let cpus = cpus();
    let [first, second, ..] = cpus[..] else {
        testing::skipped("one CPU");
        return None;
    };
    let moved = std::thread::spawn(move || {
        to(first);
        let mut switches = Switches::of(0, &cpus, what)?;
        (0..100).for_each(|turn| to(if turn % 2 == 0 { second } else { first }));
        let mut records = Vec::new();
        switches.drain(&mut records);
        Ok::<_, std::io::Error>((records, switches.lost()))
    });
    match moved.join().expect("no panic") {
        Ok((mut records, lost)) => {
            records.sort_by_key(|record| record.at);
            Some((records, first, lost))
        }
        Err(error) => {
            testing::skipped(&format!("no records: {error}"));
            None
        }
    }
}

/// Each move stops the thread on one CPU and continues it on the other.
#[test]
fn each_move_of_a_thread_between_two_cpus_is_recorded() {
    let Some((records, first, lost)) = of_a_thread_that_moves(Recorded::Switches) else {
        return;
    };
    let gained: Vec<u32> = records
        .iter()
        .filter(|record| record.what == What::In)
        .map(|record| record.cpu)
        .collect();
    let moves = [&[first], &gained[..]]
        .concat()
        .windows(2)
        .filter(|pair| pair[0] != pair[1])
        .count();
    assert_eq!((moves, lost), (100, 0), "{records:?}");
}

/// Without the switches between them, each move is one record, on the CPU that the thread moved to.
#[test]
fn moves_alone_are_recorded_where_they_go_to() {
    let Some((records, first, lost)) = of_a_thread_that_moves(Recorded::Moves) else {
        return;
    };
    let went: Vec<bool> = records
        .iter()
        .filter(|record| record.what == What::Moved)
        .map(|record| record.cpu == first)
        .collect();
    let expected: Vec<bool> = (0..100).map(|turn| turn % 2 == 1).collect();
    assert_eq!((went, lost), (expected, 0), "{records:?}");
}

/// A ring is kept for the next program, which must not find what the one before left unread in it. A second one at once has its own.
#[test]
fn kept_rings_hold_nothing_of_the_program_before() {
    let cpus = cpus();
    let of_thread = std::thread::spawn(move || {
        let round = || cpus.iter().copied().for_each(to);
        let moves = |switches: &mut Switches| {
            let mut records = Vec::new();
            switches.drain(&mut records);
            records.iter().filter(|record| record.what == What::Moved).count()
        };
        prepare(&cpus);
        prepare(&cpus);
        let (kept, mut found) = (free(), Vec::new());
        for _ in 0..3 {
            let unread = Switches::of(0, &cpus, Recorded::Moves)?;
            let mut second = Switches::of(0, &cpus, Recorded::Moves)?;
            found.push(free());
            round();
            let seen = moves(&mut second);
            drop(second);
            found.push(free());
            drop(unread);
            found.push(free());
            let mut next = Switches::of(0, &cpus, Recorded::Moves)?;
            found.push(moves(&mut next));
            round();
            // The first round began somewhere, this one where that ended.
            found.push(usize::from(moves(&mut next).abs_diff(seen) <= 1));
        }
        Ok::<_, std::io::Error>((kept == cpus.len(), found == [0, 0, kept, 0, 1].repeat(3), found))
    });
    match of_thread.join().expect("no panic") {
        Ok((is_one_each, is_right, found)) => assert!(is_one_each && is_right, "{found:?}"),
        Err(error) => testing::skipped(&format!("no records: {error}")),
    }
}
