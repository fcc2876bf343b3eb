//! A trace gives what the same accesses give that never were one; windows are counted in their second half.

use std::io::{self, Read};

use model::Bytes;

use super::{MOST_PARTS, Replay, replay};
use crate::trace::own::{Head, Window, write};
use crate::trace::{Trace, TraceFormat};
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::study::{Setting, Study, curves, run};
use translation::{Access, Accesses, BLOCK, Mode};

fn asked(pages: &[Bytes], warm_up: u64) -> Replay {
    let native = |&page: &Bytes| Setting::new(Mode::Native, page, page);
    let settings: Vec<Setting> = pages.iter().map(native).collect();
    Replay {
        machine: Machine::by_id("xeon-8452y").expect("known"),
        baseline: settings[0],
        settings,
        warm_up,
        accesses: u64::MAX,
        forgets: false,
        history: Vec::new(),
        curve: false,
    }
}

/// So many accesses of a pattern over 256 MiB.
fn accesses(pattern: Pattern, count: usize) -> Vec<Access> {
    let (mut generator, mut all) = (pattern.threads(Bytes::mib(256), 1, 1), Vec::new());
    while all.len() < count {
        generator.fill(&mut all).expect("few regions");
    }
    all.truncate(count);
    all
}

fn words(accesses: &[Access]) -> Vec<u8> {
    accesses
        .iter()
        .flat_map(|access| access.address().to_le_bytes())
        .collect()
}

#[test]
fn a_trace_costs_what_its_pattern_costs() {
    let asked = Replay {
        curve: true,
        ..asked(&[Bytes::kib(4), Bytes::mib(2)], 307_200)
    };
    let study = Study {
        machine: asked.machine.clone(),
        pattern: Pattern::Random,
        working_sets: vec![Bytes::mib(256)],
        settings: asked.settings.clone(),
        baseline: asked.baseline,
        accesses: 400_000,
        warm_up: 307_200,
        seed: 1,
    };
    let direct = run(&study, &|_, _| {}).expect("possible");
    let bytes = words(&accesses(Pattern::Random, 707_200));
    let mut trace = Trace::open(&bytes[..], Some(TraceFormat::U64), false).expect("a trace");
    let replayed = replay(&asked, &mut trace, &|_| {}).expect("a trace");
    let traced = asked.simulation("a".to_owned(), &replayed).expect("its baseline");
    assert_eq!(traced.accesses, 400_000);
    for (traced, direct) in traced.cases.iter().zip(&direct.cases) {
        assert_eq!(
            (&traced.miss_rates, traced.cycles, traced.relative),
            (&direct.miss_rates, direct.cycles, direct.relative)
        );
    }
    for (traced, direct) in traced.curves.iter().zip(curves(&study)) {
        assert_eq!((traced.working_set, traced.entry), (None, direct.entry));
        assert_eq!((traced.followed, &traced.points), (direct.followed, &direct.points));
    }
    assert_eq!(traced.curves.len(), 2);
}

#[test]
fn memory_is_bounded_by_parts_and_nothing_is_lost() {
    let count = 64 * (1 << 18) + 5;
    let bytes = words(&accesses(Pattern::Stream, count));
    let mut asked = asked(&[Bytes::mib(2)], 0);
    let run = |asked: &Replay| {
        let mut trace = Trace::open(&bytes[..], Some(TraceFormat::U64), false).expect("a trace");
        replay(asked, &mut trace, &|_| {}).expect("a trace")
    };
    let all = run(&asked);
    assert!(all.parts.len() <= MOST_PARTS, "{}", all.parts.len());
    let counted = |replayed: &super::Replayed| replayed.parts.iter().map(|part| part.kept[0].accesses).sum::<u64>();
    assert_eq!(counted(&all), count as u64);
    asked.accesses = 1_000_001;
    assert_eq!(counted(&run(&asked)), 1_000_001);
}

/// A pipe whose program still lives: who reads more than it wrote waits.
struct Alive;

impl Read for Alive {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("read beyond what was asked for"))
    }
}

#[test]
fn no_more_is_read_than_what_counts_and_its_block() {
    let bytes = words(&accesses(Pattern::Random, 10_000 + BLOCK));
    let asked = Replay {
        accesses: 6000,
        ..asked(&[Bytes::kib(4), Bytes::mib(2)], 4000)
    };
    let mut trace = Trace::open(bytes[..].chain(Alive), Some(TraceFormat::U64), false).expect("a trace");
    let replayed = replay(&asked, &mut trace, &|_| {}).expect("what was written is enough");
    assert_eq!(
        replayed.parts.iter().map(|part| part.kept[0].accesses).sum::<u64>(),
        6000
    );
    let more = Replay {
        accesses: 10_000,
        ..asked
    };
    let mut trace = Trace::open(bytes[..].chain(Alive), Some(TraceFormat::U64), false).expect("a trace");
    let why = replay(&more, &mut trace, &|_| {})
        .map(|_| ())
        .expect_err("it was not written");
    assert!(why.to_string().contains("read beyond"), "{why}");
}

#[test]
fn windows_count_in_their_second_half_and_may_begin_with_empty_tlbs() {
    // 64 pages over and over: only empty TLBs miss, and only in the first half.
    let loop_ = |count: u64| (0..count).map(|at| Access::load(at % 64 * 4096)).collect::<Vec<_>>();
    let windows = [1000, 500].map(|count| Window {
        instructions: 4 * count,
        at_us: count,
        used_pages: None,
        accesses: loop_(count),
    });
    let mut bytes = Vec::new();
    write(&Head::default(), &windows, &mut bytes).expect("memory");
    let asked = Replay {
        forgets: true,
        ..asked(&[Bytes::kib(4)], 0)
    };
    let mut trace = Trace::open(&bytes[..], None, false).expect("a trace");
    let replayed = replay(&asked, &mut trace, &|_| {}).expect("a trace");
    assert_eq!(replayed.windows, 2);
    for forgot in [false, true] {
        let seen: Vec<_> = replayed
            .parts
            .iter()
            .map(|part| {
                let counted = if forgot { &part.forgot } else { &part.kept };
                let counts = &counted[0];
                (counts.accesses, counts.levels[1].misses, part.instructions)
            })
            .collect();
        assert_eq!(seen, [(500, 0, 2000.0), (250, 0, 1000.0)]);
    }
}

#[test]
fn a_window_stands_for_the_time_around_it_and_the_last_one_for_the_rest_of_the_run() {
    let windows = [100, 200, 600].map(|at_us| Window {
        instructions: 64,
        at_us,
        used_pages: None,
        accesses: (0..64).map(|at| Access::load(at * 4096)).collect(),
    });
    for (run_us, last) in [(Some(1000), 600.0), (None, 200.0)] {
        let head = Head {
            run_us,
            ..Head::default()
        };
        let mut bytes = Vec::new();
        write(&head, &windows, &mut bytes).expect("memory");
        let mut trace = Trace::open(&bytes[..], None, false).expect("a trace");
        let replayed = replay(&asked(&[Bytes::kib(4)], 0), &mut trace, &|_| {}).expect("a trace");
        let weights: Vec<f64> = replayed.parts.iter().map(|part| part.weight).collect();
        assert_eq!(weights, [150.0, 250.0, last]);
    }
}
