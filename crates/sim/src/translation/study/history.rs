//! What lies between the windows of a trace, as far as the windows show it: accesses that fill caches and TLBs before the first one counts.
//!
//! A window is too short to fill caches. Page-table lines that a program uses all the time would be read from memory in each window, which
//! would make huge pages look twice as good as they are. So all windows run before, several times, each with the first access to each line. Pages that few windows have
//! stand for those that none has: in each round but a few they are moved within 2 MiB, so that as many pages are used as the kernel counted between two windows, or as
//! the program is estimated to use. Lines of data do not come again where memory is larger than the caches: most are moved within their page, which leaves its page
//! tables warm.

use std::collections::HashMap;
use std::io::Read;

use super::seen::Seen;
use crate::translation::access::Access;
use crate::translation::caches::Cache;
use crate::translation::engine::Accesses;
use crate::translation::machine::Machine;
use crate::translation::random::mixed;
use crate::translation::trace::{Trace, TraceError};

/// Accesses at most; later windows fill nothing.
const MOST: usize = 1 << 22;
/// Address bits within a line, a base page, and 2 MiB.
const LINE: u32 = 6;
const PAGE: u32 = 12;
const HUGE: u32 = 21;
/// Base pages of 2 MiB, and how far one is moved in each round: pages of one line of the page table are apart.
const GROUP: u64 = 1 << (HUGE - PAGE);
const STRIDE: u64 = 73;
/// Rounds in which a page is moved.
const MOST_ROUNDS: u64 = GROUP - 1;
/// Lines of a page.
const LINES: u64 = 1 << (PAGE - LINE);

/// The accesses of all windows, for [`super::Replay::history`]; none of a trace without windows.
///
/// # Errors
/// What is wrong with the trace.
pub fn history<R: Read>(trace: &mut Trace<R>, machine: &Machine) -> Result<Vec<Access>, TraceError> {
    if trace.head().is_none() {
        return Ok(Vec::new());
    }
    let windows = Windows::read(trace)?;
    let moves = windows.moves(machine);
    let round = |round: u64| windows.first.iter().map(move |access| (round, *access));
    let history = (0..=moves.rounds).flat_map(round);
    Ok(history
        .map(|(round, access)| Access::new(moves.moved(access.address(), round), access.side()))
        .collect())
}

/// What a trace shows.
struct Windows {
    /// The first access to each line in each window.
    first: Vec<Access>,
    lines: Seen,
    pages: Seen,
    /// Base pages that were used since the window before each.
    used: Vec<Option<u64>>,
}

impl Windows {
    fn read<R: Read>(trace: &mut Trace<R>) -> Result<Self, TraceError> {
        let mut windows = Self {
            first: Vec::new(),
            lines: Seen::of(LINE),
            pages: Seen::of(PAGE),
            used: Vec::new(),
        };
        let mut block = Vec::new();
        while windows.first.len() < MOST {
            block.clear();
            let gap = trace.fill(&mut block)?;
            if gap.is_none() && block.is_empty() {
                break;
            }
            for &access in &block {
                windows.pages.see(access);
                if windows.lines.see(access) {
                    windows.first.push(access);
                }
            }
            // The first gap is before the first window.
            if gap.is_some() && !windows.first.is_empty() {
                windows.used.push(trace.finished_window().used_pages);
                windows.lines.begin_window();
                windows.pages.begin_window();
            }
        }
        windows.used.push(trace.finished_window().used_pages);
        Ok(windows)
    }

    fn moves(&self, machine: &Machine) -> Moves<'_> {
        let room: u64 = machine.caches.iter().map(Cache::lines).sum();
        let most = MOST_ROUNDS.min((MOST / self.first.len().max(1)) as u64);
        let usual = self.pages.unseen_for_each_rare();
        let groups = self.pages.rare_in_groups(HUGE - PAGE);
        let places = (GROUP * groups.len() as u64).max(1) as f64;
        let turns_of = |windows: &[usize]| {
            let used = windows.iter().filter_map(|&window| *self.used.get(window)?).max();
            let wanted = used.unwrap_or(0) as f64 / places;
            turns(wanted, windows.len()).max(usual).min(most)
        };
        let turns: HashMap<u64, u64> = groups
            .iter()
            .map(|(&group, windows)| (group, turns_of(windows)))
            .collect();
        Moves {
            rounds: turns.values().copied().max().unwrap_or(0),
            turns,
            staying: self.lines.staying(room),
            lines: &self.lines,
            pages: &self.pages,
        }
    }
}

/// In how many rounds so many pages of a group have to be moved for a share of its places to be used: each covers `rounds / GROUP` of them, by chance.
fn turns(wanted: f64, pages: usize) -> u64 {
    /// The last places of a group take long.
    const NEARLY_ALL: f64 = 0.98;
    let unused = 1.0 - wanted.min(NEARLY_ALL);
    let rounds = GROUP as f64 * (1.0 - unused.powf(1.0 / pages as f64));
    (rounds as u64).saturating_sub(1)
}

/// What is moved, and where.
struct Moves<'a> {
    lines: &'a Seen,
    pages: &'a Seen,
    rounds: u64,
    /// By group: the rounds in which its rare pages are moved.
    turns: HashMap<u64, u64>,
    /// The share of lines that stay in the caches.
    staying: f64,
}

impl Moves<'_> {
    fn moved(&self, address: u64, round: u64) -> u64 {
        let (page, line) = (address >> PAGE, address >> LINE);
        let turns = self.turns.get(&(address >> HUGE)).filter(|_| self.pages.is_rare(page));
        let period = 1 + turns.copied().unwrap_or(0);
        match (round + mixed(page) % period) % period {
            0 if self.lines.is_rare(line) && !is_below(line, self.staying) => self.unseen_beside(address, round),
            0 => address,
            // Of a page that comes again, another line.
            turn => address ^ ((turn * STRIDE % GROUP) << PAGE) ^ ((round / period % LINES) << LINE),
        }
    }

    /// Another line of an address's page, that no window has, if there is one.
    fn unseen_beside(&self, address: u64, round: u64) -> u64 {
        let beside = |step: u64| address ^ ((1 + (round + step) % (LINES - 1)) << LINE);
        let unseen = |address: &u64| !self.lines.is_seen(address >> LINE);
        (0..LINES - 1)
            .map(beside)
            .find(unseen)
            .unwrap_or(address >> PAGE << PAGE)
    }
}

/// Does chance, alike for all accesses to a line or page, fall below a share?
fn is_below(place: u64, share: f64) -> bool {
    const ALL: f64 = (1_u64 << 53) as f64;
    ((mixed(place) >> 11) as f64) < share * ALL
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
