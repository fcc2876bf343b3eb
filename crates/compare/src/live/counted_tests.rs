//! Counters that were made up, and the one that every kernel has on a real program.

use chase::counters::NOT_BACKED;
use chase::counters::program::{Countable, Event};
use host::{Snapshot, Source, Tree};
use model::compare::{Metric, Run};

use super::super::tests::{live, shell};
use super::{Counting, metrics, walk_cycles};
use crate::Executor;

const WANTED: [(Metric, Event); 4] = [
    (Metric::Migrations, Event::Migrations),
    (Metric::Instructions, Event::Instructions),
    (Metric::DtlbMisses, Event::DtlbMisses),
    (Metric::WalkCycles, Event::WalkCycles(0x1008)),
];

fn counting(probe: impl Fn(Event) -> Result<Countable, String>) -> Counting {
    Counting::of(WANTED.map(|(metric, event)| (metric, Ok(event))), probe)
}

fn user_only(event: Event) -> Result<Countable, String> {
    Ok(Countable {
        event,
        user_only: event.is_hardware(),
    })
}

#[test]
fn misses_and_instructions_make_a_rate() {
    let counts = [
        (Event::Migrations, 3.0),
        (Event::Instructions, 2e9),
        (Event::DtlbMisses, 5e6),
        (Event::WalkCycles(1), 7e7),
    ];
    let expected = [
        (Metric::Migrations, 3.0),
        (Metric::Instructions, 2e9),
        (Metric::DtlbMisses, 5e6),
        (Metric::DtlbMpki, 2.5),
        (Metric::WalkCycles, 7e7),
    ];
    assert_eq!(metrics(&counts), (expected.to_vec(), None));
}

#[test]
fn hardware_that_counts_no_instructions_counts_nothing_and_what_is_missing_is_no_zero() {
    let dead = [
        (Event::Migrations, 1.0),
        (Event::Instructions, 0.0),
        (Event::DtlbMisses, 0.0),
    ];
    assert_eq!(metrics(&dead), (vec![(Metric::Migrations, 1.0)], Some(NOT_BACKED)));
    let partly = [(Event::DtlbMisses, 9.0)];
    assert_eq!(metrics(&partly), (vec![(Metric::DtlbMisses, 9.0)], None));
    assert_eq!(metrics(&[]), (vec![], None));
}

#[test]
fn what_cannot_be_counted_says_why_and_a_rate_needs_both() {
    let none = counting(|event| {
        if event.is_hardware() {
            Err("no PMU here".to_owned())
        } else {
            user_only(event)
        }
    });
    assert_eq!(none.why_not(Metric::DtlbMpki), Some("no PMU here"));
    assert_eq!(none.why_not(Metric::Wall).or(none.why_not(Metric::Migrations)), None);
    assert_eq!(none.note().as_deref(), Some("no PMU here"));
    let walks = |event| {
        if matches!(event, Event::WalkCycles(_)) {
            Err("not known".to_owned())
        } else {
            user_only(event)
        }
    };
    let some = counting(walks);
    assert_eq!(
        (some.why_not(Metric::DtlbMpki), some.why_not(Metric::WalkCycles)),
        (None, Some("not known"))
    );
    assert_eq!(some.note().as_deref(), Some("no walk-cycles: not known"));
    let note = counting(user_only).note().expect("a note");
    assert!(note.contains("user mode only"), "{note}");
    let all = counting(|event| {
        Ok(Countable {
            event,
            user_only: false,
        })
    });
    assert_eq!(all.note(), None);
}

#[test]
fn the_code_of_walk_cycles_goes_by_the_cpu() {
    let cpu = |vendor: &str, model: u32| {
        let text = format!("processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: 6\nmodel\t\t: {model}\n\n");
        let tree = Tree::new().file("/proc/cpuinfo", &text);
        walk_cycles(&Snapshot::take(&Source::from_tree("made", tree)).cpu)
    };
    assert_eq!(cpu("GenuineIntel", 0x8f), Some(0x0100_1012));
    assert_eq!(cpu("GenuineIntel", 0x55), Some(0x0100_1008));
    assert_eq!([cpu("AuthenticAMD", 0x55), cpu("GenuineIntel", 1)], [None, None]);
}

#[test]
fn a_metric_that_is_not_counted_here_is_refused_by_its_name() {
    let none = counting(|event| match event.is_hardware() {
        true => Err("no PMU here".to_owned()),
        false => user_only(event),
    });
    assert!(none.must_count(["wall", "migrations", "own"].into_iter()).is_ok());
    let refused = none.must_count(["wall", "instructions"].into_iter());
    assert_eq!(
        refused.expect_err("no PMU").to_string(),
        "--metric instructions: no PMU here"
    );
}

/// The shell starts another one, which moves itself between two CPUs: counted by an event of its own, and by those that record moves.
#[test]
fn moves_of_a_grandchild_are_counted() {
    let countable = match Countable::probe(Event::Migrations) {
        Ok(countable) => countable,
        Err(why) => return testing::skipped(&why.to_string()),
    };
    let by_event = Counting {
        events: vec![countable],
        ..Counting::default()
    };
    let by_records = Counting::places(&Snapshot::take(&Source::live()));
    if by_records.cpus.is_empty() {
        return testing::skipped("more CPUs than are recorded");
    }
    let allowed = rustix::thread::sched_getaffinity(None).expect("CPUs");
    let cpus: Vec<usize> = (0..1024).filter(|&cpu| allowed.is_set(cpu)).take(2).collect();
    if !std::path::Path::new("/usr/bin/taskset").exists() {
        return testing::missing("taskset");
    }
    let [one, two] = cpus[..] else {
        return testing::skipped("one CPU only");
    };
    let hop = format!("taskset -pc {one} $$; taskset -pc {two} $$; ");
    let line = format!("sh -c '{}'; true", hop.repeat(3));
    let run = |counting| {
        let mut live = live(shell(&line), &[]);
        live.counting = counting;
        live.run(0).expect("runs")
    };
    let moves = |run: &Run| run.metrics[Metric::Migrations.name()];
    let [counted, recorded] = [by_event, by_records].map(run);
    assert!((5.0..500.0).contains(&moves(&counted)), "{counted:?}");
    assert!((5.0..500.0).contains(&moves(&recorded)), "{recorded:?}");
    // What the events say of time on each CPU is what the kernel adds up of all processes, but for what comes before their programs.
    let ran = recorded.ran.expect("where it ran");
    let (on_cpus, all) = (ran.cpu_s.values().sum::<f64>(), recorded.metrics[Metric::Cpu.name()]);
    assert!(
        on_cpus <= all * 1.1 + 0.005 && on_cpus >= all * 0.3,
        "{on_cpus} s of {all} s"
    );
    assert!(ran.cpu_s.len() >= 2, "{ran:?}");
}
