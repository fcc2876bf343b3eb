//! What counts, what it says, and how the next visits are to be.

use std::time::Duration;

use chase::block::Block;
use chase::counters::Counts;
use model::latency::Stopped;

use super::{NEARBY, Samples, Visit};
use crate::latency::converge::Approach;

const WARM: Approach = Approach::Warm { boost: 1 };
const WALKED: Duration = Duration::from_millis(10);

fn block(ticks: f64) -> Block {
    Block {
        ticks,
        clock: [1.0, 1.0],
        switched: false,
        migrated: false,
    }
}

fn of_blocks(approach: Approach, blocks: Vec<Block>) -> Visit {
    Visit {
        approach,
        blocks,
        walked: WALKED,
        laps: f64::INFINITY,
        counted: None,
    }
}

fn visit(approach: Approach, values: impl IntoIterator<Item = f64>) -> Visit {
    of_blocks(approach, values.into_iter().map(block).collect())
}

/// Both approaches, so that there is a number.
fn both(samples: &mut Samples, values: impl Iterator<Item = f64> + Clone) {
    samples.add(&visit(WARM, values.clone()));
    samples.add(&visit(Approach::Cold, values));
}

#[test]
fn disturbed_blocks_are_counted_and_never_used() {
    let mut samples = Samples::default();
    let [mut switched, mut migrated, mut changed] = [block(99.0); 3];
    (switched.switched, migrated.migrated, changed.clock) = (true, true, [1.0, 0.5]);
    let blocks = vec![block(10.0), switched, migrated, changed];
    samples.add(&of_blocks(WARM, blocks.clone()));
    samples.add(&of_blocks(Approach::Cold, blocks));
    let dropped = samples.dropped;
    assert_eq!((dropped.switches, dropped.migrations, dropped.clock), (2, 2, 2));
    assert_eq!(samples.ticks().expect("samples").median, 10.0);
}

#[test]
fn only_the_last_half_of_a_visit_counts() {
    let mut samples = Samples::default();
    both(&mut samples, [300.0; 100].into_iter().chain([100.0; 100]));
    let ticks = samples.ticks().expect("samples");
    assert!(ticks.low > 99.9 && ticks.high < 100.1, "{ticks:?}");
}

#[test]
fn quiet_samples_settle_after_six_visits_from_both_sides_and_not_before() {
    let mut samples = Samples::default();
    for round in 1..=3 {
        both(&mut samples, (0..200).map(|n| 100.0 + f64::from(n % 3) * 0.1));
        assert_eq!(samples.is_closed(), round == 3);
    }
    assert_eq!(samples.stopped, Some(Stopped::Interval));
}

#[test]
fn visits_that_differ_never_settle_however_many_samples_each_has() {
    let mut samples = Samples::default();
    for round in 0..12 {
        both(
            &mut samples,
            std::iter::repeat_n([100.0, 105.0, 110.0][round % 3], 2000),
        );
    }
    assert!(!samples.is_closed());
    samples.close();
    assert_eq!(samples.stopped, Some(Stopped::Budget));
    assert!(samples.disagreement() > 0.03, "{}", samples.disagreement());
}

#[test]
fn approaches_that_do_not_meet_give_a_bound_and_no_number() {
    let mut samples = Samples::default();
    for _ in 0..3 {
        samples.add(&visit(WARM, [100.0; 200]));
    }
    samples.add(&visit(Approach::Cold, (0..200).map(|n| 140.0 - f64::from(n) * 0.1)));
    assert!(samples.ticks().is_none() && samples.cycles().is_none());
    let bound = samples.bound().expect("a bound");
    assert!(bound.low.is_some_and(|low| (90.0..=100.0).contains(&low)), "{bound:?}");
    assert!(
        bound.high.is_some_and(|high| (125.0..140.0).contains(&high)),
        "{bound:?}"
    );
    assert!(samples.arrivals.convergence().is_some_and(|shown| !shown.converged));
    assert!(samples.arrivals.may_go_on_cold());
}

#[test]
fn the_interval_holds_both_approaches() {
    let mut samples = Samples::default();
    for _ in 0..6 {
        samples.add(&visit(WARM, [100.0; 200]));
    }
    samples.add(&visit(Approach::Cold, [103.0; 200]));
    let ticks = samples.ticks().expect("they meet");
    assert!(
        ticks.low > 99.9 && ticks.median < 100.1 && ticks.high == 103.0,
        "{ticks:?}"
    );
}

/// As on a machine whose other tenants take its cores away for most of the time.
#[test]
fn visits_that_differ_by_more_than_their_value_give_an_upper_bound_and_no_number() {
    let mut samples = Samples::default();
    for ticks in [2.0, 30.0, 2.0] {
        both(&mut samples, std::iter::repeat_n(ticks, 100));
    }
    assert_eq!(samples.ticks(), None);
    let bound = samples.bound().expect("samples");
    assert!(
        bound.low.is_none() && bound.high.is_some_and(|high| high > 2.0),
        "{bound:?}"
    );
    assert!(!samples.arrivals.convergence().expect("visits of both").converged);
}

