//! The sweep on a false machine with a false clock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use model::NotMeasured;
use model::kernelops::Op;

use super::Error;
use super::plan::Target;
use super::samples::Visit;
use super::sweep::{Bench, Sampled, sweep};
use super::worker::Taken;

/// A machine where a visit takes its set-up and its slice, and a batch a tenth of a millisecond.
#[derive(Default)]
struct False {
    now: Duration,
    visits: Vec<usize>,
    noise: BTreeMap<usize, f64>,
    set_up: BTreeMap<usize, Duration>,
    refusing: Option<usize>,
}

impl Bench for False {
    fn now(&self) -> Duration {
        self.now
    }

    fn visit(&mut self, point: usize, slice: Duration) -> Result<Visit, Error> {
        self.visits.push(point);
        if self.refusing == Some(point) {
            return Ok(Err(refusal()));
        }
        self.now += slice + self.set_up.get(&point).copied().unwrap_or_default();
        let noise = self.noise.get(&point).copied().unwrap_or(0.0);
        let seen = self.visits.iter().filter(|&&visited| visited == point).count();
        let level = 100.0 + if seen.is_multiple_of(2) { noise } else { -noise };
        let tick = |n: usize| level + 0.01 * (n % 3) as f64;
        Ok(Ok(vec![Taken {
            ticks: (0..slice.as_micros() as usize / 100).map(tick).collect(),
            operations: 1,
            ..Taken::default()
        }]))
    }
}

fn refusal() -> NotMeasured {
    NotMeasured::Refused("no such thing".to_owned())
}

fn run(machine: &mut False, points: u32, budget: Duration) -> Sampled {
    let targets = targets(points);
    sweep(&targets, budget, 3, machine, &mut (), &|| false).expect("runs")
}

fn targets(points: u32) -> Vec<Target> {
    (1..=points).map(|workers| Target { op: Op::Fw, workers }).collect()
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn quiet_points_take_six_rounds_and_leave_the_rest_of_the_time() {
    let mut machine = False::default();
    let sampled = run(&mut machine, 10, LONG);
    assert_eq!((sampled.rounds, machine.visits.len()), (6, 60));
    assert!(machine.now < LONG / 2);
    assert!(sampled.samples.iter().all(|samples| samples.is_settled()));
    assert_ne!(
        machine.visits[..10],
        machine.visits[10..20],
        "each round has its own order"
    );
}

#[test]
fn the_time_that_quiet_points_leave_goes_to_the_wild_one() {
    let mut machine = False::default();
    machine.noise.insert(4, 30.0);
    let sampled = run(&mut machine, 10, LONG);
    assert!(machine.visits.iter().filter(|&&point| point == 4).count() > 50);
    assert!(!sampled.samples[4].is_settled());
    assert!(machine.now <= LONG + Duration::from_millis(100));
}

#[test]
fn each_point_is_visited_twice_even_without_time() {
    let mut machine = False::default();
    let sampled = run(&mut machine, 40, Duration::ZERO);
    assert_eq!(machine.visits.len(), 80);
    assert!(
        sampled
            .samples
            .iter()
            .all(|samples| samples.visits.estimate().is_some())
    );
}

#[test]
fn a_point_that_takes_long_to_set_up_does_not_overdraw_the_budget() {
    let mut machine = False::default();
    machine.noise.extend((0..10).map(|point| (point, 30.0)));
    machine.set_up.insert(7, Duration::from_secs(1));
    run(&mut machine, 10, Duration::from_millis(3500));
    assert!(machine.now < Duration::from_millis(3600), "{:?}", machine.now);
    let dear = machine.visits.iter().filter(|&&point| point == 7).count();
    assert_eq!(dear, 2, "as often as an interval needs, and no more");
}

#[test]
fn a_point_that_is_refused_is_asked_once() {
    let mut machine = False {
        refusing: Some(2),
        ..False::default()
    };
    let sampled = run(&mut machine, 5, LONG);
    assert_eq!(machine.visits.iter().filter(|&&point| point == 2).count(), 1);
    assert_eq!(sampled.samples[2].refused, Some(refusal()));
}

#[test]
fn an_interrupt_is_noticed_before_the_next_visit() {
    let (targets, mut machine, asked) = (targets(12), False::default(), Cell::new(0));
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 5
    };
    let stopped = sweep(&targets, LONG, 3, &mut machine, &mut (), &stop);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    assert_eq!(machine.visits.len(), 5);
}
