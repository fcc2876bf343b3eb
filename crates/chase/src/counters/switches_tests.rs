//! Records of made bytes, and of this thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::{Record, Switches, What, parse};

fn bytes(body: &[u32], pid: u32, tid: u32, at: u64, cpu: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = body.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend([pid, tid].iter().flat_map(|word| word.to_ne_bytes()));
    bytes.extend(at.to_ne_bytes());
    bytes.extend([cpu, 0].iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

#[test]
fn each_kind_of_record_is_read_and_a_short_one_is_none() {
    let what = |kind, misc, body: &[u32]| parse(kind, misc, &bytes(body, 7, 8, 99, 3)).map(|record| record.what);
    assert_eq!(what(14, 0, &[]), Some(What::In));
    assert_eq!(what(14, 1 << 13, &[]), Some(What::Out { preempted: false }));
    assert_eq!(what(14, 3 << 13, &[]), Some(What::Out { preempted: true }));
    assert_eq!(what(2, 0, &[1, 0, 5, 0]), Some(What::Lost(5)));
    let name = [7, 8, u32::from_ne_bytes(*b"abc\0"), 0];
    assert_eq!(what(3, 0, &name), Some(What::Name("abc".to_owned())));
    assert_eq!(what(9, 0, &[]), None);
    assert_eq!(parse(14, 0, &[0; 23]), None);
    let forked = parse(7, 0, &bytes(&[20, 7, 21, 8, 99, 0], 7, 8, 99, 3));
    let new = Record {
        at: 99,
        cpu: 3,
        pid: 20,
        tid: 21,
        what: What::Fork,
    };
    assert_eq!(forked, Some(new));
}

/// Each move stops the thread on one CPU and continues it on the other.
#[test]
fn each_move_of_a_thread_between_two_cpus_is_recorded() {
    let all = sched_getaffinity(None).expect("the CPUs of this thread");
    let cpus: Vec<u32> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| all.is_set(cpu))
        .map(|cpu| cpu as u32)
        .collect();
    let [first, second, ..] = cpus[..] else {
        return testing::skipped("one CPU");
    };
    let moved = std::thread::spawn(move || {
        let to = |cpu: u32| {
            let mut set = CpuSet::new();
            set.set(cpu as usize);
            sched_setaffinity(None, &set).expect("moved");
        };
        to(first);
        let mut switches = Switches::of(0, &cpus)?;
        (0..100).for_each(|turn| to(if turn % 2 == 0 { second } else { first }));
        let mut records = Vec::new();
        switches.drain(&mut records);
        Ok::<_, std::io::Error>((records, switches.lost()))
    });
    let (mut records, lost) = match moved.join().expect("no panic") {
        Ok(moved) => moved,
        Err(error) => return testing::skipped(&format!("no switch records: {error}")),
    };
    records.sort_by_key(|record| record.at);
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
