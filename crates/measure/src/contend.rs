//! Two CPUs at work at once: what the first still does beside the second, and what it does alone.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chase::thread::Pinned;
use model::Bytes;
use model::migration::Mix;

use crate::Error;

/// How long the first CPU works alone, then beside the other, then alone again, per round.
const WINDOW: Duration = Duration::from_millis(3);
/// Turns of a block: some 10 us, short against the time slices of either kernel.
const TURNS: u64 = 5_000;
/// Cache lines that a block of loads reads.
const LINES: usize = 4_096;
/// Words of a cache line.
const LINE: usize = 8;

/// Seconds for a block, in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    alone: f64,
    together: f64,
    again: f64,
}

/// What a CPU is kept busy with, and the memory for it.
pub(crate) struct Load {
    mix: Mix,
    memory: Vec<u64>,
    /// The line that is read next.
    at: usize,
}

impl Round {
    /// Throughput beside the other, as a share of that alone before and after.
    pub(crate) fn share(self) -> f64 {
        (self.alone + self.again) / 2.0 / self.together
    }

    /// Throughput alone after that, as a share of that before.
    pub(crate) fn again(self) -> f64 {
        self.alone / self.again
    }
}

/// Does two things at once, each on a CPU of its own. Each is told whether its thread is there; the answer is the first one's.
///
/// # Errors
/// That a thread could not stay on its CPU.
pub(crate) fn on_two<T>(
    [one, two]: [u32; 2],
    own: impl FnOnce(bool) -> T,
    other: impl FnOnce(bool) + Send,
) -> Result<T, Error> {
    thread::scope(|scope| {
        let helper = scope.spawn(move || on(two, other));
        let done = on(one, own);
        // A panic over there is a bug; it must not look like a slow CPU.
        let helped = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.and_then(|done| helped.map(|()| done))
    })
}

fn on<T>(cpu: u32, work: impl FnOnce(bool) -> T) -> Result<T, Error> {
    let pinned = Pinned::to(Some(cpu));
    let done = work(pinned.is_ok());
    pinned.map(|_| done).map_err(|source| Error::Stay { cpu, source })
}

/// Times a block of the first load on the first of two CPUs, in so many rounds.
///
/// # Errors
/// That a thread could not stay on its CPU.
pub(crate) fn beside(cpus: [u32; 2], rounds: u32, [own, other]: [&mut Load; 2]) -> Result<Vec<Round>, Error> {
    let (ready, busy) = (Barrier::new(2), AtomicBool::new(false));
    let timed = |_| {
        own.warm();
        let round = |_| {
            let alone = quickest(own);
            busy.store(true, Ordering::Relaxed);
            ready.wait();
            let together = quickest(own);
            busy.store(false, Ordering::Relaxed);
            ready.wait();
            own.warm();
            let again = quickest(own);
            Round { alone, together, again }
        };
        (0..rounds).map(round).collect()
    };
    let helping = |is_there| {
        for _ in 0..rounds {
            // Asleep until the first has had its time alone.
            ready.wait();
            while busy.load(Ordering::Relaxed) && is_there {
                other.block();
            }
            ready.wait();
        }
    };
    on_two(cpus, timed, helping)
}

/// Seconds of the block that a quarter of the window's blocks undercut: interrupts only add, while a sibling is there most of the time.
fn quickest(load: &mut Load) -> f64 {
    let begun = Instant::now();
    let mut blocks = Vec::new();
    while blocks.len() < 4 || begun.elapsed() < WINDOW {
        let start = Instant::now();
        load.block();
        blocks.push(start.elapsed());
    }
    blocks.sort_unstable();
    blocks[blocks.len() / 4].as_secs_f64()
}

impl Load {
    /// With memory of this size, where it reads memory.
    pub(crate) fn new(mix: Mix, bytes: Bytes) -> Self {
        let is_load = matches!(mix, Mix::L1Load | Mix::L2Load | Mix::MemoryLoad);
        let lines = if is_load { bytes.0 as usize / 64 } else { 0 };
        Self {
            mix,
            // Written, so that each page is memory of its own and not the page of zeros.
            memory: (0..(lines * LINE) as u64).collect(),
            at: 0,
        }
    }

    pub(crate) fn multiply() -> Self {
        Self::new(Mix::IntegerMultiply, Bytes(0))
    }

    /// Brings memory that fits a cache into it.
    fn warm(&mut self) {
        if self.mix != Mix::MemoryLoad {
            black_box(self.memory.iter().fold(0, |sum: u64, word| sum ^ word));
        }
    }

    fn block(&mut self) {
        match self.mix {
            Mix::Integer => integers(),
            Mix::IntegerMultiply => products(),
            Mix::FpMultiply => fp_products(),
            Mix::L1Load | Mix::L2Load | Mix::MemoryLoad => self.loads(),
        }
    }

    /// One word of each line, from where the last block ended: no address depends on a value, so that many are under way.
    fn loads(&mut self) {
        let mut left = LINES;
        while left > 0 {
            let end = self.memory.len().min(self.at + left * LINE);
            let lines = self.memory[self.at..end].chunks_exact(LINE);
            left -= lines.len();
            black_box(lines.fold(0_u64, |sum, line| sum.wrapping_add(line[0])));
            self.at = if end == self.memory.len() { 0 } else { end };
        }
    }
}

/// Eight chains side by side: as many as keep all units of integers busy.
fn integers() {
    let step = black_box(0x9e37_79b9_u64);
    let mut chains = [1_u64, 3, 5, 7, 9, 11, 13, 15].map(black_box);
    for _ in 0..TURNS {
        for chain in &mut chains {
            *chain = (*chain ^ step).rotate_left(5);
        }
        chains = black_box(chains);
    }
}

/// Six chains of multiplications side by side: as many as keep a multiplier of three cycles' latency busy in every cycle, with
/// some to spare, so that a sibling's multiplications have to wait.
fn products() {
    let factor = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut chains = [1_u64, 3, 5, 7, 9, 11].map(black_box);
    for _ in 0..TURNS {
        for chain in &mut chains {
            *chain = chain.wrapping_mul(factor);
        }
    }
    black_box(chains);
}

/// Sixteen chains: twice as many as keep two multipliers of four cycles' latency busy. The factor is 1, as no number is to overflow.
fn fp_products() {
    let factor = black_box(1.0_f64);
    let mut chains = [1.5_f64; 16].map(black_box);
    for _ in 0..TURNS {
        for chain in &mut chains {
            *chain *= factor;
        }
    }
    black_box(chains);
}
