//! Agile paging (Gandhi and others, ISCA 2016): a walk begins in the shadow table, and goes on in both tables below a table that is
//! written often.
//!
//! Tables of the guest are shadowed at first, and a write to one leaves the guest. A table that is written twice within an interval is
//! walked nested from then on, with all tables below it, and may be written freely. At the end of an interval those that were not
//! written are shadowed again.

use std::collections::{BTreeSet, HashMap};

use super::walks::ALL_LEVELS;

/// Writes within an interval from which on a table is walked nested.
const WRITES: u32 = 2;
/// Accesses of an interval if no number is given. The publication has a second.
pub(super) const INTERVAL: u64 = 1_000_000;
/// Address bits within a base page, and of one level's index.
const BASE: u32 = 12;
const INDEX: u32 = 9;

/// What a write to a guest's page table does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing: the table is walked nested.
    Freely,
    /// It leaves the guest.
    Exit,
    /// It leaves the guest, and the table is walked nested from now on.
    Switched,
}

#[derive(Clone, Copy, Debug, Default)]
struct Table {
    /// Writes in this interval.
    writes: u32,
    is_nested: bool,
}

/// Which tables of a guest are walked nested, and which pages the shadow table has.
#[derive(Clone, Debug)]
pub(super) struct Agile {
    /// Levels of the guest's tables.
    levels: u8,
    interval: u64,
    /// Accesses until it ends.
    left: u64,
    /// Tables that were written, by level and number.
    tables: HashMap<(u8, u64), Table>,
    nested: usize,
    /// First addresses of the pages that have an entry in the shadow table.
    shadowed: BTreeSet<u64>,
}

/// The number of the table that an address uses at a level.
fn number(address: u64, level: u8) -> u64 {
    address >> (BASE + INDEX * u32::from(level))
}

impl Agile {
    pub(super) fn new(levels: u8, interval: u64) -> Self {
        let interval = interval.max(1);
        Self {
            levels,
            interval,
            left: interval,
            tables: HashMap::new(),
            nested: 0,
            shadowed: BTreeSet::new(),
        }
    }

    /// Levels of the guest's tables.
    pub(super) fn levels(&self) -> u8 {
        self.levels
    }

    /// The highest level at which an address is walked nested; 0 if it is not.
    pub(super) fn nested_from(&self, address: u64) -> u8 {
        if self.nested == 0 {
            return 0;
        }
        let is_nested = |level: &u8| {
            let table = self.tables.get(&(*level, number(address, *level)));
            table.is_some_and(|table| table.is_nested)
        };
        (1..=self.levels).rev().find(is_nested).unwrap_or(0)
    }

    /// Is a page new to the shadow table, by its first address? From now on it is in it.
    pub(super) fn is_new(&mut self, page: u64) -> bool {
        self.shadowed.insert(page)
    }

    /// The guest writes the entry for an address in a table, of which an entry of the level `leaf` maps a page.
    pub(super) fn write(&mut self, address: u64, level: u8, leaf: u8) -> Written {
        let level = level.min(self.levels);
        let above = self.nested_from(address);
        let table = self.tables.entry((level, number(address, level))).or_default();
        table.writes = table.writes.saturating_add(1);
        if above >= level {
            return Written::Freely;
        }
        if table.writes >= WRITES {
            table.is_nested = true;
            self.nested += 1;
            self.forget(address, level);
            return Written::Switched;
        }
        if level == leaf {
            self.forget(address, level - 1);
        }
        Written::Exit
    }

    /// The shadow table loses everything below the table of a level; of level 0, a base page.
    fn forget(&mut self, address: u64, level: u8) {
        let shift = BASE + INDEX * u32::from(level);
        let from = address >> shift << shift;
        let mut behind = self.shadowed.split_off(&from);
        self.shadowed.append(&mut behind.split_off(&(from + (1 << shift))));
    }

    /// Accesses until the interval ends.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// So many accesses are over, at most those that are left. Is any table shadowed again?
    pub(super) fn pass(&mut self, accesses: u64) -> bool {
        self.left -= accesses;
        if self.left > 0 {
            return false;
        }
        self.left = self.interval;
        let before = self.nested;
        for table in self.tables.values_mut() {
            if table.is_nested && table.writes == 0 {
                table.is_nested = false;
                self.nested -= 1;
            }
            table.writes = 0;
        }
        self.tables.retain(|_, table| table.is_nested);
        self.nested < before
    }
}

/// How a level is read in a walk that is nested from a level on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// In the shadow table.
    Shadow,
    /// In the guest's table, to which the entry before leads by its place in the host's memory.
    Switch,
    /// In the guest's table, whose place the host's table translates.
    Nested,
}

impl Level {
    #[inline]
    pub(super) fn of(level: u8, nested_from: u8) -> Self {
        match level {
            _ if nested_from == ALL_LEVELS || level < nested_from => Self::Nested,
            _ if level == nested_from => Self::Switch,
            _ => Self::Shadow,
        }
    }
}
