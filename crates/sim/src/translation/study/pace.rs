//! How fast a core runs the instructions of a part of a trace, and how many of their waits overlap.

use super::Range;
use crate::translation::trace::own::Core;

/// Core cycles of an instruction that does not wait for memory, where the instructions are not known: four at a time and more on wide cores, one on simple code.
pub(super) const INSTRUCTION: Range = Range::new(0.2, 0.5, 1.0);
/// Misses that are waited for at a time, likewise: one in a chain of loads; what out-of-order cores reach on independent ones.
pub(super) const OVERLAP: Range = Range::new(1.0, 2.0, 6.0);
/// Lines from memory that a core has in flight ahead of a stream: from the fill buffers of a first-level cache to the queue of a second-level one.
pub(super) const FETCHED: Range = Range::new(16.0, 24.0, 48.0);

/// Of a part of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Core cycles without waits for memory.
    pub cycles: Range,
    /// Waits for lines that overlap.
    pub lines: Range,
    /// Waits for translation that overlap.
    pub pages: Range,
}

impl Pace {
    /// Of a share of a window.
    pub(super) fn of(core: Core, share: f64) -> Self {
        let [least, middle, most] = core.cycles.map(|cycles| cycles as f64 * share);
        let overlap = |[few, many]: [u64; 2]| {
            let [few, many] = [few.min(many), few.max(many)].map(|hundredths| (hundredths as f64 / 100.0).max(1.0));
            Range::new(few, f64::midpoint(few, many), many)
        };
        Self {
            cycles: Range::new(least, middle, most),
            lines: overlap(core.lines),
            pages: overlap(core.pages),
        }
    }

    /// Of so many instructions that are not known.
    pub(super) fn usual(instructions: f64) -> Self {
        Self {
            cycles: INSTRUCTION.map(|each| each * instructions),
            lines: OVERLAP,
            pages: OVERLAP,
        }
    }
}
