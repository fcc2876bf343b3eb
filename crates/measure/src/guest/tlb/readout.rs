//! TLB content read out by changed page-table entries (TLB;DR, USENIX Security 2022), and the controls that say whether it can be.

use model::guest::GuestPage;
use model::guest::tlb::Readout;
use model::tlb::{Entries, Ways};
use vm::stale::Stale;
use vm::visits::Node;
use vm::{Hypervisor, Memory, Window};

use super::ground::{SMALL, place, shuffled};

/// Somebody who can visit pages and tell whether one of them is still held.
pub(super) trait Held {
    /// After these pages were visited in this order, with nothing held before: is one of them held?
    fn is_held(&mut self, visits: &[u64], page: u64) -> Result<bool, vm::Error>;
}

/// More pages than any TLB holds.
const MANY: u64 = 1 << 14;
/// Pages one apart of which fall into one set of any known TLB.
const SET_STRIDE: u64 = 1 << 11;
/// Visits to one set: more than any known TLB has ways.
const SET_PAGES: u64 = 32;
/// Pages of other sets of a last level with at least so many sets as [`FILL_SETS`], enough to clear any first level.
const FILL: u64 = 400;
const FILL_SETS: u64 = 64;
/// Pages asked for in each control.
const CONTROLS: usize = 8;
/// Pages asked for to count entries.
const ASKED: usize = 256;

/// Counts entries and ways and looks at which pages stay, if the controls say that this can be seen at all.
pub(super) fn read_out(held: &mut dyn Held, stop: &dyn Fn() -> bool) -> Result<Readout, vm::Error> {
    if let Some(why) = blind(held)? {
        return Ok(Readout::Blind { why });
    }
    let mut visited = 32;
    while visited < MANY && share(held, visited, 0..visited, 32)? > 0.75 {
        visited *= 2;
        if stop() {
            return Ok(blind_as("stopped before it was done"));
        }
    }
    let share_held = share(held, visited, 0..visited, ASKED)?;
    let oldest = share(held, visited, 0..visited / 8, CONTROLS)?;
    let latest = share(held, visited, visited - visited / 8..visited, CONTROLS)?;
    Ok(Readout::Seen {
        entries: counted(share_held, visited),
        ways: ways(held)?,
        latest_first: latest > 0.9 && oldest < 0.1,
    })
}

fn blind_as(why: &str) -> Readout {
    Readout::Blind { why: why.to_owned() }
}

/// Why the answers would mean nothing: a page just visited must be held, and one visited before very many others must not.
fn blind(held: &mut dyn Held) -> Result<Option<String>, vm::Error> {
    let few: Vec<u64> = (0..CONTROLS as u64).collect();
    let just = few
        .iter()
        .map(|&page| held.is_held(&few, page))
        .collect::<Result<Vec<bool>, _>>()?;
    if just.iter().filter(|&&held| held).count() < CONTROLS - 1 {
        return Ok(Some(
            "a page that was visited just now is not held: the hypervisor intercepts the change of its entry and flushes"
                .to_owned(),
        ));
    }
    let gone = share(held, MANY, 0..MANY / 8, CONTROLS)?;
    Ok((gone > 0.3).then(|| {
        format!(
            "after {MANY} other pages the old page is still read: the hypervisor's own tables keep a changed entry until a flush, whatever the TLB holds"
        )
    }))
}

/// Of the first `visited` pages, visited in order: the share that is held of some of those in `among`.
fn share(held: &mut dyn Held, visited: u64, among: std::ops::Range<u64>, ask: usize) -> Result<f64, vm::Error> {
    let visits: Vec<u64> = (0..visited).collect();
    let room = (among.end - among.start) as usize;
    let chosen: Vec<usize> = shuffled(room, visited).into_iter().take(ask).collect();
    let mut found = 0;
    for &page in &chosen {
        found += u32::from(held.is_held(&visits, among.start + page as u64)?);
    }
    Ok(f64::from(found) / chosen.len().max(1) as f64)
}

/// A full TLB holds as many of the pages as it has entries, whichever these are. The range is the 95 % interval of a sample.
fn counted(share: f64, visited: u64) -> Entries {
    let all = visited as f64;
    let half = if visited as usize <= ASKED {
        0.0
    } else {
        1.96 * (share * (1.0 - share) / ASKED as f64).sqrt()
    };
    let entries = |share: f64| (share.clamp(0.0, 1.0) * all).round() as u32;
    Entries {
        low: entries(share - half),
        high: entries(share + half),
    }
}

/// Pages of one set, then enough of others to clear the first level: how many of the set are left? All of them if the set is
/// found by a hash or there is one set only.
fn ways(held: &mut dyn Held) -> Result<Option<Ways>, vm::Error> {
    let set = (0..SET_PAGES).map(|number| number * SET_STRIDE);
    let fill = (1..=FILL).filter(|page| page % FILL_SETS != 0);
    let visits: Vec<u64> = set.clone().chain(fill).collect();
    let mut found = 0;
    for page in set {
        found += u32::from(held.is_held(&visits, page)?);
    }
    Ok((1..SET_PAGES as u32).contains(&found).then_some(Ways::Count(found)))
}

/// The frames behind the pages: each page's word lies in a frame that many share, at a place of its own.
const FRAMES: u64 = 1 << 10;
/// Bytes that a guest needs for it: the frames, and two pages that [`Stale`] wants.
pub(super) const MEMORY: u64 = (FRAMES + 2) * SMALL;

/// The pages, with their entries in sight.
pub(super) fn window() -> Window {
    Window {
        virt: place(0),
        page: GuestPage::Size4K,
        frames: (0..SET_PAGES * SET_STRIDE).map(|page| page % FRAMES * SMALL).collect(),
        entries: Some(place(1)),
    }
}

/// A guest that is asked.
pub(super) struct InGuest<'m>(Stale<'m>);

impl<'m> InGuest<'m> {
    pub(super) fn new(hypervisor: &Hypervisor, memory: Memory<'m>, window: &'m Window) -> Result<Self, vm::Error> {
        Ok(Self(Stale::new(hypervisor, memory, window)?))
    }
}

fn node(page: u64) -> Node {
    let within = page / FRAMES * 8;
    Node {
        virt: place(0) + page * SMALL + within,
        offset: page % FRAMES * SMALL + within,
    }
}

impl Held for InGuest<'_> {
    fn is_held(&mut self, visits: &[u64], page: u64) -> Result<bool, vm::Error> {
        let nodes: Vec<Node> = visits.iter().map(|&page| node(page)).collect();
        self.0.is_held(&nodes, node(page))
    }
}

#[cfg(test)]
#[path = "readout_tests.rs"]
mod tests;
