//! When each instruction of a window enters a core, has its result, and retires.

use translation::machine::Core;

use super::flow::{Branch, Flow, Kind, REGISTERS};
use super::limits::{Port, Ring, Servers};

/// What limits a core.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Slots a cycle, when instructions enter and when they retire.
    width: u64,
    /// Entries of the reorder buffer: instructions that have entered and not retired.
    reorder: usize,
    /// Entries of the store buffer: stores that have entered and are not in the cache.
    buffered: usize,
    loads: u64,
    stores: u64,
    /// Bytes of code that are fetched in a cycle, aligned. A branch that is taken ends them.
    fetched: u64,
    /// Lines that the first-level cache waits for at a time: its fill buffers.
    fills: usize,
    /// Page walks at a time.
    walkers: usize,
}

impl Shape {
    pub(super) fn of(core: Core) -> Self {
        match core {
            Core::Narrow => NARROW,
            Core::Wide => WIDE,
        }
    }
}

const WIDE: Shape = Shape {
    width: 6,
    reorder: 512,
    buffered: 112,
    loads: 3,
    stores: 2,
    fetched: 64,
    fills: 16,
    walkers: 6,
};
const NARROW: Shape = Shape {
    width: 4,
    reorder: 224,
    buffered: 56,
    loads: 2,
    stores: 1,
    fetched: 32,
    fills: 12,
    walkers: 2,
};

/// Cycles from an address to the value that is loaded from there: from the first-level cache, or from a store that is in flight.
const LOAD: u64 = 5;
/// Cycles from the end of a mispredicted branch until the instruction behind it enters.
const REFILL: u64 = 17;
/// Cycles by which code is fetched before it enters.
const AHEAD: u64 = 8;
/// Cycles of a repeated string instruction before its first line, and for each further line of 64 bytes.
const STRING: u64 = 20;
const LINE: u64 = 2;
/// Rounds a cycle of one that compares or looks for an item: one.
const ROUND: u64 = 1;

/// How long an access waits beyond what it takes if the first levels of TLB and cache have it: core cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// For the translation of its address.
    pub translation: u64,
    /// Is that a walk, for which a walker has to be free?
    pub is_walk: bool,
    pub line: u64,
    /// Of a line that was fetched ahead of a stream: how far ahead, and how long after the line before.
    pub fetched: Option<(u64, f64)>,
}

impl Wait {
    /// Only for its line.
    pub fn without_translation(&self) -> Self {
        Self {
            translation: 0,
            is_walk: false,
            ..*self
        }
    }

    /// For its line, in a stream or not.
    pub fn for_line(&self) -> f64 {
        self.line as f64 + self.fetched.map_or(0.0, |(_, each)| each)
    }
}

/// An access with the numbers of what it touches.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    /// Words whose last store it waits for, or that it stores.
    pub(super) words: Vec<u32>,
    pub(super) line: u32,
    pub(super) page: u32,
    pub(super) is_store: bool,
}

/// How many words, lines and pages have a number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names {
    pub(super) words: usize,
    pub(super) lines: usize,
    pub(super) pages: usize,
}

/// The instructions of a window on one core, in program order.
pub(super) struct Timeline {
    shape: Shape,
    /// When each register has its value.
    registers: [u64; REGISTERS],
    /// When each word has the value of its last store, each line is in the cache, and each page is in the TLB.
    words: Vec<u64>,
    lines: Vec<u64>,
    pages: Vec<u64>,
    /// In which the next instruction enters, and the slots of it that are used.
    cycle: u64,
    slots: u64,
    loads: Port,
    stores: Port,
    fetches: Port,
    fills: Servers,
    walkers: Servers,
    /// When the next line of a stream comes.
    stream: f64,
    /// The block of code that was fetched last.
    block: u64,
    /// Is a conditional branch fused with the last instruction?
    fuses: bool,
    /// When the last instruction had its result.
    done: u64,
    retired: Ring,
    /// When the last stores were in the cache.
    stored: Ring,
    /// What runs behind a mispredicted branch until it is known.
    speculated: Option<Speculated>,
}

