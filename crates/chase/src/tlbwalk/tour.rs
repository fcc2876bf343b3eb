//! A closed tour through pages, and the loops that go round it and time themselves.

use super::flush::Flush;
use super::span::Span;
use crate::clock::CoreClock;

core::arch::global_asm!(
    // Loops that time themselves: calling and returning touch the stack, and its page would take an entry from the pages that
    // are counted. Laps of run-up give such pages time to leave. Both return ticks in rax.
    //
    // rdi = a node of a closed ring, rsi = steps of the run-up, rdx = timed steps (each at least one).
    ".p2align 6",
    "hugewise_tlb_time_ring:",
    "mov r8, rdx",
    "3:",
    "mov rdi, [rdi]",
    "dec rsi",
    "jnz 3b",
    "lfence",
    "rdtsc",
    "lfence",
    "shl rdx, 32",
    "lea rsi, [rax + rdx]", // begun
    "4:",
    "mov rdi, [rdi]", // node -> next node
    "dec r8",
    "jnz 4b",
    "lfence",
    "rdtsc",
    "shl rdx, 32",
    "add rax, rdx",
    "sub rax, rsi",
    "ret",
    // rdi = addresses of words that hold zero, rsi = how many, rdx = laps of run-up (each at least one), rcx = timed laps.
    // The next address needs the word just read (which adds nothing), so translations cannot overlap.
    ".p2align 6",
    "hugewise_tlb_time_listed:",
    "lea rdi, [rdi + rsi*8]", // one past the last address
    "neg rsi",
    "mov r8, rdx",
    "mov r9, rcx",
    "xor r10d, r10d", // begun; zero during the run-up
    "xor eax, eax",
    "5:",
    "mov rcx, rsi", // counts up to zero
    "6:",
    "add rax, [rdi + rcx*8]", // this step's address, plus the zero just read
    "mov rax, [rax]",         // the translation that is timed
    "inc rcx",
    "jnz 6b",
    "dec r8",
    "jnz 5b",
    "lfence",
    "rdtsc",
    "lfence",
    "shl rdx, 32",
    "add rax, rdx",
    "sub rax, r10",
    "mov r10, rax",
    "mov r8, r9",
    "xor r9d, r9d",
    "xor eax, eax",
    "test r8, r8",
    "jnz 5b",
    "mov rax, r10",
    "ret",
);

unsafe extern "sysv64" {
    fn hugewise_tlb_time_ring(node: *const u8, run_up: u64, steps: u64) -> u64;
    fn hugewise_tlb_time_listed(addresses: *const u64, count: u64, run_up: u64, laps: u64) -> u64;
}

/// How a tour finds its next word.
pub(super) enum Order {
    /// Each word holds the address of the next.
    Ring(*const u64),
    /// Their addresses stand in a list.
    Listed(*const u64),
}

/// A closed tour through a span, ready to be timed.
pub struct Tour<'a> {
    pub(super) order: Order,
    pub(super) steps: u64,
    pub(super) _span: std::marker::PhantomData<&'a mut Span>,
}

/// Steps in all blocks of one timing: some 50 us.
const STEPS: u64 = 6_000;
/// Blocks of one timing at the fewest.
const FEWEST_BLOCKS: u64 = 2;

/// How a timing is cut into blocks, of which the least disturbed one counts.
#[derive(Clone, Copy)]
struct Cut {
    /// Steps in a block at least: reading the counter twice must be little of it.
    steps: u64,
    blocks: u64,
}

/// For steps of a few cycles.
const USUAL: Cut = Cut { steps: 512, blocks: 8 };
/// For steps of tens of cycles: short gaps in contention come sooner than long ones.
const SHORT: Cut = Cut { steps: 128, blocks: 32 };
/// A core clock that differs by more than this share between the two ends of a timing has changed in between.
const CLOCK_CHANGE: f64 = 0.01;

/// The run-up to a block has as many steps as that, at least: some laps of a short tour, whose pages a visit elsewhere displaced.
const RUN_UP: u64 = USUAL.steps;

/// The core clock now. Whatever comes in between lets it seem slower for a moment, so the fastest of a few readings counts.
fn rate(clock: &CoreClock) -> f64 {
    (0..3).map(|_| clock.cycles_per_tick()).fold(0.0, f64::max)
}

impl Tour<'_> {
    /// Ticks of that many whole laps, after a run-up of so many steps; of none, the run-up alone.
    fn ticks(&self, run_up: u64, laps: u64) -> u64 {
        let run_up = run_up.div_ceil(self.steps);
        match self.order {
            // SAFETY: a closed ring, laid by `Span` in pages that this tour borrows mutably.
            Order::Ring(node) => unsafe {
                hugewise_tlb_time_ring(node.cast(), run_up * self.steps, (self.steps * laps).max(1))
            },
            // SAFETY: `Span` wrote that many addresses of mapped words that hold zero; this tour borrows both spans mutably.
            Order::Listed(list) => unsafe { hugewise_tlb_time_listed(list, self.steps, run_up, laps) },
        }
    }

    /// Goes round a little. Where replacement is not LRU, pages that would all fit may go on displacing one another for as long
    /// as they come in the same order; in a few other orders they find their places, and then keep them in any.
    pub fn stir(&self) {
        self.ticks(RUN_UP, 0);
    }

    /// Core cycles per step in the least disturbed of some short blocks of whole laps, each after a warm-up; `None` if the core
    /// clock changed during it.
    pub fn cycles(&self, clock: &CoreClock) -> Option<f64> {
        self.least(clock, USUAL, || ())
    }

    /// The same in shorter blocks, for tours on which every step costs tens of cycles.
    pub fn cycles_of_dear_steps(&self, clock: &CoreClock) -> Option<f64> {
        self.least(clock, SHORT, || ())
    }

    /// The same with all TLBs emptied before each block, so that entries are in use in the order of visits and nothing else is
    /// held: first levels then replace as LRU does.
    pub fn cycles_from_empty(&self, flush: &Flush, clock: &CoreClock) -> Option<f64> {
        self.least(clock, USUAL, || flush.all())
    }

    fn least(&self, clock: &CoreClock, cut: Cut, prepare: impl Fn()) -> Option<f64> {
        let laps = cut.steps.div_ceil(self.steps);
        let blocks = (STEPS / (laps * self.steps)).clamp(FEWEST_BLOCKS, cut.blocks);
        let before = rate(clock);
        let block = || {
            prepare();
            self.ticks(cut.steps, laps)
        };
        // The first block of a short tour may still pay for the way here.
        if self.steps < RUN_UP {
            block();
        }
        let least = (0..blocks).map(|_| block()).min()?;
        let after = rate(clock);
        let steady = (before - after).abs() <= CLOCK_CHANGE * before.max(after);
        let least = least.saturating_sub(clock.overhead);
        steady.then(|| least as f64 / (laps * self.steps) as f64 * (before + after) / 2.0)
    }
}
