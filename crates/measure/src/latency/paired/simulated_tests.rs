//! The design on a machine made of arithmetic, whose visits drift, are disturbed, and differ from draw to draw: do the three
//! outcomes keep their error rates, and does the interval hold what is true of all runs together?

use std::time::Duration;

use model::headline::{Percent, Shows};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::draws::{Bench, Draws, Grid, Plan, go_on};
use crate::Error;

/// What a simulated machine is like; shares are of the time of a step, as logarithms.
#[derive(Clone, Copy, Debug)]
struct Nature {
    name: &'static str,
    /// Standard deviation between visits.
    visits: f64,
    /// The same by an exponential tail on one side.
    tail: f64,
    /// Standard deviation of what memory costs on base pages, from draw to draw.
    draws: f64,
    /// Change of everything in a second.
    drift: f64,
    /// Change of the cost of base pages alone over a run, one way or the other.
    wander: f64,
    /// What a neighbour adds on base pages while it is there.
    burst: f64,
    /// How long it stays, and stays away, on average, in seconds.
    stay: [f64; 2],
}

const CALM: Nature = Nature {
    name: "calm",
    visits: 0.01,
    tail: 0.0,
    draws: 0.01,
    drift: 0.0,
    wander: 0.0,
    burst: 0.0,
    stay: [1.0, 1.0],
};

const NATURES: [Nature; 9] = [
    CALM,
    Nature {
        name: "draws differ",
        draws: 0.03,
        ..CALM
    },
    Nature {
        name: "visits differ",
        visits: 0.06,
        ..CALM
    },
    Nature {
        name: "everything drifts",
        drift: 0.02,
        ..CALM
    },
    Nature {
        name: "skewed",
        tail: 0.06,
        ..CALM
    },
    Nature {
        name: "rare bursts",
        burst: 0.25,
        stay: [1.5, 13.0],
        ..CALM
    },
    Nature {
        name: "frequent bursts",
        burst: 0.25,
        stay: [1.5, 4.0],
        ..CALM
    },
    Nature {
        name: "long bursts",
        burst: 0.1,
        stay: [6.0, 18.0],
        ..CALM
    },
    Nature {
        name: "base pages drift",
        wander: 0.02,
        ..CALM
    },
];

/// Seconds of a draw without its visits, of a visit, and of one to the smallest working set.
const SET_UP: f64 = 0.75;
const VISIT: f64 = 0.06;
const SHORT_VISIT: f64 = 0.015;

struct Simulated {
    nature: Nature,
    grid: Grid,
    /// The logarithm of the ratio of times.
    gain: f64,
    now: f64,
    is_burst: bool,
    until: f64,
    slope: f64,
    random: Pcg64Mcg,
}

impl Simulated {
    fn new(nature: Nature, grid: Grid, gain: f64, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let slope = if random.random() { nature.wander } else { -nature.wander };
        let [stays, away] = nature.stay;
        let mut simulated = Self {
            slope,
            is_burst: random.random::<f64>() * (stays + away) < stays,
            nature,
            grid,
            gain,
            now: 0.0,
            until: 0.0,
            random,
        };
        simulated.until = simulated.stay();
        simulated
    }

    /// How long the neighbour goes on with what it does.
    fn stay(&mut self) -> f64 {
        self.nature.stay[usize::from(!self.is_burst)] * self.exponential()
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.random.random::<f64>()).cos()
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.random::<f64>()).ln()
    }

    /// What base pages cost more now.
    fn neighbour(&mut self) -> f64 {
        while self.now >= self.until {
            self.is_burst = !self.is_burst;
            self.until += self.stay();
        }
        let middle = BUDGET.as_secs_f64() / 2.0 + BETWEEN;
        f64::from(self.is_burst) * self.nature.burst + self.slope * (self.now - middle) / middle / 2.0
    }
}

impl Bench for Simulated {
    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    fn draw(&mut self, _: u32, visits: &[usize]) -> Result<Vec<Option<f64>>, Error> {
        self.now += SET_UP;
        let memory: Vec<f64> = (0..self.grid.sizes)
            .map(|_| self.nature.draws * self.normal())
            .collect();
        let visit = |&point: &usize| {
            self.now += if point < self.grid.kinds { SHORT_VISIT } else { VISIT };
            let (size, kind) = (point / self.grid.kinds, point % self.grid.kinds);
            let own = match kind {
                0 => memory[size] + self.neighbour(),
                _ => self.gain,
            };
            let noise = self.nature.visits * self.normal() + self.nature.tail * self.exponential();
            Some((own + noise + self.nature.drift * self.now).exp() * 200.0)
        };
        Ok(visits.iter().map(visit).collect())
    }
}

