//! The same rings through a hypervisor: guest page size x host backing, each with the native walk beside it.

mod cell;
mod field;
mod kept;
mod operations;
mod outcome;
mod readings;
mod spec;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use model::Warning;
use model::guest::Guest;
use vm::Hypervisor;

pub use field::memory;
pub use spec::{MOST_SIZES, Spec, TIME_PER_POINT};

use crate::Error;
use cell::{Cell, Run};
use field::Field;
use model::Progress;
use outcome::Outcome;

/// Can guests be run here at all?
///
/// # Errors
/// What [`run`] would say.
pub fn can_run() -> Result<(), Error> {
    Hypervisor::open().map(drop).map_err(Error::Vm)
}

/// Measures the matrix, the price of first touches, round trips and page-table operations. Combinations that are not available
/// come back without a number and with the reason.
///
/// # Errors
/// [`Error`]; every guest and all memory are given back in each case.
pub fn run(spec: &Spec, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<(Guest, Vec<Warning>), Error> {
    let begun = Instant::now();
    let spec = spec.checked()?;
    let hypervisor = Hypervisor::open()?;
    let pinned = chase::thread::Pinned::to(spec.cpu).map_err(Error::Pin)?;
    let calibration = chase::clock::Calibration::start();
    let mut outcome = Outcome::default();
    for (done, &kind) in spec.kinds.iter().enumerate() {
        let share = |page: usize| (done as f64 + page as f64 / spec.guest_pages.len() as f64) / spec.kinds.len() as f64;
        progress.step(0.9 * share(0), spec.left(share(0)), &format!("{kind}: taking memory"));
        let mut field = Field::take(&spec, kind);
        for (at, page) in spec.shuffled_pages(done).into_iter().enumerate() {
            let mut run = Run {
                hypervisor: &hypervisor,
                spec: &spec,
                page,
                stop,
            };
            progress.step(
                0.9 * share(at),
                spec.left(share(at)),
                &format!("guest {page} on {kind}"),
            );
            outcome.cells.push(Cell::measure(&mut run, &mut field)?);
        }
    }
    progress.step(0.9, Duration::from_secs(2), "exits and page-table operations");
    outcome.operations = operations::all(&hypervisor, stop)?;
    let ticks_per_ns = calibration.ticks_per_ns();
    let guest = outcome.publish(&spec, ticks_per_ns, pinned.cpu, begun);
    let warnings = outcome.warnings(&guest);
    Ok((guest, warnings))
}
