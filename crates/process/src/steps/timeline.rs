//! When each instruction of a window enters a core, has its result, and retires.

use std::collections::HashMap;

use super::flow::{Branch, Flow, Kind, REGISTERS};

/// What limits a core.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Slots a cycle, when instructions enter and when they retire.
    width: u64,
    /// Entries of the reorder buffer: instructions that have entered and not retired.
    reorder: usize,
    /// Loads a cycle.
    loads: u64,
    /// Stores a cycle.
    stores: u64,
    /// Bytes of code that are fetched in a cycle, aligned. A branch that is taken ends them.
    fetched: u64,
}

pub(super) const WIDE: Shape = Shape {
    width: 6,
    reorder: 512,
    loads: 3,
    stores: 2,
    fetched: 64,
};
pub(super) const NARROW: Shape = Shape {
    width: 4,
    reorder: 224,
    loads: 2,
    stores: 1,
    fetched: 32,
};

/// Cycles from an address to the value that is loaded from there: from the first-level cache, or from a store that is in flight.
const LOAD: u64 = 5;
/// Bytes of memory whose last store is known.
const WORD: u64 = 8;
/// Cycles from the end of a mispredicted branch until the instruction behind it enters.
const REFILL: u64 = 17;
/// Cycles by which code is fetched before it enters.
const AHEAD: u64 = 8;
/// Cycles of a repeated string instruction before its first line, and for each further line of 64 bytes.
const STRING: u64 = 20;
const LINE: u64 = 2;
/// Rounds a cycle of one that compares or looks for an item: one.
const ROUND: u64 = 1;

/// Cycles by which a slow access is slower: about as long as memory takes. A shorter wait would be hidden to a larger part.
pub(super) const SLOW: u64 = 400;

/// One access, and what may make it slow.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) address: u64,
    pub(super) is_store: bool,
    /// A load from a line that was not accessed lately.
    pub(super) is_new_line: bool,
    /// Its page was not accessed lately.
    pub(super) is_new_page: bool,
}

/// Which accesses are slow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slow {
    Nothing,
    Lines,
    Pages,
}

impl Access {
    /// Cycles more.
    fn wait(self, slow: Slow) -> u64 {
        let is_slow = match slow {
            Slow::Nothing => false,
            Slow::Lines => self.is_new_line,
            Slow::Pages => self.is_new_page,
        };
        u64::from(is_slow) * SLOW
    }
}

/// The instructions of a window on one core, in program order.
pub(super) struct Timeline {
    shape: Shape,
    slow: Slow,
    /// When each register has its value.
    registers: [u64; REGISTERS],
    /// When each word of memory has the value of its last store.
    stored: HashMap<u64, u64>,
    /// In which the next instruction enters, and the slots of it that are used.
    cycle: u64,
    slots: u64,
    loads: Port,
    stores: Port,
    fetches: Port,
    /// The block of code that was fetched last.
    block: u64,
    /// Is a conditional branch fused with the last instruction?
    fuses: bool,
    /// When the last instruction had its result.
    done: u64,
    /// When the last instructions retired: a ring.
    retired: Vec<u64>,
    /// Instructions; those that were fused are one.
    count: usize,
}

impl Timeline {
    pub(super) fn new(shape: Shape, slow: Slow) -> Self {
        Self {
            shape,
            slow,
            registers: [0; REGISTERS],
            stored: HashMap::new(),
            cycle: 0,
            slots: 0,
            loads: Port::new(shape.loads),
            stores: Port::new(shape.stores),
            fetches: Port::new(1),
            block: 0,
            fuses: false,
            done: 0,
            retired: vec![0; shape.reorder],
            count: 0,
        }
    }

    /// Until all have retired.
    pub(super) fn cycles(&self) -> u64 {
        self.retired_before(1).max(self.cycle)
    }

    /// The last branch was mispredicted.
    pub(super) fn flush(&mut self) {
        self.enter(self.done + REFILL);
        self.fetches.free = self.cycle as f64;
    }

