//! Two CPUs that multiply without pause: on one core they halve each other, on two they do not notice.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chase::thread::Pinned;

use super::Error;

/// One block of multiplications: some 10 us, short against the time slices of either kernel.
const TURNS: u64 = 5_000;
/// How long each CPU multiplies alone, then with the other, per round.
const WINDOW: Duration = Duration::from_millis(3);

/// How much longer the first CPU takes for a block while the second is at work too, one value per round.
pub(super) fn slowdowns([one, two]: [u32; 2], rounds: u32) -> Result<Vec<f64>, Error> {
    let ready = Barrier::new(2);
    let busy = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let pinned = Pinned::to(Some(two));
            for _ in 0..rounds {
                // Asleep until the first has had its time alone.
                ready.wait();
                while busy.load(Ordering::Relaxed) && pinned.is_ok() {
                    block();
                }
                ready.wait();
            }
            pinned.map(drop).map_err(|source| Error::Stay { cpu: two, source })
        });
        let pinned = Pinned::to(Some(one));
        let mut ratios = Vec::new();
        for _ in 0..rounds {
            let alone = quickest();
            busy.store(true, Ordering::Relaxed);
            ready.wait();
            let together = quickest();
            busy.store(false, Ordering::Relaxed);
            ready.wait();
            ratios.push(together.as_secs_f64() / alone.as_secs_f64());
        }
        let other = other.join();
        pinned.map_err(|source| Error::Stay { cpu: one, source })?;
        // A panic over there is a bug; it must not look like a slow CPU.
        other.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(ratios)
    })
}

/// The block that a quarter of the window's blocks undercut: interrupts only add, while a sibling is there most of the time.
fn quickest() -> Duration {
    let begun = Instant::now();
    let mut blocks = Vec::new();
    while blocks.len() < 4 || begun.elapsed() < WINDOW {
        let start = Instant::now();
        block();
        blocks.push(start.elapsed());
    }
    blocks.sort_unstable();
    blocks[blocks.len() / 4]
}

/// Six chains of multiplications side by side: as many as keep a multiplier of three cycles' latency busy in every cycle, with
/// some to spare, so that a sibling's multiplications have to wait.
fn block() {
    let factor = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut chains = [1u64, 3, 5, 7, 9, 11].map(black_box);
    for _ in 0..TURNS {
        for chain in &mut chains {
            *chain = chain.wrapping_mul(factor);
        }
    }
    black_box(chains);
}
