//! What lies between the windows of a trace, as far as the windows show it: accesses that fill caches and TLBs before the first one counts.
//!
//! A window is too short to fill caches. Page-table lines that a program uses all the time would be read from memory in each window, which
//! would make huge pages look twice as good as they are. So all windows run once before. The same lines do not come again, though, where memory
//! is larger than the caches: most are displaced in between. Those are moved within their page, so that page tables are warm and data is not.
//! Likewise for TLBs: a page is moved among those that share a line of the page table.

use std::collections::HashMap;
use std::io::Read;

use model::Bytes;

use crate::translation::access::Access;
use crate::translation::caches::Cache;
use crate::translation::engine::Accesses;
use crate::translation::machine::Machine;
use crate::translation::random::mixed;
use crate::translation::trace::{Trace, TraceError};

/// Accesses that are kept at most; later windows fill nothing.
const MOST: usize = 1 << 24;
/// Address bits within a line, and the bit that moves it within its base page.
const LINE: u32 = 6;
const OTHER_LINE: u64 = 1 << 11;
/// Likewise for base pages, eight of which share a line of the page table.
const PAGE: u32 = 12;
const OTHER_PAGE: u64 = 1 << 14;

/// The accesses of all windows, for [`super::Replay::history`]; none of a trace without windows.
///
/// # Errors
/// What is wrong with the trace.
pub fn history<R: Read>(trace: &mut Trace<R>, machine: &Machine) -> Result<Vec<Access>, TraceError> {
    let mut all = Vec::new();
    if trace.head().is_none() {
        return Ok(all);
    }
    let (mut lines, mut pages) = (Seen::of(LINE), Seen::of(PAGE));
    while all.len() < MOST {
        let before = all.len();
        let gap = trace.fill(&mut all)?;
        for seen in [&mut lines, &mut pages] {
            seen.see(&all[before..]);
            seen.window += u32::from(gap.is_some());
        }
        if gap.is_none() && all.len() == before {
            break;
        }
    }
    let room: u64 = machine.caches.iter().map(Cache::lines).sum();
    let reach: u64 = machine.entries(Bytes::kib(4)).iter().sum();
    let (lines, pages) = (lines.staying(room), pages.staying(reach));
    let moved = |access: Access| {
        let address = access.address();
        let page = OTHER_PAGE * u64::from(!is_below(address >> PAGE, pages));
        let line = OTHER_LINE * u64::from(!is_below(address >> LINE, lines));
        Access::new(address ^ page ^ line, access.side())
    };
    Ok(all.into_iter().map(moved).collect())
}

/// Does chance, alike for all accesses to a line or page, fall below a share?
fn is_below(place: u64, share: f64) -> bool {
    const ALL: f64 = (1_u64 << 53) as f64;
    ((mixed(place) >> 11) as f64) < share * ALL
}

/// In how many windows each line, or each page, was seen.
struct Seen {
    /// Address bits within one.
    shift: u32,
    /// The last window that had it, and how many had.
    windows: HashMap<u64, (u32, u32)>,
    window: u32,
}

impl Seen {
    fn of(shift: u32) -> Self {
        Self {
            shift,
            windows: HashMap::new(),
            window: 0,
        }
    }

    fn see(&mut self, accesses: &[Access]) {
        for access in accesses {
            let seen = self.windows.entry(access.address() >> self.shift);
            let seen = seen.or_insert((self.window, 1));
            if seen.0 != self.window {
                *seen = (self.window, seen.1 + 1);
            }
        }
    }

    /// The share of all that is used which fits into so much room.
    fn staying(&self, room: u64) -> f64 {
        room as f64 / self.estimated()
    }

    /// How many the program uses, those that no window showed included: by how many were seen in one window and in two (Chao 1987).
    fn estimated(&self) -> f64 {
        let in_windows = |number: u32| self.windows.values().filter(|seen| seen.1 == number).count() as f64;
        let (once, twice) = (in_windows(1), in_windows(2));
        self.windows.len() as f64 + once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0))
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