#[test]
fn a_cold_visit_that_stays_above_lengthens_the_others() {
    let mut samples = Samples::default();
    samples.add(&visit(WARM, [100.0; 200]));
    let long = Visit {
        walked: 4 * WALKED,
        ..visit(Approach::Cold, [140.0; 200])
    };
    samples.add(&long);
    assert_eq!(
        samples.arrivals.course.walk, WALKED,
        "one visit of each may differ by chance"
    );
    samples.add(&visit(WARM, [100.0; 200]));
    assert_eq!(samples.arrivals.course.walk, 2 * WALKED);
    assert!(
        samples.arrivals.walked(false).is_zero(),
        "what was too short no longer counts"
    );
}

#[test]
fn visits_after_a_warm_up_that_fall_lengthen_it_but_not_for_ever() {
    let mut samples = Samples::default();
    for boost in [1, 2, 4, 8, 8] {
        let falls = (0..800).map(|n| 200.0 - f64::from(n) * 0.05);
        samples.add(&visit(Approach::Warm { boost }, falls.clone()));
        samples.add(&visit(Approach::Cold, falls));
    }
    assert_eq!(samples.arrivals.course.boost, 8);
    let bound = samples.bound().expect("no number");
    assert!(bound.low.is_none() && bound.high.is_some(), "{bound:?}");
}

#[test]
fn a_point_whose_blocks_are_all_disturbed_is_given_up() {
    let mut samples = Samples::default();
    let disturbed = Block {
        switched: true,
        ..block(1.0)
    };
    for _ in 0..10 {
        samples.add(&of_blocks(WARM, vec![disturbed; 9]));
    }
    assert!(samples.is_closed() && samples.bound().is_none());
}

#[test]
fn a_neighbour_moves_the_median_but_not_the_quiet_step() {
    let mut samples = Samples::default();
    both(
        &mut samples,
        (0..1000).map(|n| if n % 10 == 0 { 4.0 } else { 5.0 + f64::from(n % 7) }),
    );
    let quiet = samples.quiet(2.0).expect("samples");
    assert_eq!((quiet.ns, quiet.cycles, quiet.share), (2.0, 4.0, 0.1));
    assert!(samples.cycles().expect("samples").median > 7.0);
}

#[test]
fn a_clock_that_was_slowed_while_it_was_read_makes_no_step_look_shorter() {
    let slowed = |n: usize| if n.is_multiple_of(3) { 0.9 } else { 1.0 };
    let blocks: Vec<Block> = (0..300)
        .map(|n| Block {
            clock: [slowed(n); 2],
            ..block(4.0)
        })
        .collect();
    let mut samples = Samples::default();
    samples.add(&of_blocks(WARM, blocks.clone()));
    samples.add(&of_blocks(Approach::Cold, blocks));
    assert_eq!(samples.quiet(1.0).expect("samples").cycles, 4.0);
    assert_eq!(samples.cycles().expect("samples").median, 4.0);
}

#[test]
fn cycles_follow_a_clock_that_changes_during_a_visit() {
    let slow = 60 * NEARBY;
    let blocks: Vec<Block> = (0..80 * NEARBY)
        .map(|n| Block {
            clock: [if n < slow { 0.5 } else { 1.0 }; 2],
            ..block(if n < slow { 8.0 } else { 4.0 })
        })
        .collect();
    let mut samples = Samples::default();
    samples.add(&of_blocks(WARM, blocks));
    let quiet = samples.quiet(1.0).expect("samples");
    assert_eq!(quiet.cycles, 4.0);
    assert!(quiet.share > 0.95, "{}", quiet.share);
}

#[test]
fn counters_are_per_step_and_the_miss_rate_per_instruction() {
    let mut samples = Samples::default();
    let counts = Counts {
        instructions: 1125,
        dtlb_misses: 900,
    };
    samples.add(&Visit {
        counted: Some((counts, 1000)),
        ..visit(WARM, [1.0])
    });
    let counters = samples.counters().expect("counted");
    assert!((counters.dtlb_misses - 0.9).abs() < 1e-9);
    assert!((counters.miss_rate - 0.8).abs() < 1e-9);
}

#[test]
fn cycles_leave_open_what_both_approaches_leave_open() {
    let mut samples = Samples::default();
    for round in 0..6 {
        samples.add(&visit(WARM, [100.0 + f64::from(round) * 0.01; 200]));
        samples.add(&visit(Approach::Cold, [103.0; 200]));
    }
    let (ticks, cycles) = (samples.ticks().expect("met"), samples.cycles().expect("met"));
    assert!(ticks.high >= 102.9, "{ticks:?}");
    assert!(cycles.low <= 100.0 && cycles.high >= 102.9, "{cycles:?}");
}
