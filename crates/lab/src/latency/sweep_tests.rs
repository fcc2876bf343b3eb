//! The sweep on a false machine with a false clock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use chase::block::Block;
use model::latency::{Access, Pattern, Stopped};
use model::{Bytes, PageKind};

use super::Error;
use super::plan::Target;
use super::sampling::Visit;
use super::sweep::{Bench, Sweep};

/// A machine where a visit takes just its slice, and a block a tenth of a millisecond.
struct False {
    now: Duration,
    visits: Vec<usize>,
    noise: BTreeMap<usize, f64>,
    dead: Vec<usize>,
}

impl False {
    fn new() -> Self {
        Self {
            now: Duration::ZERO,
            visits: Vec::new(),
            noise: BTreeMap::new(),
            dead: Vec::new(),
        }
    }
}

impl Bench for False {
    fn now(&self) -> Duration {
        self.now
    }

    fn visit(&mut self, point: usize, slice: Duration) -> Visit {
        self.visits.push(point);
        if self.dead.contains(&point) {
            return Visit::default();
        }
        self.now += slice;
        let noise = self.noise.get(&point).copied().unwrap_or(0.0);
        let blocks = slice.as_micros() as usize / 100;
        let block = |n: usize| {
            let swing = if (n / 8 + self.visits.len()).is_multiple_of(2) {
                1.0
            } else {
                -1.0
            };
            Block {
                ticks: 100.0 + noise * swing,
                clock: [1.0, 1.0],
                switched: false,
                migrated: false,
            }
        };
        Visit {
            blocks: (0..blocks).map(block).collect(),
            counted: None,
        }
    }
}

fn points(n: u64) -> Vec<Target> {
    let target = |n| Target {
        kind: PageKind::Base,
        pattern: Pattern::RandomLine,
        access: Access::Read,
        bytes: Bytes::kib(16 * n),
    };
    (1..=n).map(target).collect()
}

fn sweep(points: &[Target], budget: Duration) -> Sweep<'_> {
    Sweep {
        points,
        budget,
        seed: 3,
    }
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn quiet_points_take_three_rounds_and_leave_the_rest_of_the_time() {
    let (points, mut machine) = (points(10), False::new());
    let sampled = sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    assert_eq!(sampled.rounds, 3);
    assert_eq!(machine.visits.len(), 30);
    assert!(machine.now < LONG / 4);
    assert!(
        sampled
            .samples
            .iter()
            .all(|samples| samples.stopped() == Some(Stopped::Interval))
    );
}

#[test]
fn the_time_that_quiet_points_leave_goes_to_the_wild_one() {
    let (points, mut machine) = (points(10), False::new());
    machine.noise.insert(4, 30.0);
    let sampled = sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    let wild = machine.visits.iter().filter(|&&point| point == 4).count();
    assert!(wild > 50, "{wild}");
    assert_eq!(sampled.samples[4].stopped(), Some(Stopped::Budget));
    assert!(machine.now <= LONG + Duration::from_millis(100));
}

#[test]
fn each_point_is_visited_once_even_without_time() {
    let (points, mut machine) = (points(40), False::new());
    let sampled = sweep(&points, Duration::ZERO)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    assert_eq!(machine.visits.len(), 40);
    assert!(sampled.samples.iter().all(|samples| samples.ticks().is_some()));
}

#[test]
fn a_point_that_cannot_be_measured_is_asked_once_and_has_no_number() {
    let (points, mut machine) = (points(5), False::new());
    machine.dead.push(2);
    let sampled = sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    assert_eq!(machine.visits.iter().filter(|&&point| point == 2).count(), 1);
    assert!(sampled.samples[2].ticks().is_none());
}

#[test]
fn no_two_rounds_go_in_the_same_order() {
    let (points, mut machine) = (points(12), False::new());
    sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    assert_ne!(machine.visits[..12], machine.visits[12..24]);
    assert_ne!(machine.visits[..12], (0..12).collect::<Vec<_>>()[..]);
}

#[test]
fn an_interrupt_is_noticed_before_the_next_visit() {
    let (points, mut machine) = (points(12), False::new());
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 5
    };
    let result = sweep(&points, LONG).run(&mut machine, &mut (), &stop);
    assert!(matches!(result, Err(Error::Interrupted)));
    assert_eq!(machine.visits.len(), 5);
}
