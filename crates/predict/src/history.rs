//! What lies between the windows of a trace, as far as the windows show it: accesses that fill caches and TLBs before the first one counts.
//!
//! A window is too short to fill caches. Page-table lines that a program uses all the time would be read from memory in each window, which
//! would make huge pages look twice as good as they are. So before each window it runs itself and those beside it, several times, each with the first access to each line:
//! what comes shortly before a window does most likely the same. Pages that few windows have
//! stand for those that none has: in each round but a few they are moved within 2 MiB, so that as many pages are used as the kernel counted before the window, or as
//! the program is estimated to use. Lines of data do not come again where memory is larger than the caches: most are moved within their page, which leaves its page
//! tables warm.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;

use crate::seen::Seen;
use crate::trace::{Trace, TraceError};
use translation::machine::Machine;
use translation::random::mixed;
use translation::{Access, Accesses, Cache};

/// Accesses at most, before all windows together.
const MOST: usize = 1 << 22;
/// Address bits within a line, a base page, and 2 MiB.
const LINE: u32 = 6;
const PAGE: u32 = 12;
const HUGE: u32 = 21;
/// Base pages of 2 MiB.
const GROUP: u64 = 1 << (HUGE - PAGE);
/// Places that a page is moved to at most.
const MOST_TURNS: u64 = 8 * GROUP;
const LINES: u64 = 1 << (PAGE - LINE);

/// What runs before each window, for [`crate::Replay::history`]; nothing of a trace without windows.
///
/// # Errors
/// What is wrong with the trace.
pub fn history<R: Read>(trace: &mut Trace<R>, machine: &Machine) -> Result<Vec<Vec<Access>>, TraceError> {
    if trace.head.is_none() {
        return Ok(Vec::new());
    }
    let windows = Windows::read(trace)?;
    let room = machine.caches.iter().map(Cache::lines).sum();
    let mut passed = 0;
    let before = |window| windows.before(window, room, &mut passed);
    Ok((0..windows.first.len()).map(before).collect())
}

/// What a trace shows.
struct Windows {
    /// By window: the first access to each line.
    first: Vec<Vec<Access>>,
    lines: Seen,
    pages: Seen,
    /// Base pages that were used since the window before each.
    used: Vec<Option<u64>>,
}

impl Windows {
    fn read<R: Read>(trace: &mut Trace<R>) -> Result<Self, TraceError> {
        let mut windows = Self {
            first: vec![Vec::new()],
            lines: Seen::of(LINE),
            pages: Seen::of(PAGE),
            used: Vec::new(),
        };
        let (mut block, mut last) = (Vec::new(), 0);
        loop {
            block.clear();
            let gap = trace.fill(&mut block)?;
            if gap.is_none() && block.is_empty() {
                break;
            }
            for &access in &block {
                windows.pages.see(access);
                if windows.lines.see(access) {
                    windows.first[last].push(access);
                }
            }
            // The first gap is before the first window.
            if gap.is_some() && !windows.first[last].is_empty() {
                windows.used.push(trace.finished_window().used_pages);
                windows.lines.begin_window();
                windows.pages.begin_window();
                windows.first.push(Vec::new());
                last += 1;
            }
        }
        windows.used.push(trace.finished_window().used_pages);
        Ok(windows)
    }

    /// What runs before a window, behind so many rounds before the others.
    fn before(&self, window: usize, room: u64, passed: &mut u64) -> Vec<Access> {
        let sources = self.sources(window);
        let moves = self.moves(&sources, self.used[window], room);
        let all = sources.accesses.len().max(1);
        let most = (MOST / self.first.len() / all) as u64;
        let begun = *passed;
        *passed += moves.longest.min(most) + 1;
        let rounds = (begun..*passed).flat_map(|round| sources.accesses.iter().map(move |access| (round, *access)));
        let moved = |(round, access): (u64, Access)| Access::new(moves.moved(access.address(), round), access.side());
        rounds.map(moved).collect()
    }

    /// It, which comes first so that what it uses is not fresh when it begins, and the windows beside it; others, the nearest first, while all those have no room for as many pages as the kernel counted. All if it did not count.
    fn sources(&self, window: usize) -> Sources {
        let wanted = self.used[window].unwrap_or(u64::MAX);
        let mut sources = Sources::default();
        for far in 0..self.first.len() {
            if far > 1 && GROUP * sources.groups.len() as u64 >= wanted {
                break;
            }
            for place in BTreeSet::from([window.wrapping_sub(far), window + far]) {
                if let Some(first) = self.first.get(place) {
                    sources.add(first, &self.pages);
                }
            }
        }
        sources
    }

    /// Where those accesses are moved if the program used so many pages.
    fn moves(&self, sources: &Sources, used: Option<u64>, room: u64) -> Moves<'_> {
        let usual = self.pages.unseen_for_each_rare();
        let wanted = used.unwrap_or(0) as f64 / (GROUP * sources.groups.len() as u64).max(1) as f64;
        let turns_of = |pages: &HashSet<u64>| turns(wanted, pages.len()).max(usual).min(MOST_TURNS);
        let turns: HashMap<u64, u64> = sources
            .groups
            .iter()
            .map(|(&group, pages)| (group, turns_of(pages)))
            .collect();
        Moves {
            longest: turns.values().copied().max().unwrap_or(0),
            turns,
            staying: self.lines.staying(room),
            lines: &self.lines,
            pages: &self.pages,
        }
    }
}

/// What runs before a window.
#[derive(Default)]
struct Sources {
    /// The first access to each line.
    accesses: Vec<Access>,
    /// Pages among them that few windows have, by 2 MiB.
    groups: HashMap<u64, HashSet<u64>>,
}

impl Sources {
    fn add(&mut self, first: &[Access], pages: &Seen) {
        for access in first {
            let page = access.address() >> PAGE;
            if pages.is_rare(page) {
                self.groups.entry(page >> (HUGE - PAGE)).or_default().insert(page);
            }
        }
        self.accesses.extend(first);
    }
}

/// To how many places so many pages of a group have to be moved for a share of all its places to be used: each goes to one by chance.
fn turns(wanted: f64, pages: usize) -> u64 {
    /// The last places of a group take long.
    const NEARLY_ALL: f64 = 0.98;
    let unused = 1.0 - wanted.min(NEARLY_ALL);
    let places = -unused.ln() * GROUP as f64 / pages as f64;
    (places as u64).saturating_sub(1)
}

struct Moves<'a> {
    lines: &'a Seen,
    pages: &'a Seen,
    /// The most of `turns`.
    longest: u64,
    /// By group: to how many places its rare pages are moved.
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
            turn => address ^ ((mixed(page ^ turn << 52) % GROUP) << PAGE) ^ ((round / period % LINES) << LINE),
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
