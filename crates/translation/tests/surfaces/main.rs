//! Latency surfaces that were measured on real CPUs, and how well the simulator predicts them. Nothing is fitted to them.
//!
//! A surface has clocks by working set and by bytes from element to element, in two orders. What prefetchers make of elements in a row is not
//! simulated, so surfaces in address order are left out.

// The bench of the same name prints what no test asserts.
#![allow(dead_code)]

mod order;
mod rank;

use std::collections::BTreeMap;

use model::Bytes;
use serde::Deserialize;

use order::Elements;
pub(crate) use order::Order;
use rank::correlation;
use translation::machine::{Machine, MachineError};
use translation::study::{Choice, MIDDLE, Setting, Weights, on_all_cpus, walkers};
use translation::{Cache, Counts, Engine, Mode, Shared, WalkerSpec};

/// The measured surfaces of one CPU.
#[derive(Clone, Debug)]
pub(crate) struct Surface {
    /// Short name.
    pub(crate) id: String,
    pub(crate) machine: Machine,
    points: Vec<Point>,
}

/// One measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    order: Order,
    working_set: u64,
    /// Bytes from element to element.
    apart: u64,
    clocks: f64,
}

/// A surface beside what is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) points: usize,
    /// Rank correlation of simulated with measured clocks, by order.
    pub(crate) rank: [(Order, f64); 2],
    /// How far simulated clocks are off, on average, as a share.
    pub(crate) error: f64,
    /// Clocks that random order over all costs more than random order within windows, where nearly all of it is page walks: measured, simulated.
    pub(crate) extra: [f64; 2],
    /// Pairs of points behind that.
    pub(crate) pairs: usize,
}

#[derive(Deserialize)]
struct File {
    surfaces: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    apart: Vec<u64>,
    windows: BTreeMap<u64, Vec<f64>>,
    random: BTreeMap<u64, Vec<f64>>,
}

/// Geometries by the ids of the surfaces.
const MACHINES: [(&str, &str); 13] = [
    ("k8-manchester", include_str!("data/k8-manchester.toml")),
    ("haswell-ep", include_str!("data/haswell-ep.toml")),
    ("skylake-x", include_str!("data/skylake-x.toml")),
    ("alder-lake-p", include_str!("data/alder-lake-p.toml")),
    ("zen2-rome", include_str!("data/zen2-rome.toml")),
    ("nehalem", include_str!("data/nehalem.toml")),
    ("broadwell-e", include_str!("data/broadwell-e.toml")),
    ("rocket-lake", include_str!("data/rocket-lake.toml")),
    ("raptor-lake-p", include_str!("data/raptor-lake-p.toml")),
    ("meteor-lake-p", include_str!("data/meteor-lake-p.toml")),
    ("zen1", include_str!("data/zen1.toml")),
    ("zen3", include_str!("data/zen3.toml")),
    ("zen4", include_str!("data/zen4.toml")),
];

/// The surfaces that the model was made with.
///
/// # Errors
/// If a geometry is not one; a test reads them all.
pub(crate) fn surfaces() -> Result<Vec<Surface>, MachineError> {
    of(include_str!("data/clocks.json"))
}

/// Those of CPUs that it was not made with.
///
/// # Errors
/// As [`surfaces`].
pub(crate) fn unseen() -> Result<Vec<Surface>, MachineError> {
    of(include_str!("data/unseen.json"))
}

fn of(clocks: &str) -> Result<Vec<Surface>, MachineError> {
    let file: File = serde_json::from_str(clocks).unwrap_or(File { surfaces: Vec::new() });
    let geometry = |id: &str| MACHINES.iter().find(|(known, _)| *known == id);
    let rows = file.surfaces.into_iter();
    rows.filter_map(|row| Some((geometry(&row.id)?, row)))
        .map(|((id, text), row)| {
            Ok(Surface {
                id: row.id.clone(),
                machine: Machine::parse(&format!("{id}.toml"), text)?,
                points: row.points(),
            })
        })
        .collect()
}

impl Row {
    fn points(&self) -> Vec<Point> {
        let orders = [(Order::Windows, &self.windows), (Order::Random, &self.random)];
        let rows = orders
            .into_iter()
            .flat_map(|(order, rows)| rows.iter().map(move |row| (order, row)));
        let points = |(order, (kib, clocks)): (Order, (&u64, &Vec<f64>))| {
            let point = |(&apart, &clocks): (&u64, &f64)| Point {
                order,
                working_set: kib << 10,
                apart,
                clocks,
            };
            self.apart.iter().zip(clocks).map(point).collect::<Vec<_>>()
        };
        rows.flat_map(points).collect()
    }
}

impl Surface {
    /// Simulates some points: of working sets and distances one in `each`.
    pub(crate) fn judge(&self, each: usize) -> Judged {
        self.judged(&self.simulated(self.some(each)))
    }

