//! The sweep on a false machine with a false clock.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use chase::block::Block;
use chase::counters::Counts;
use model::latency::{Access, Pattern, Stopped};
use model::{Bytes, PageKind};

use super::Error;
use super::converge::Approach;
use super::plan::Target;
use super::sweep::{Bench, Sweep, UNASKED};

/// A machine whose caches are always full, where a block takes 50 microseconds.
struct False {
    now: Duration,
    visits: Vec<(usize, Approach)>,
    noise: BTreeMap<usize, f64>,
    dead: Vec<usize>,
    longest: Duration,
    /// A visit never converges.
    is_slow: bool,
    entered: Duration,
}

impl False {
    fn new() -> Self {
        Self {
            now: Duration::ZERO,
            visits: Vec::new(),
            noise: BTreeMap::new(),
            dead: Vec::new(),
            longest: Duration::ZERO,
            is_slow: false,
            entered: Duration::ZERO,
        }
    }
}

impl Bench for False {
    fn now(&self) -> Duration {
        self.now
    }

    fn enter(&mut self, point: usize, approach: Approach) -> bool {
        self.visits.push((point, approach));
        self.entered = self.now;
        !self.dead.contains(&point)
    }

    fn walk(&mut self, point: usize, time: Duration) -> Vec<Block> {
        let before = (self.now - self.entered).as_secs_f64();
        // Changes by as much in each doubling.
        let rise = |n: usize| {
            if self.is_slow {
                (before + n as f64 * 50e-6).sqrt() * 1e3
            } else {
                0.0
            }
        };
        self.now += time;
        self.longest = self.longest.max(time);
        let noise = self.noise.get(&point).copied().unwrap_or(0.0);
        // Visits to a point differ, in an order that has nothing to do with rounds.
        let swing = (self.visits.len() as f64 * 1.7).sin();
        let block = |n: usize| Block {
            ticks: 100.0 + rise(n) + noise * swing + (n % 3) as f64 * 0.1,
            clock: [1.0, 1.0],
            switched: false,
            migrated: false,
        };
        (0..time.as_micros() as usize / 50).map(block).collect()
    }

    fn laps(&self, _: usize, _: usize) -> f64 {
        f64::INFINITY
    }

    fn leave(&mut self, _: usize) -> Option<(Counts, u64)> {
        None
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
fn quiet_points_take_six_visits_from_both_sides_and_leave_the_rest_of_the_time() {
    let (points, mut machine) = (points(10), False::new());
    let sampled = sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    assert_eq!(sampled.rounds, 6);
    let of = |wanted: Approach| {
        machine
            .visits
            .iter()
            .filter(|(_, approach)| *approach == wanted)
            .count()
    };
    assert_eq!([Approach::Warm { boost: 1 }, Approach::Cold].map(of), [30, 30]);
    assert!(machine.now < LONG / 4);
    assert!(
        sampled
            .samples
            .iter()
            .all(|samples| samples.stopped == Some(Stopped::Interval))
    );
}

#[test]
fn the_time_that_quiet_points_leave_goes_to_the_wild_one() {
    let (points, mut machine) = (points(10), False::new());
    machine.noise.insert(4, 30.0);
    let sampled = sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    let wild = machine.visits.iter().filter(|(point, _)| *point == 4).count();
    assert!(wild > 50, "{wild}");
    assert_eq!(sampled.samples[4].stopped, Some(Stopped::Budget));
    assert!(machine.now <= LONG + Duration::from_millis(100));
}

#[test]
fn each_point_is_approached_from_both_sides_even_without_time() {
    let (points, mut machine) = (points(40), False::new());
    let sampled = sweep(&points, Duration::ZERO)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    assert_eq!(machine.visits.len(), 120, "warm, cold, warm");
    assert!(sampled.samples.iter().all(|samples| samples.ticks().is_some()));
}

#[test]
fn a_point_that_cannot_be_measured_is_asked_once_and_has_no_number() {
    let (points, mut machine) = (points(5), False::new());
    machine.dead.push(2);
    let sampled = sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    assert_eq!(machine.visits.iter().filter(|(point, _)| *point == 2).count(), 1);
    assert!(sampled.samples[2].ticks().is_none());
}

#[test]
fn no_two_rounds_go_in_the_same_order() {
    let (points, mut machine) = (points(12), False::new());
    sweep(&points, LONG)
        .run(&mut machine, &mut (), &|| false)
        .expect("runs");
    let visited: Vec<usize> = machine.visits.iter().map(|(point, _)| *point).collect();
    assert_ne!(visited[..12], visited[12..24]);
    assert_ne!(visited[..12], (0..12).collect::<Vec<_>>()[..]);
}

#[test]
fn an_interrupt_is_noticed_before_and_within_a_visit() {
    for answers in 1..40 {
        let (points, mut machine) = (points(12), False::new());
        let asked = Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > answers
        };
        let result = sweep(&points, LONG).run(&mut machine, &mut (), &stop);
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(asked.get(), answers + 1, "nothing goes on after the answer");
    }
}

#[test]
fn whether_to_stop_is_asked_between_short_walks_however_long_a_visit_is() {
    let (points, mut machine) = (points(1), False::new());
    machine.is_slow = true;
    let most = Cell::new(0);
    let count = || {
        most.set(most.get() + 1);
        false
    };
    sweep(&points, LONG).run(&mut machine, &mut (), &count).expect("runs");
    assert!(machine.longest <= UNASKED, "{:?}", machine.longest);
    assert!(most.get() > 3 * machine.visits.len(), "visits of several walks");
}
