//! What an interval between two runs promises: counted out for few visits, simulated with tails, drift and early stops, and
//! the verdicts of many points when nothing differs.

use super::{apart, of_intervals, outside, shares, together};
use crate::simulated::{Draws, LEVEL, MOVES, Moves, SPREADS, coverage};
use crate::{is_enough, medians, of_medians};

const RUNS: u32 = 1_500;
/// What "95 %" must come to in simulation: three and a half standard deviations below.
const ENOUGH: f64 = 93.0;

#[test]
fn ranks_of_few_visits_are_counted_out() {
    // Of 3 and 2 visits: 0 to 6 pairs in 1, 1, 2, 2, 2, 1, 1 of 10 ways.
    let ten: Vec<f64> = shares(3, 2).iter().map(|share| share * 10.0).collect();
    let expected = [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0];
    assert!(ten.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{ten:?}");
    // Tables of Mann and Whitney, two-sided 5 %: the largest count that is rejected, and one.
    for (over, under, critical) in [(4, 4, 0), (5, 5, 2), (6, 6, 5), (8, 8, 13), (10, 10, 23), (5, 9, 7)] {
        assert_eq!(outside(over, under, 0.05), Some(critical + 1), "{over} {under}");
        assert_eq!(outside(under, over, 0.05), Some(critical + 1), "{under} {over}");
    }
    assert_eq!(outside(3, 3, 0.05), None);
    assert_eq!(outside(1, 30, 0.05), None);
    // Counted out and normal agree where one takes over from the other: 50 and 50 visits, by hand 965.
    let counted = outside(50, 50, 0.05).expect("many");
    let normal = outside(50, 51, 0.05).expect("many");
    assert!(
        counted.abs_diff(966) <= 1 && normal > counted && normal < counted + 40,
        "{counted} {normal}"
    );
}

#[test]
fn a_ratio_of_nothing_or_of_values_that_are_not_above_zero_is_none() {
    assert_eq!(apart(&[], &[1.0], 0.05), None);
    assert_eq!(apart(&[1.0, 0.0], &[1.0], 0.05), None);
    assert_eq!(apart(&[1.0], &[f64::NAN], 0.05), None);
    let one = apart(&[3.0], &[2.0], 0.05).expect("a ratio");
    assert!((one.ratio - 1.5).abs() < 1e-12 && one.ends.is_none());
}

#[test]
fn a_factor_between_runs_is_held_with_tails_drift_and_any_number_of_visits() {
    let mut draws = Draws::new(1);
    for moves in MOVES {
        for spread in SPREADS {
            for (over, under) in [(4, 4), (4, 12), (6, 6), (9, 7)] {
                let held = coverage(RUNS, || {
                    let (mut a, a_level) = run(&mut draws, over, spread, moves);
                    let (b, b_level) = run(&mut draws, under, spread, moves);
                    a.iter_mut().for_each(|value| *value *= 1.3);
                    let (low, high) = apart(&a, &b, 0.05).and_then(|apart| apart.ends).expect("ends");
                    let truth = 1.3 * a_level / b_level;
                    (low..=high).contains(&truth)
                });
                assert!(held >= ENOUGH, "{moves:?} {spread} {over} {under}: {held} %");
            }
        }
    }
}

/// Medians of visits, and the true middle of the run.
fn run(draws: &mut Draws, visits: usize, spread: f64, moves: Moves) -> (Vec<f64>, f64) {
    let (levels, middle) = draws.levels(visits, spread, moves);
    (medians(&draws.visits(&levels)), middle)
}

#[test]
fn a_run_that_ends_as_soon_as_it_is_narrow_does_not_spoil_the_interval() {
    let mut draws = Draws::new(2);
    for moves in [Moves::Normal, Moves::Skewed] {
        for spread in SPREADS {
            let held = coverage(RUNS, || {
                let [a, b] = [(), ()].map(|()| {
                    let (all, _) = run(&mut draws, 20, spread, moves);
                    let enough = (6..all.len()).find(|&count| is_enough(&all[..count], 0.01));
                    all[..enough.unwrap_or(all.len())].to_vec()
                });
                let (low, high) = apart(&a, &b, 0.05).and_then(|apart| apart.ends).expect("ends");
                (low..=high).contains(&1.0)
            });
            assert!(held >= ENOUGH, "{moves:?} {spread}: {held} %");
        }
    }
}

/// The share of comparisons of two runs of one machine in which any of `points` lies beyond the allowance, in percent. Runs differ
/// by as much as is allowed, up or down; each point has visits with a tail, some of them disturbed to twice the time.
fn false_verdicts(draws: &mut Draws, points: usize, allowed: f64, moves: Moves) -> f64 {
    coverage(400, || {
        let counts: Vec<(usize, usize)> = (0..points).map(|at| (3 + at % 8, 4 + at % 7)).collect();
        let level = together(&counts, 0.05);
        let between = if draws.normal() > 0.0 {
            1.0 + allowed
        } else {
            1.0 / (1.0 + allowed)
        };
        counts.iter().any(|&(over, under)| {
            let mut disturbed = |count| {
                let (mut values, middle) = run(draws, count, 0.05, moves);
                for value in &mut values {
                    *value *= LEVEL / middle * if draws.normal() > 1.0 { 2.0 } else { 1.0 };
                }
                values
            };
            let (mut a, b) = (disturbed(over), disturbed(under));
            a.iter_mut().for_each(|value| *value *= between);
            let ends = apart(&a, &b, level).and_then(|apart| apart.ends);
            ends.is_some_and(|(low, high)| low > 1.0 + allowed || high < 1.0 / (1.0 + allowed))
        })
    })
}

#[test]
fn when_nothing_differs_beyond_the_allowance_hardly_any_comparison_has_a_verdict() {
    let mut draws = Draws::new(3);
    for moves in MOVES {
        for (points, allowed) in [(1, 0.0), (40, 0.0), (40, 0.05)] {
            let wrong = false_verdicts(&mut draws, points, allowed, moves);
            assert!(wrong <= 8.0, "{moves:?} {points} {allowed}: {wrong} %");
        }
    }
}

#[test]
fn points_of_few_visits_cost_the_others_nothing() {
    let few = vec![(3, 3); 40];
    let many = [few.as_slice(), &[(9, 9)]].concat();
    assert_eq!(together(&many, 0.05), 0.05);
    assert_eq!(together(&[(9, 9); 40], 0.05), 0.05 / 40.0);
    assert_eq!(together(&[], 0.05), 0.05);
}

#[test]
fn two_published_intervals_make_one_that_holds_as_well() {
    let mut draws = Draws::new(4);
    for moves in [Moves::Normal, Moves::Skewed] {
        for (over, under) in [(6, 6), (6, 30), (20, 20)] {
            let held = coverage(RUNS, || {
                let [a, b] = [over, under].map(|count| of_medians(&run(&mut draws, count, 0.05, moves).0));
                let [a, b] = [a, b].map(|estimate| estimate.map(|e| (e.low, e.median, e.high)).expect("estimate"));
                let (low, high) = of_intervals(a, b, 0.05).and_then(|apart| apart.ends).expect("ends");
                (low..=high).contains(&1.0)
            });
            assert!(held >= 95.0 - 1.0, "{moves:?} {over} {under}: {held} %");
        }
    }
    assert_eq!(of_intervals((0.0, 1.0, 2.0), (1.0, 1.0, 1.0), 0.05), None);
}
