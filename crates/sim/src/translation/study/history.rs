//! What lies between the windows of a trace, as far as the windows show it: accesses that fill caches and TLBs before the first one counts.
//!
//! A window is too short to fill caches. Page-table lines that a program uses all the time would be read from memory in each window, which
//! would make huge pages look twice as good as they are. So all windows run before, several times. Pages that few windows have stand for those that none has: in each
//! round but one they are moved within 2 MiB, so that as many pages are used as the program is estimated to use. Lines of data do not come again where memory is larger
//! than the caches: most are moved within their page, which leaves its page tables warm.

use std::collections::HashMap;
use std::io::Read;

use crate::translation::access::Access;
use crate::translation::caches::Cache;
use crate::translation::engine::Accesses;
use crate::translation::machine::Machine;
use crate::translation::random::mixed;
use crate::translation::trace::{Trace, TraceError};

/// Accesses at most; later windows fill nothing.
const MOST: usize = 1 << 22;
/// Address bits within a line, and within a base page.
const LINE: u32 = 6;
const PAGE: u32 = 12;
/// Base pages of 2 MiB, and how far one is moved in each round: pages of one line of the page table are apart.
const GROUP: u64 = 512;
const STRIDE: u64 = 73;
/// In how many windows at most something is that other such things may take the place of.
const FEW: u32 = 2;
/// Rounds in which a page is moved.
const MOST_ROUNDS: u64 = GROUP - 1;

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
    let most = MOST_ROUNDS.min((MOST / all.len().max(1)) as u64);
    let moves = Moves {
        rounds: pages.unseen_for_each_rare().min(most),
        staying: lines.staying(room),
        lines,
        pages,
    };
    let round = |round: u64| all.iter().map(move |access| (round, *access));
    let history = (0..=moves.rounds).flat_map(round);
    Ok(history
        .map(|(round, access)| Access::new(moves.moved(access.address(), round), access.side()))
        .collect())
}

/// What is moved, and where.
struct Moves {
    lines: Seen,
    pages: Seen,
    /// Rounds in which a page is moved.
    rounds: u64,
    /// The share of lines that stay in the caches.
    staying: f64,
}

impl Moves {
    fn moved(&self, address: u64, round: u64) -> u64 {
        let (page, line) = (address >> PAGE, address >> LINE);
        let turn = match self.pages.is_rare(page) {
            true => (round + mixed(page)) % (self.rounds + 1),
            false => 0,
        };
        match turn {
            0 if self.lines.is_rare(line) && !is_below(line, self.staying) => self.lines.unseen_beside(address, round),
            0 => address,
            _ => address ^ ((turn * STRIDE % GROUP) << PAGE),
        }
    }
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

    fn is_rare(&self, place: u64) -> bool {
        self.windows.get(&place).is_some_and(|seen| seen.1 <= FEW)
    }

    /// How many that no window shows there are for each that one or two do.
    fn unseen_for_each_rare(&self) -> u64 {
        let rare = self.windows.values().filter(|seen| seen.1 <= FEW).count() as f64;
        let unseen = self.estimated() - self.windows.len() as f64;
        (unseen / rare.max(1.0)).round() as u64
    }

    /// The share of those that few windows have which may stay in so much room beside the others, and is not seen to come again anyway. Half of what
    /// the estimate allows: that is a lower bound, and used more unevenly, more lines come rarely.
    fn staying(&self, room: u64) -> f64 {
        let of = |is_it: fn(u32) -> bool| self.windows.values().filter(|seen| is_it(seen.1)).count() as f64;
        let (once, often) = (of(|windows| windows == 1), of(|windows| windows > FEW));
        let fits = (room as f64 - often).max(0.0) / (self.estimated() - often).max(1.0);
        let again = 1.0 - once / (self.windows.len() as f64 - often).max(1.0);
        ((fits.min(1.0) - again) / (1.0 - again).max(1e-9)).max(0.0) / 2.0
    }

    /// Another line of an address's page, that no window has, if there is one.
    fn unseen_beside(&self, address: u64, round: u64) -> u64 {
        let beside = |step: u64| address ^ ((1 + (round + step) % 63) << LINE);
        let unseen = |address: &u64| !self.windows.contains_key(&(address >> LINE));
        (0..63).map(beside).find(unseen).unwrap_or(address >> PAGE << PAGE)
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
