//! Which lines, or pages, the windows of a trace show, and what that says of those that none shows.

use std::collections::HashMap;

use translation::Access;

/// In how many windows at most something is that other such things may take the place of.
const FEW: u32 = 2;

/// In how many windows each line, or each page, was seen.
pub(super) struct Seen {
    /// Address bits within one.
    shift: u32,
    /// The last window that had it, and how many had.
    places: HashMap<u64, (usize, u32)>,
    window: usize,
}

impl Seen {
    pub(super) fn of(shift: u32) -> Self {
        Self {
            shift,
            places: HashMap::new(),
            window: 0,
        }
    }

    /// Counts an access; is it the first one of this window there?
    pub(super) fn see(&mut self, access: Access) -> bool {
        let seen = self.places.entry(access.address() >> self.shift);
        let seen = seen.or_insert((usize::MAX, 0));
        let is_first = seen.0 != self.window;
        if is_first {
            *seen = (self.window, seen.1 + 1);
        }
        is_first
    }

    /// What follows is of the next window.
    pub(super) fn begin_window(&mut self) {
        self.window += 1;
    }

    /// How many were seen in such a number of windows.
    fn count(&self, is_it: impl Fn(u32) -> bool) -> f64 {
        self.places.values().filter(|seen| is_it(seen.1)).count() as f64
    }

    /// Did only few windows have it?
    pub(super) fn is_rare(&self, place: u64) -> bool {
        self.places.get(&place).is_some_and(|seen| seen.1 <= FEW)
    }

    /// How many that no window shows there are for each that few do.
    pub(super) fn unseen_for_each_rare(&self) -> u64 {
        let unseen = self.estimated() - self.places.len() as f64;
        (unseen / self.count(|windows| windows <= FEW).max(1.0)).round() as u64
    }

    /// The share of those that few windows have which may stay in so much room beside the others, and is not seen to come again anyway. Half of what
    /// the estimate allows: that is a lower bound, and used more unevenly, more lines come rarely.
    pub(super) fn staying(&self, room: u64) -> f64 {
        let (once, often) = (self.count(|windows| windows == 1), self.count(|windows| windows > FEW));
        let fits = (room as f64 - often).max(0.0) / (self.estimated() - often).max(1.0);
        let again = 1.0 - once / (self.places.len() as f64 - often).max(1.0);
        ((fits.min(1.0) - again) / (1.0 - again).max(1e-9)).max(0.0) / 2.0
    }

    pub(super) fn is_seen(&self, place: u64) -> bool {
        self.places.contains_key(&place)
    }

    /// How many the program uses, those that no window showed included: by how many were seen in one window and in two (Chao 1987).
    fn estimated(&self) -> f64 {
        let [once, twice] = [1, 2].map(|number| self.count(|windows| windows == number));
        self.places.len() as f64 + once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0))
    }
}