    /// Code is fetched in blocks.
    pub(super) fn fetch(&mut self, at: u64, follows: bool) {
        let block = at / self.shape.fetched;
        if !follows || block != self.block {
            let when = self.fetches.take(self.cycle.saturating_sub(AHEAD));
            self.enter(when);
        }
        self.block = block;
    }

    pub(super) fn take(&mut self, flow: &Flow, touched: &[Access]) {
        let is_fused = self.fuses && flow.branch == Branch::Conditional;
        self.fuses = flow.fuses;
        self.dispatch(flow, is_fused);
        self.done = self.result(flow, touched);
        for &register in &flow.writes {
            self.registers[usize::from(register)] = self.done;
        }
        for store in touched.iter().filter(|touch| touch.is_store) {
            let last = store.address.saturating_add(flow.bytes.max(1) - 1);
            for word in store.address / WORD..=last / WORD {
                self.stored.insert(word, self.done);
            }
        }
        self.retire(is_fused);
        if flow.kind == Kind::Serial {
            self.enter(self.done);
        }
    }

    /// A further round of a repeated string instruction. It has accesses only where it comes to another line.
    pub(super) fn repeat(&mut self, flow: &Flow, touched: &[Access]) {
        match flow.kind {
            Kind::Lines if !touched.is_empty() => self.enter(self.cycle + LINE),
            Kind::Items => self.enter(self.cycle + ROUND),
            _ => {}
        }
    }

    /// It enters as soon as the reorder buffer has room for it, and the cycle has slots.
    fn dispatch(&mut self, flow: &Flow, is_fused: bool) {
        self.enter(self.retired_before(self.shape.reorder));
        match flow.kind {
            Kind::Serial => self.enter(self.retired_before(1)),
            Kind::Lines | Kind::Items => self.enter(self.cycle + STRING),
            Kind::Plain => {}
        }
        self.slots += if is_fused { 0 } else { flow.slots };
        while self.slots > self.shape.width {
            self.slots -= self.shape.width;
            self.cycle += 1;
        }
    }

    /// The next instruction enters at this cycle or later.
    fn enter(&mut self, cycle: u64) {
        if cycle > self.cycle {
            (self.cycle, self.slots) = (cycle, 0);
        }
    }

    /// When it has its result, or has stored it.
    fn result(&mut self, flow: &Flow, touched: &[Access]) -> u64 {
        let mut begun = self.ready(&flow.reads);
        for touch in touched {
            let when = match touch.is_store {
                true => self.stores.take(self.cycle),
                false => self.loaded(touch.address, flow),
            };
            begun = begun.max(when + touch.wait(self.slow));
        }
        begun + flow.latency
    }

    fn loaded(&mut self, address: u64, flow: &Flow) -> u64 {
        let begun = self.ready(&flow.addresses).max(self.loads.take(self.cycle));
        let stored = self.stored.get(&(address / WORD)).copied().unwrap_or(0);
        begun.max(stored) + LOAD
    }

    fn ready(&self, registers: &[u8]) -> u64 {
        let when = registers.iter().map(|&register| self.registers[usize::from(register)]);
        when.fold(self.cycle, u64::max)
    }

    /// It retires in program order, or with the one that it is fused with.
    fn retire(&mut self, is_fused: bool) {
        self.count -= usize::from(is_fused);
        let place = self.count % self.shape.reorder;
        let with = if is_fused { self.retired[place] } else { 0 };
        let room = self.retired_before(self.shape.width as usize) + 1;
        self.retired[place] = self.done.max(self.retired_before(1)).max(room).max(with);
        self.count += 1;
    }

    /// When that one retired which came so many instructions before the next one.
    fn retired_before(&self, before: usize) -> u64 {
        let place = self.count.checked_sub(before);
        place.map_or(0, |place| self.retired[place % self.shape.reorder])
    }
}

/// What serves so many in a cycle, in program order.
struct Port {
    each: f64,
    free: f64,
}

impl Port {
    fn new(most: u64) -> Self {
        Self {
            each: 1.0 / most as f64,
            free: 0.0,
        }
    }

    /// When it serves the next one, which comes at `from`.
    fn take(&mut self, from: u64) -> u64 {
        let begun = self.free.max(from as f64);
        self.free = begun + self.each;
        begun as u64
    }
}