const BUDGET: Duration = Duration::from_secs(36);
/// Stretches, and seconds of other work after each.
const STRETCHES: u32 = 3;
const BETWEEN: f64 = 8.0;
const RUNS: u64 = 300;

/// The last kind at the last size in a run of its own.
fn run(nature: Nature, kinds: usize, gain: f64, seed: u64) -> (Percent, f64) {
    let grid = Grid { sizes: 3, kinds };
    let mut bench = Simulated::new(nature, grid, gain, seed);
    let (mut draws, budget) = (Draws::default(), BUDGET);
    for _ in 0..STRETCHES {
        go_on(
            &mut draws,
            &Plan { grid, seed, budget },
            budget / STRETCHES,
            &mut bench,
            &mut |_, _| {},
        )
        .expect("runs");
        bench.now += BETWEEN;
    }
    let (point, base) = (grid.point(2, kinds - 1), grid.point(2, 0));
    let saved = draws.saved(point, base, stats::CONFIDENCE).expect("draws");
    (saved, bench.now)
}

/// The median over very many rounds of very many runs, as a logarithm, of kinds that do not differ by themselves.
fn center(nature: Nature) -> f64 {
    let grid = Grid { sizes: 1, kinds: 2 };
    let rounds = (0..400).flat_map(|seed| {
        let mut bench = Simulated::new(nature, grid, 0.0, 10_000 + seed);
        (0..8).flat_map(move |draw| {
            let times = bench.draw(draw, &[0, 1, 0, 1]).expect("a draw");
            let log = |pair: &[Option<f64>]| Some((pair[1]? / pair[0]?).ln());
            times.chunks(2).filter_map(log).collect::<Vec<f64>>()
        })
    });
    stats::median(&rounds.collect::<Vec<f64>>()).expect("rounds")
}

fn share(all: &[Percent], is: impl Fn(&Percent) -> bool) -> f64 {
    all.iter().filter(|saved| is(saved)).count() as f64 * 100.0 / all.len() as f64
}

/// Error rates without a gain, and at gains of 6 and 14 %; prints what it finds.
#[test]
#[allow(
    clippy::print_stdout,
    reason = "the error rates themselves are what a reader of a failed run wants"
)]
fn outcomes_are_rarely_wrong_and_intervals_hold_the_truth() {
    let mut wrong = Vec::new();
    for nature in NATURES {
        let center = center(nature);
        for (kinds, truth) in [(2, 0.0), (3, 0.0), (2, 6.0), (3, 6.0), (3, 14.0)] {
            let gain = (1.0 - truth / 100.0_f64).ln() - center;
            let runs: Vec<(Percent, f64)> = (0..RUNS).map(|seed| run(nature, kinds, gain, seed)).collect();
            let seconds = runs.iter().map(|(_, seconds)| seconds).sum::<f64>() / RUNS as f64;
            let all: Vec<Percent> = runs.into_iter().map(|(saved, _)| saved).collect();
            let held = share(&all, |saved| saved.low <= truth && truth <= saved.high);
            let shown = |shows| share(&all, |saved| saved.shows() == shows);
            let widths: Vec<f64> = all.iter().map(Percent::half_width).collect();
            println!(
                "{}, {kinds} kinds, {truth} %: holds {held:.1} %, saves {:.1}, no difference {:.1}, cannot tell {:.1}, costs {:.1}; half width {:.2}, {seconds:.0} s",
                nature.name,
                shown(Shows::Saves),
                shown(Shows::NoDifference),
                shown(Shows::CannotTell),
                shown(Shows::Costs),
                stats::median(&widths).unwrap_or_default()
            );
            let is_false = match truth {
                0.0 => shown(Shows::Saves) + shown(Shows::Costs),
                _ => shown(Shows::NoDifference) + shown(Shows::Costs),
            };
            if held < 93.0 || is_false > 5.0 {
                wrong.push((nature, kinds, truth, held, is_false));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
