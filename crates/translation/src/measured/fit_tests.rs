//! Costs that made times are found again from the times and the counts.

use super::{Costs, Known, Timed, explain};
use crate::engine::Counts;
use crate::tlb::level::LevelCounts;
use crate::walk::caches::PLACES;
use crate::walk::walker::WalkCounts;

/// Of 1,000 accesses: where data and page-table lines were found, and hits of the second-level TLB.
fn counts(data_lines: [u64; PLACES], table_lines: [u64; PLACES], hits: u64) -> Counts {
    let level = |lookups, misses| LevelCounts { lookups, misses };
    // A walk reads one entry, or two of which the upper one is in the first cache.
    let walks = table_lines[1..].iter().sum::<u64>().max(table_lines[0]);
    Counts {
        accesses: 1000,
        levels: vec![level(1000, 900), level(900, 900 - hits)],
        walkers: vec![WalkCounts {
            walks,
            data_lines,
            table_lines,
            ..WalkCounts::default()
        }],
        ..Counts::default()
    }
}

const TRUTH: Costs = Costs {
    latencies: [4.0, 15.0, 60.0, 300.0],
    l2_tlb_hit: 7.0,
    walk: 20.0,
    walk_reads: 0.6,
    error: 0.0,
};

fn all() -> Vec<Counts> {
    vec![
        counts([1000, 0, 0, 0], [0; 4], 0),
        counts([600, 400, 0, 0], [0; 4], 0),
        counts([100, 900, 0, 0], [100, 0, 0, 0], 800),
        counts([0, 300, 700, 0], [200, 300, 0, 0], 300),
        counts([0, 0, 900, 100], [500, 300, 200, 0], 0),
        counts([0, 0, 100, 900], [100, 300, 700, 0], 0),
        counts([0, 0, 0, 1000], [0, 100, 700, 200], 0),
        counts([0, 0, 0, 1000], [0, 100, 100, 900], 0),
    ]
}

fn timed(cycles: impl Fn(usize, f64) -> f64) -> Vec<Timed> {
    let all = all().into_iter().enumerate();
    all.map(|(number, counts)| Timed {
        cycles: cycles(number, TRUTH.cycles(&counts)),
        counts,
    })
    .collect()
}

fn close(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * other
}

#[test]
fn the_costs_that_made_the_times_are_found() {
    let found = explain(&timed(|_, cycles| cycles), &[], &Known::default());
    let both = found.latencies.into_iter().zip(TRUTH.latencies);
    assert!(
        both.clone().all(|(found, truth)| close(found, truth, 0.01)),
        "{found:?}"
    );
    assert!(
        close(found.l2_tlb_hit, TRUTH.l2_tlb_hit, 0.05)
            && close(found.walk, TRUTH.walk, 0.05)
            && close(found.walk_reads, 0.6, 0.01),
        "{found:?}"
    );
    assert!(found.error < 1e-3, "{found:?}");
}

#[test]
fn one_time_that_is_far_off_changes_little() {
    let found = explain(
        &timed(|number, cycles| if number == 5 { 1.5 * cycles } else { cycles }),
        &[],
        &Known::default(),
    );
    let both = found.latencies.into_iter().zip(TRUTH.latencies);
    assert!(both.clone().all(|(found, truth)| close(found, truth, 0.1)), "{found:?}");
}

#[test]
fn what_is_known_stays() {
    let known = Known {
        latencies: [Some(5.0), Some(14.0), None, None],
        l2_tlb_hit: Some(8.0),
        walk: None,
        short_walk: None,
        walk_reads: Some(1.0),
        is_nested: false,
    };
    let found = explain(&timed(|_, cycles| cycles), &[], &known);
    assert_eq!((found.latencies[0], found.latencies[1]), (5.0, 14.0));
    assert_eq!((found.l2_tlb_hit, found.walk_reads), (8.0, 1.0));
    assert!(
        found.latencies[3] > found.latencies[2] && found.latencies[2] > 14.0,
        "{found:?}"
    );
}