/// Instructions behind a mispredicted branch that come again on the right way: their loads begin before the branch is known.
struct Speculated {
    registers: [u64; REGISTERS],
    cycle: u64,
    slots: u64,
    /// When the branch is known.
    until: u64,
    /// Instructions that the reorder buffer has room for until then.
    room: usize,
}

impl Timeline {
    pub(super) fn new(shape: Shape, names: Names) -> Self {
        Self {
            shape,
            registers: [0; REGISTERS],
            words: vec![0; names.words],
            lines: vec![0; names.lines],
            pages: vec![0; names.pages],
            cycle: 0,
            slots: 0,
            loads: Port::new(shape.loads),
            stores: Port::new(shape.stores),
            fetches: Port::new(1),
            fills: Servers::new(shape.fills),
            walkers: Servers::new(shape.walkers),
            stream: 0.0,
            block: 0,
            fuses: false,
            done: 0,
            retired: Ring::new(shape.reorder),
            stored: Ring::new(shape.buffered),
            speculated: None,
        }
    }

    /// Until all have retired.
    pub(super) fn cycles(&self) -> u64 {
        self.retired.before(1).max(self.cycle)
    }

    /// The last branch was mispredicted. Do both its ways soon come to the same instructions?
    pub(super) fn flush(&mut self, joins: bool) {
        self.speculated = joins.then(|| Speculated {
            registers: self.registers,
            cycle: self.cycle,
            slots: self.slots,
            until: self.done,
            room: self.shape.reorder - self.retired.since(self.cycle),
        });
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

    /// An instruction with its accesses, each of which waits so long: not at all without a wait.
    pub(super) fn take(&mut self, flow: &Flow, touched: &[Touch], waits: &[Wait]) {
        let is_fused = self.fuses && flow.branch == Branch::Conditional;
        self.fuses = flow.fuses;
        let waits = if self.speculates(flow, touched, waits) {
            &[]
        } else {
            waits
        };
        self.dispatch(flow, is_fused, touched);
        self.done = self.result(flow, touched, waits);
        for &register in &flow.writes {
            self.registers[usize::from(register)] = self.done;
        }
        self.retire(is_fused);
        self.store(touched, waits);
        if flow.kind == Kind::Serial {
            self.enter(self.done);
        }
    }

    /// Was the instruction behind a mispredicted branch, and did its accesses begin there?
    fn speculates(&mut self, flow: &Flow, touched: &[Touch], waits: &[Wait]) -> bool {
        let Some(mut ahead) = self.speculated.take() else {
            return false;
        };
        ahead.slots += flow.slots;
        while ahead.slots > self.shape.width {
            ahead.slots -= self.shape.width;
            ahead.cycle += 1;
        }
        if ahead.cycle >= ahead.until || ahead.room == 0 || flow.kind == Kind::Serial {
            return false;
        }
        ahead.room -= 1;
        let ready = |registers: &[u8]| {
            let when = registers.iter().map(|&register| ahead.registers[usize::from(register)]);
            when.fold(ahead.cycle, u64::max)
        };
        let (addresses, mut done) = (ready(&flow.addresses), ready(&flow.reads));
        // A load whose address is not known before the branch is does not begin.
        let begins = addresses < ahead.until;
        if begins {
            for (touch, wait) in with_waits(touched, waits) {
                let translated = self.translated(touch, wait, addresses);
                if !touch.is_store {
                    done = done.max(self.comes(touch, wait, translated) + LOAD);
                }
            }
        }
        done = if begins { done + flow.latency } else { u64::MAX / 2 };
        for &register in &flow.writes {
            ahead.registers[usize::from(register)] = done;
        }
        self.speculated = Some(ahead);
        begins && touched.iter().all(|touch| !touch.is_store)
    }

    /// A further round of a repeated string instruction. It has accesses only where it comes to another line, and goes on while that line comes.
    pub(super) fn repeat(&mut self, flow: &Flow, touched: &[Touch], waits: &[Wait]) {
        match flow.kind {
            Kind::Lines if !touched.is_empty() => self.enter(self.cycle + LINE),
            Kind::Items => self.enter(self.cycle + ROUND),
            _ => {}
        }
        for (touch, wait) in with_waits(touched, waits) {
            let translated = self.translated(touch, wait, self.cycle);
            let comes = self.comes(touch, wait, translated);
            // It stands still only for a translation, and for a line that it loads without a buffer being free.
            self.enter(translated.max(comes.saturating_sub(wait.line)));
        }
    }

    /// It enters as soon as the buffers have room for it, and the cycle has slots.
    fn dispatch(&mut self, flow: &Flow, is_fused: bool, touched: &[Touch]) {
        self.enter(self.retired.before(self.shape.reorder));
        if touched.iter().any(|touch| touch.is_store) {
            self.enter(self.stored.before(self.shape.buffered));
        }
        match flow.kind {
            Kind::Serial => self.enter(self.retired.before(1)),
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

    /// When it has its result, or may store it.
    fn result(&mut self, flow: &Flow, touched: &[Touch], waits: &[Wait]) -> u64 {
        let mut begun = self.ready(&flow.reads);
        for (touch, wait) in with_waits(touched, waits) {
            let when = match touch.is_store {
                true => {
                    let from = self.stores.take(self.cycle).max(self.ready(&flow.addresses));
                    self.translated(touch, wait, from)
                }
                false => self.loaded(touch, wait, &flow.addresses),
            };
            begun = begun.max(when);
        }
        begun + flow.latency
    }

    fn loaded(&mut self, touch: &Touch, wait: Wait, addresses: &[u8]) -> u64 {
        let begun = self.ready(addresses).max(self.loads.take(self.cycle));
        let translated = self.translated(touch, wait, begun);
        let stored = touch.words.iter().map(|&word| self.words[word as usize]).max();
        self.comes(touch, wait, translated).max(stored.unwrap_or(0)) + LOAD
    }

    /// When an address is translated: an access to a page that is being walked waits for the same walk.
    fn translated(&mut self, touch: &Touch, wait: Wait, from: u64) -> u64 {
        let page = touch.page as usize;
        let begun = from.max(self.pages[page]);
        if wait.translation == 0 {
            return begun;
        }
        let done = match wait.is_walk {
            true => self.walkers.serve(self.cycle, begun, wait.translation),
            false => begun + wait.translation,
        };
        self.pages[page] = done;
        done
    }

    /// When its line is in the cache: an access to a line that is on its way waits for the same one.
    fn comes(&mut self, touch: &Touch, wait: Wait, from: u64) -> u64 {
        let line = touch.line as usize;
        let begun = from.max(self.lines[line]);
        let done = match (wait.fetched, wait.line) {
            (None, 0) => return begun,
            (None, line) => self.fills.serve(self.cycle, begun, line),
            (Some((ahead, each)), line) => {
                self.stream = self.stream.max(begun as f64 - ahead as f64) + each;
                begun.max(self.stream as u64) + line
            }
        };
        self.lines[line] = done;
        done
    }

    fn ready(&self, registers: &[u8]) -> u64 {
        let when = registers.iter().map(|&register| self.registers[usize::from(register)]);
        when.fold(self.cycle, u64::max)
    }

    /// It retires in program order, or with the one that it is fused with.
    fn retire(&mut self, is_fused: bool) {
        let with = if is_fused { self.retired.take_back() } else { 0 };
        let room = self.retired.before(self.shape.width as usize) + 1;
        self.retired
            .push(self.done.max(self.retired.before(1)).max(room).max(with));
    }

    /// Stores go to the cache in program order, after they have retired. Their lines are asked for as soon as their addresses are known.
    fn store(&mut self, touched: &[Touch], waits: &[Wait]) {
        for (touch, wait) in with_waits(touched, waits).filter(|(touch, _)| touch.is_store) {
            let comes = self.comes(touch, wait, self.done);
            let retired = self.retired.before(1);
            self.stored.push(comes.max(retired).max(self.stored.before(1)));
            for &word in &touch.words {
                self.words[word as usize] = self.done;
            }
        }
    }
}

fn with_waits<'a>(touched: &'a [Touch], waits: &'a [Wait]) -> impl Iterator<Item = (&'a Touch, Wait)> {
    let waits = waits.iter().copied().chain(std::iter::repeat(Wait::default()));
    touched.iter().zip(waits)
}
