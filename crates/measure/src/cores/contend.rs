//! Two CPUs that multiply without pause: on one core they halve each other, on two they do not notice.

use super::Error;
use crate::contend::{Load, Pair};

/// How much longer the first CPU takes for a block while the second is at work too, one value per round.
pub(super) fn slowdowns(cpus: [u32; 2], rounds: u32) -> Result<Vec<f64>, Error> {
    let pinned = |(cpu, source)| Error::Stay { cpu, source };
    let [mut own, mut beside] = [Load::multiply(), Load::multiply()];
    let rounds = Pair { cpus, rounds }.run([&mut own, &mut beside]).map_err(pinned)?;
    Ok(rounds.into_iter().map(|round| 1.0 / round.share()).collect())
}
