//! How the time lost to translation is to be found: a pattern on a CPU, or parts that are given.

use model::Bytes;

use translation::Mode;
use translation::machine::Machine;
use translation::patterns::Pattern;

/// How the time lost to translation is found.
#[derive(Clone, Debug)]
pub enum Translation {
    None,
    /// From a pattern of accesses on a CPU.
    Pattern {
        machine: Box<Machine>,
        mode: Mode,
        /// How the active memory is accessed.
        pattern: Pattern,
        guest_page: Bytes,
        /// Cycles of other work for each access.
        other_cycles: f64,
        /// Accesses simulated for each page size and working set.
        accesses: u64,
    },
    /// The part of the time by backing (small, large, 1 GiB), for tests and for parts that are known.
    Given([f64; 3]),
}