    /// Clocks that walks cost, measured and simulated, and the pairs of points behind that.
    pub(crate) fn walks(&self) -> ([f64; 2], usize) {
        let far = self.points.iter().filter(|point| self.is_far(point));
        self.extra(&self.simulated(far.copied().collect()))
    }

    fn simulated(&self, points: Vec<Point>) -> Vec<(Point, f64)> {
        let (walker, weights) = (self.walker(), Weights::of(&self.machine));
        let clocks = on_all_cpus(&points, &|_, _| {}, |point| {
            let counts = point.count(&self.machine, &walker);
            weights.cycles(&counts, Mode::Native, &USUAL)
        });
        points.into_iter().zip(clocks).collect()
    }

    fn judged(&self, points: &[(Point, f64)]) -> Judged {
        let rank = |order: Order| {
            let of_order = points.iter().filter(|(point, _)| point.order == order);
            let (measured, simulated): (Vec<f64>, Vec<f64>) =
                of_order.map(|(point, clocks)| (point.clocks, *clocks)).unzip();
            (order, correlation(&measured, &simulated))
        };
        let off = points.iter().map(|(point, clocks)| (clocks / point.clocks - 1.0).abs());
        let (extra, pairs) = self.extra(points);
        Judged {
            points: points.len(),
            rank: [rank(Order::Windows), rank(Order::Random)],
            error: off.sum::<f64>() / points.len() as f64,
            extra,
            pairs,
        }
    }

    /// Where memory is far larger than all caches and elements are lines or a few of them: what random order over all costs more, measured and
    /// simulated. The second line of a pair of lines may be prefetched in windows, so a single line does not count.
    fn extra(&self, points: &[(Point, f64)]) -> ([f64; 2], usize) {
        let random = points
            .iter()
            .filter(|(point, _)| point.order == Order::Random && self.is_far(point));
        let pair = |(random, clocks): &(Point, f64)| {
            let same = |other: &Point| {
                other.order == Order::Windows && (other.working_set, other.apart) == (random.working_set, random.apart)
            };
            let (windows, near) = points.iter().find(|(other, _)| same(other))?;
            Some([random.clocks - windows.clocks, clocks - near])
        };
        let extra: Vec<[f64; 2]> = random.filter_map(pair).collect();
        let mean = |part: usize| extra.iter().map(|pair| pair[part]).sum::<f64>() / extra.len() as f64;
        ([mean(0), mean(1)], extra.len())
    }

    fn is_far(&self, point: &Point) -> bool {
        let last = self.machine.caches.last().map_or(0, |cache| cache.lines() * LINE);
        point.working_set >= 8 * last && (2 * LINE..=8 * LINE).contains(&point.apart)
    }

    /// Points of every so many rows and columns.
    fn some(&self, each: usize) -> Vec<Point> {
        let number = |of: &dyn Fn(&Point) -> u64, point: &Point| {
            let mut smaller: Vec<u64> = self.points.iter().map(of).filter(|&other| other < of(point)).collect();
            smaller.sort_unstable();
            smaller.dedup();
            smaller.len()
        };
        let chosen = |point: &&Point| {
            let (row, column) = (
                number(&|point| point.working_set, point),
                number(&|point| point.apart, point),
            );
            row % each == 0 && column % each == 0
        };
        self.points.iter().filter(chosen).copied().collect()
    }

    /// With walk caches in the middle of what is swept for machines, and base pages anywhere in memory.
    fn walker(&self) -> WalkerSpec {
        WalkerSpec {
            shared: Shared::Hashed,
            ..walkers(&self.machine).swap_remove(0)
        }
    }
}

/// What is not known stands in the middle of its sweep.
const USUAL: Choice = (0, MIDDLE);
/// Bytes of a line in all caches.
const LINE: u64 = 64;
/// Accesses that are counted at least.
const LEAST: u64 = 1 << 16;

impl Point {
    /// What is counted in the steady state of that order.
    fn count(&self, machine: &Machine, walker: &WalkerSpec) -> Counts {
        let setting = Setting::new(Mode::Native, Bytes::kib(4), Bytes::kib(4));
        let lines: u64 = machine.caches.iter().map(Cache::lines).sum();
        let mut elements = Elements::new(self.order, self.working_set, self.apart);
        // All that caches can hold, each line as often as it has elements.
        let enough = (lines + lines / 4 + LEAST) * (LINE / self.apart).max(1);
        let laps = 2 * elements.count();
        // Whole windows, whose first accesses differ from their last ones.
        let window = elements.in_window();
        let counted = LEAST.div_ceil(window) * window;
        let engine = Engine::new(&machine.arrays, setting, std::slice::from_ref(walker));
        engine.run_pattern(&mut elements, enough.min(laps), counted)
    }
}

#[cfg(test)]
mod tests;
