//! Accounts of made records.

use chase::counters::switches::{Record, What};

use super::{Account, Distances, Ledger, MOST_ENDED, SHOWN};

const BEGAN: u64 = 1_000;

fn record(at: u64, cpu: u32, tid: u32, what: What) -> Record {
    Record {
        at: BEGAN + at,
        cpu,
        pid: 7,
        tid,
        what,
    }
}

fn out(preempted: bool) -> What {
    What::Out { preempted }
}

fn total(records: &[Record], until: u64) -> (Account, Ledger) {
    let mut ledger = Ledger::new(BEGAN, Distances::default());
    ledger.add(7, 7, "a");
    records.iter().for_each(|record| ledger.take(record));
    (ledger.closed(BEGAN + until, |_, _| None).0, ledger)
}

fn time(account: &Account) -> Vec<(u32, u64)> {
    account.cpu.iter().map(|(&cpu, &ns)| (cpu, ns)).collect()
}

#[test]
fn a_thread_that_first_leaves_a_cpu_had_it_from_the_beginning_and_the_last_stretch_counts_to_the_end() {
    let records = [
        record(10, 0, 7, out(true)),
        record(14, 1, 7, What::In),
        record(20, 1, 7, out(false)),
        record(30, 0, 7, What::In),
    ];
    let (sum, ledger) = total(&records, 35);
    assert_eq!(time(&sum), [(0, 15), (1, 6)]);
    assert_eq!((sum.moves(), sum.runs, sum.preemptions, sum.preempted), (2, 2, 1, 4));
    assert_eq!(ledger.unpaired, 0);
    let (sum, _) = total(&[record(10, 0, 7, What::In)], 15);
    assert_eq!(time(&sum), [(0, 5)], "it waited until then");
}

#[test]
fn what_came_before_the_beginning_does_not_count() {
    let mut early = record(0, 1, 7, What::In);
    early.at = BEGAN - 5;
    let (sum, _) = total(&[early, record(4, 1, 7, out(false))], 10);
    assert_eq!((time(&sum), sum.moves()), (vec![(1, 4)], 0));
}

#[test]
fn a_child_has_an_account_of_its_own_and_ends_with_its_last_stretch() {
    let records = [
        record(2, 0, 8, What::Fork),
        record(3, 1, 8, What::In),
        record(5, 1, 8, What::Name("child".to_owned())),
        record(9, 1, 8, What::Exit),
        record(10, 0, 7, out(false)),
    ];
    let (sum, ledger) = total(&records, 20);
    assert_eq!((time(&sum), sum.moves()), (vec![(0, 10), (1, 6)], 0));
    let (_, threads, others, _) = ledger.closed(BEGAN + 20, |_, _| None);
    let names: Vec<(u32, &str)> = threads
        .iter()
        .map(|thread| (thread.tid, thread.name.as_str()))
        .collect();
    assert_eq!((names, others), (vec![(7, "a"), (8, "child")], 0));
}

/// Its record of leaving is lost: the time is not known, the move is.
#[test]
fn a_lost_record_makes_no_time_up() {
    let records = [
        record(5, 0, 7, out(false)),
        record(10, 0, 7, What::In),
        record(20, 1, 7, What::In),
        record(25, 1, 7, out(false)),
    ];
    let (sum, ledger) = total(&records, 30);
    assert_eq!((time(&sum), sum.moves()), (vec![(0, 5), (1, 5)], 1));
    assert_eq!(ledger.unpaired, 1);
}

#[test]
fn a_thread_that_does_nothing_but_run_counts_where_it_is_seen() {
    let mut ledger = Ledger::new(BEGAN, Distances::default());
    ledger.add(7, 7, "a");
    ledger.add(7, 8, "b");
    let (sum, ..) = ledger.closed(BEGAN + 50, |_, tid| (tid == 8).then_some(3));
    assert_eq!(time(&sum), [(3, 50)]);
}

#[test]
fn many_short_threads_are_summed_up_and_none_is_lost() {
    let mut ledger = Ledger::new(BEGAN, Distances::default());
    let count = MOST_ENDED as u64 * 3;
    for turn in 0..count {
        let (at, tid) = (turn * 10, 100 + turn as u32);
        ledger.take(&record(at, 0, tid, What::Fork));
        ledger.take(&record(at + 1, 0, tid, What::In));
        ledger.take(&record(at + 3, 0, tid, What::Exit));
    }
    let (sum, threads, others, _) = ledger.closed(BEGAN + count * 10, |_, _| None);
    assert_eq!((time(&sum), sum.runs), (vec![(0, count * 2)], count));
    assert_eq!((threads.len(), others), (SHOWN, count - SHOWN as u64));
}
