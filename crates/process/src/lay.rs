//! Where the pages of a captured program lie in memory.

use std::collections::{BTreeMap, BTreeSet};

use host::processes::frames_of;
use model::latency::Frames;

use crate::steps::Touch;

/// The ranges that are looked at, and how many at most: each takes 4 KiB.
const RANGE: u64 = 2 << 20;
const MOST: usize = 4096;

/// Frames by process and range, as they were when a window last touched it.
#[derive(Debug, Default)]
pub(crate) struct Lay(BTreeMap<(u32, u64), Vec<u64>>);

impl Lay {
    /// Looks at all pages around those that a window touched; nothing is found where frame numbers are hidden.
    pub(crate) fn look(&mut self, process: u32, touched: &[Touch]) {
        let ranges: BTreeSet<u64> = touched.iter().map(|touch| touch.address / RANGE).collect();
        for range in ranges {
            let place = (process, range);
            if self.0.len() >= MOST && !self.0.contains_key(&place) {
                continue;
            }
            match frames_of(process, range * RANGE, RANGE).into_result() {
                Ok(frames) => drop(self.0.insert(place, frames)),
                Err(_) => return,
            }
        }
    }

    /// All of them; none if none is known.
    pub(crate) fn frames(&self) -> Option<Frames> {
        Frames::of(self.0.values().flatten().copied())
    }
}
