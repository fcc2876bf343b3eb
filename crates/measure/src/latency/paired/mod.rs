//! What page kinds save against each other at a few working sets: short visits by turns on memory that is taken anew again and again.

mod draws;
mod live;
#[cfg(test)]
mod simulated_tests;

use std::time::{Duration, Instant};

use model::headline::{Headline, PairedGain};
use model::{Progress, Warning};

use self::draws::{Draws, Grid};
use self::live::Live;
use super::Spec;
use crate::{Error, distinct};

/// Measures the kinds of a spec against the first of them at its sizes, within its budget (or half a minute), as far as one draw of
/// memory fits into it. Kinds whose pages were not obtained come back without a number and with the reason.
///
/// # Errors
/// [`Error`]; everything is released in each case.
pub fn run(
    spec: &Spec,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<(Headline, Vec<Warning>), Error> {
    let begun = Instant::now();
    let spec = Spec {
        kinds: distinct(spec.kinds.iter().copied()),
        sizes: distinct(spec.sizes.iter().copied()),
        ..spec.clone()
    };
    if spec.kinds.len() < 2 || spec.sizes.is_empty() {
        return Err(Error::Nothing("give base pages, a larger kind and a size"));
    }
    if super::plan::shifts(&spec)?.len() > 1 {
        return Err(Error::Nothing("memory does not suffice for all page kinds at once"));
    }
    let grid = Grid {
        sizes: spec.sizes.len(),
        kinds: spec.kinds.len(),
    };
    let budget = spec.budget.unwrap_or(USUAL);
    let calibration = chase::clock::Calibration::start();
    let mut bench = Live::new(&spec, stop)?;
    let mut each = |draws: &Draws, left: Duration| {
        let done = 1.0 - left.as_secs_f64() / budget.as_secs_f64().max(1e-9);
        progress.step(done, left, &format!("page kinds by turns, draw {}", draws.len() + 1));
    };
    let draws = draws::run(grid, spec.seed, budget, &mut bench, &mut each)?;
    let ticks_per_ns = calibration.ticks_per_ns();
    let headline = Headline {
        gains: gains(&spec, grid, &draws, &bench, ticks_per_ns),
        draws: draws.len() as u32,
        rounds: draws::ROUNDS,
        settled: draws.is_settled,
        cpu: bench.cpu(),
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok((headline, Vec::new()))
}

/// Time for everything if no budget is given.
const USUAL: Duration = Duration::from_secs(30);

/// Every pair of kinds at every working set, the easier kind as what the other is compared with.
fn gains(spec: &Spec, grid: Grid, draws: &Draws, bench: &Live<'_>, ticks_per_ns: f64) -> Vec<PairedGain> {
    let mut gains = Vec::new();
    for (size, &bytes) in spec.sizes.iter().enumerate() {
        for (own, &kind) in spec.kinds.iter().enumerate() {
            for (other, &against) in spec.kinds.iter().enumerate().take(own) {
                let (point, under) = (grid.point(size, own), grid.point(size, other));
                let saved = draws.saved(point, under, stats::CONFIDENCE);
                let (backing, reason) = bench.proof(point);
                let (_, other_reason) = bench.proof(under);
                let few = || "memory was taken too few times for an interval".to_owned();
                gains.push(PairedGain {
                    bytes,
                    kind,
                    against,
                    saved,
                    draws: draws.percents(point, under),
                    ns: draws.time(point).map(|ticks| ticks / ticks_per_ns),
                    against_ns: draws.time(under).map(|ticks| ticks / ticks_per_ns),
                    backing,
                    not_measured: saved.is_none().then(|| reason.or(other_reason).unwrap_or_else(few)),
                });
            }
        }
    }
    gains
}
