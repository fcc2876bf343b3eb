//! Patterns stay in their working set, repeat by seed, and have the shape that they are named after.

use model::Bytes;

use super::zipf::Zipf;
use super::{Pattern, SMALLEST};
use crate::random::Chance;
use crate::setting::Setting;
use crate::{Access, Accesses, Array, BLOCK, Counts, Engine, Event, Mode, Side};

fn some(pattern: Pattern, size: Bytes, seed: u64, most: usize) -> (Vec<Access>, Vec<Event>) {
    let (mut generator, mut all, mut events) = (pattern.threads(size, seed, 1), Vec::new(), Vec::new());
    while all.len() < most {
        let mut block = Vec::new();
        events.extend(generator.fill(&mut block).expect("no error"));
        assert!(block.len() <= BLOCK);
        all.append(&mut block);
    }
    (all, events)
}

#[test]
fn every_pattern_stays_inside_and_is_the_same_for_one_seed() {
    for pattern in Pattern::ALL {
        for size in [SMALLEST, Bytes::mib(3), Bytes::gib(64)] {
            let (accesses, events) = some(pattern, size, 5, 20_000);
            assert!(
                accesses.iter().all(|access| access.address() < size.0),
                "{pattern:?} {size}"
            );
            assert_eq!((accesses, events), some(pattern, size, 5, 20_000), "{pattern:?}");
        }
    }
}

#[test]
fn a_chase_visits_every_line_once_a_lap() {
    let (accesses, _) = some(Pattern::Chase, SMALLEST, 3, 2048);
    let mut lap: Vec<u64> = accesses[..1024].iter().map(|access| access.address()).collect();
    assert_eq!(
        accesses[..1024],
        accesses[1024..2048],
        "the second lap is the first one again"
    );
    lap.sort_unstable();
    assert_eq!(lap, (0..1024).map(|line| line * 64).collect::<Vec<_>>());
}

#[test]
fn memtest_steps_down_by_512_bytes_and_comes_by_every_line_once_a_lap() {
    let (accesses, _) = some(Pattern::Memtest, SMALLEST, 3, 2048);
    let lap: Vec<u64> = accesses[..1024].iter().map(|access| access.address()).collect();
    assert_eq!(accesses[..1024], accesses[1024..2048]);
    assert_eq!(lap[..3], [SMALLEST.0 - 64, SMALLEST.0 - 576, SMALLEST.0 - 1088]);
    let passes = lap.windows(2).filter(|pair| pair[0].wrapping_sub(pair[1]) != 512);
    assert_eq!(passes.count(), 7, "eight passes");
    let mut lines = lap;
    lines.sort_unstable();
    assert_eq!(lines, (0..1024).map(|line| line * 64).collect::<Vec<_>>());
}

#[test]
fn sparse_loads_have_one_line_of_each_huge_page() {
    let (accesses, _) = some(Pattern::Sparse, Bytes::mib(256), 3, 256);
    let mut lap: Vec<u64> = accesses[..128].iter().map(|access| access.address()).collect();
    assert_eq!(accesses[..128], accesses[128..256]);
    assert!(!lap.is_sorted());
    lap.sort_unstable();
    assert_eq!(
        lap.iter().map(|at| at >> 21).collect::<Vec<_>>(),
        (0..128).collect::<Vec<_>>()
    );
}

#[test]
fn ranks_follow_zipf_s_law() {
    let (zipf, mut chance, draws) = (Zipf::new(1000), Chance::new(1), 400_000);
    let mut counts = vec![0_u32; 1000];
    (0..draws).for_each(|_| counts[zipf.draw(&mut chance) as usize] += 1);
    let weight = |rank: usize| (rank as f64 + 1.0).powf(-0.99);
    let total: f64 = (0..1000).map(weight).sum();
    for rank in [0, 1, 2, 9, 99] {
        let (expected, got) = (weight(rank) / total * f64::from(draws), f64::from(counts[rank]));
        assert!(
            (got - expected).abs() < 5.0 * expected.sqrt(),
            "rank {rank}: {got}, expected {expected}"
        );
    }
}

#[test]
fn processes_write_tables_and_switch() {
    let (accesses, events) = some(Pattern::Churn, Bytes::mib(64), 1, 50_000);
    let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
    let writes = count(|event| matches!(event, Event::TableWrite(_)));
    let switches = count(|event| *event == Event::Switch);
    assert!(
        (10..16).contains(&switches),
        "{switches} processes in {} accesses",
        accesses.len()
    );
    assert!(
        writes > 500 * switches,
        "a write for each page mapped and unmapped: {writes}"
    );
}

#[test]
fn a_larger_heap_has_the_same_live_objects_and_is_collected_less_often() {
    let marks = |size: Bytes| {
        let (accesses, _) = some(Pattern::Heap, size, 1, 400_000);
        let live = size.0 - Bytes::mib(224).0;
        let stores = |lives: bool| {
            let there = |access: &&Access| access.side() == Side::Store && (access.address() >= live) == lives;
            accesses.iter().filter(there).count() as f64
        };
        let loads_that_live = accesses.iter().filter(|access| access.side() == Side::Load);
        assert!(loads_that_live.clone().all(|access| access.address() >= live), "{size}");
        stores(true) / stores(false)
    };
    // One mark for each live line in the time in which all others are allocated once.
    for (size, expected) in [(Bytes::gib(1), 224.0 / 800.0), (Bytes::gib(8), 224.0 / 7968.0)] {
        let found = marks(size);
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{size}: {found}, expected {expected}"
        );
    }
}

/// L1 64 x 4, L2 1536 x 12, LRU, base pages.
fn counts(pattern: Pattern, accesses: u64) -> Counts {
    let base = Bytes::kib(4);
    let arrays = [Array::new(1, &[base], 16, 4), Array::new(2, &[base], 128, 12)];
    let mut engine = Engine::new(&arrays, Setting::new(Mode::Native, base, base), &[]);
    engine
        .run(&mut pattern.threads(Bytes::gib(1), 42, 1), accesses)
        .expect("few regions");
    engine.counts()
}

#[test]
fn misses_are_those_that_dynamorio_counts_on_traces_of_the_same_kind() {
    // DynamoRIO's `-tool TLB` on 20 million loads over 1 GiB: random 19,995,179 and 19,881,794 misses. Its trace had another
    // seed: counts differ by chance, whose standard deviation is about 70 and 340.
    let random = counts(Pattern::Random, 20_000_000);
    for (level, (counted, allowed)) in random.levels.iter().zip([(19_995_179, 700_u64), (19_881_794, 3_400)]) {
        assert!(
            level.misses.abs_diff(counted) < allowed,
            "{level:?}, expected about {counted}"
        );
    }
    let stream = counts(Pattern::Stream, 20_000_000);
    assert_eq!(
        stream.levels.iter().map(|level| level.misses).collect::<Vec<_>>(),
        [39_063; 2]
    );
    assert_eq!(stream.accesses, 20_000_000);
}
