//! What a move to another CPU costs a thread: its first pass over its memory there, against a pass where it was.

mod contention;
mod live;
mod outcome;
mod pairs;
mod spec;
#[cfg(test)]
mod tests;

use std::time::Instant;

use model::migration::Migration;
use model::placement::Kind;
use model::{Progress, Warning};

pub use pairs::pairs;
pub use spec::Spec;

use crate::rounds::{Rounds, Turn};
use crate::{Error, distinct};
use live::Bench;
use outcome::Taken;

/// Visits to a point: then its interval is what it is.
const MOST_VISITS: u32 = 60;
/// An interval of so much of the cost to both sides is narrow.
const NARROW: f64 = 0.05;

/// Measures each kind of move with each footprint. What does not settle comes back as a bound.
///
/// # Errors
/// [`Error`] says why nothing was measured. The calling thread may run on all CPUs again in any case.
pub fn run(
    spec: &Spec,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<(Migration, Vec<Warning>), Error> {
    let begun = Instant::now();
    if spec.kinds.is_empty() {
        let why = "fewer than two CPUs may be used: a move needs another one";
        return Err(Error::Spec(why.to_owned()));
    }
    let mut sweep = Sweep {
        spec,
        begun,
        bench: Bench::new(spec)?,
        taken: vec![Taken::default(); spec.kinds.len() * spec.sizes.len()],
    };
    let rounds = sweep.run(progress, stop)?;
    let points = sweep.taken.iter().enumerate().map(|(at, taken)| {
        let (kind, size) = sweep.place(at);
        let (backing, unproved) = sweep.bench.prove(size);
        taken.point(spec.kinds[kind].0, spec.sizes[size], backing, unproved)
    });
    let kinds = (0..spec.kinds.len()).map(|kind| {
        let own = &sweep.taken[kind * spec.sizes.len()..][..spec.sizes.len()];
        outcome::moves(&spec.kinds[kind], own)
    });
    let kinds = kinds.collect();
    let points = points.collect();
    // The threads at work have their own CPUs.
    drop(sweep);
    let contention = contention::run(spec, progress, stop)?;
    let migration = Migration {
        cpus: cpus(spec),
        kinds,
        absent: Kind::KNOWN
            .into_iter()
            .filter(|known| spec.kinds.iter().all(|(kind, _)| kind != known))
            .collect(),
        page: spec.page,
        points,
        contention,
        rounds,
        seconds: begun.elapsed().as_secs_f64(),
    };
    let mut warnings = outcome::warnings(&migration);
    warnings.extend(contention::warnings(&migration.contention));
    Ok((migration, warnings))
}

fn cpus(spec: &Spec) -> Vec<u32> {
    let pairs = spec.kinds.iter().flat_map(|(_, pairs)| pairs.iter().flatten());
    distinct(pairs.copied())
}

/// All points: for each kind each size.
struct Sweep<'a> {
    spec: &'a Spec,
    begun: Instant,
    bench: Bench,
    taken: Vec<Taken>,
}

impl Sweep<'_> {
    /// Kind and size of a point.
    fn place(&self, point: usize) -> (usize, usize) {
        (point / self.spec.sizes.len(), point % self.spec.sizes.len())
    }

    /// Visits them until all are narrow or the time is over, and gives the number of rounds.
    fn run(&mut self, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<u32, Error> {
        let now = self.begun.elapsed();
        let mut rounds = Rounds::new(self.taken.len(), self.spec.seed, self.spec.budget, now);
        while let Some(turn) = rounds.next(self.begun.elapsed(), |point, round, _| {
            round < MOST_VISITS && !self.taken[point].is_enough(NARROW)
        }) {
            Error::if_stopped(stop)?;
            let Some(pair) = self.pair(&turn) else { continue };
            let (_, size) = self.place(turn.point);
            let [one, two] = pair;
            let what = format!("{} between CPUs {one} and {two}", self.spec.sizes[size]);
            rounds.visit(&turn, progress, &what);
            let visit = self.bench.visit(size, pair)?;
            self.taken[turn.point].add(&visit);
        }
        Ok(rounds.done())
    }

    /// Pairs take turns, and so do their directions. All points get the visits that an interval needs, however long that takes.
    fn pair(&self, turn: &Turn) -> Option<[u32; 2]> {
        let (kind, size) = self.place(turn.point);
        let is_needed = (turn.round as usize) < stats::LEAST_VISITS;
        let pairs = &self.spec.kinds[kind].1;
        let pair = pairs.get(turn.round as usize % pairs.len().max(1))?;
        (is_needed || turn.left >= self.bench.expected(size)).then_some(*pair)
    }
}
