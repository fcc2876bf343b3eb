//! What the kernel's memory and process operations cost: which, by how many workers, in which order, until when.
//!
//! Every visit to a point starts fresh processes of the program at hand ([`serve_if_asked`]), one for each worker: small,
//! single-threaded, pinned, and gone afterwards, so that the cost of a fork does not depend on the caller.

mod company;
mod crew;
mod live;
mod outcome;
mod plan;
mod samples;
mod spec;
mod sweep;
#[cfg(test)]
mod sweep_tests;
mod worker;

use std::io;
use std::time::Instant;

use model::Warning;
use model::kernelops::KernelOps;

pub use plan::{usual, within};
pub use spec::{Program, Spec};
pub use worker::serve_if_asked;

use crate::Error;
use company::Company;
use live::Live;
use model::Progress;
use sweep::sweep;

/// The CPUs that this program may use, in an order in which workers do not share a core before they must; `cores` are the
/// threads of each core.
///
/// # Errors
/// If the kernel does not say which are allowed.
pub fn cpus(cores: &[Vec<u32>]) -> io::Result<Vec<u32>> {
    Ok(plan::in_order(&chase::thread::allowed_cpus()?, cores))
}

/// Measures all points of the spec. What could not be done as named comes back without a number and with the reason.
///
/// # Errors
/// [`Error`]; no process is left in any case.
pub fn run(
    spec: &Spec,
    progress: &mut dyn Progress,
    stop: &dyn Fn() -> bool,
) -> Result<(KernelOps, Vec<Warning>), Error> {
    let begun = Instant::now();
    let targets = plan::targets(spec);
    if targets.is_empty() || spec.cpus.is_empty() {
        let why = "give at least one operation, one number of workers and one CPU";
        return Err(Error::Spec(why.to_owned()));
    }
    let calibration = chase::clock::Calibration::start();
    let company = Company::now();
    let mut live = Live::new(spec, &targets, stop);
    let sampled = sweep(&targets, spec.budget, spec.seed, &mut live, progress, stop)?;
    let ticks_per_ns = calibration.ticks_per_ns();
    let others = company.and_then(|company| company.others_until(Company::now()?));
    let warnings = outcome::warnings(&targets, &sampled, spec.budget, others);
    let fits = |target: &&plan::Target| (target.workers * target.op.cpus()) as usize <= spec.cpus.len();
    let used = targets.iter().filter(fits).map(|target| 2 * target.workers as usize);
    let result = KernelOps {
        points: outcome::points(&targets, &sampled, ticks_per_ns),
        tsc_ghz: ticks_per_ns,
        cpus: spec.cpus.iter().copied().take(used.max().unwrap_or(0)).collect(),
        rounds: sampled.rounds,
        seconds: begun.elapsed().as_secs_f64(),
    };
    Ok((result, warnings))
}
