//! A cache line sent to and fro between two CPUs.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Error;
use crate::contend::on_two;

/// Longest that one round may take: CPUs that are not run at the same time would wait for one another for ever.
const ROUND_TIMEOUT: Duration = Duration::from_millis(200);

/// Round trips in one sample: some 100 us, in which the clock's own cost vanishes.
const TRIPS: u64 = 500;

/// A word alone in its cache lines: neighbouring lines are often fetched in pairs.
#[repr(align(128))]
struct Ball(AtomicU64);

/// ns per round trip, one value per round that came to its end.
pub(super) fn round_trips(cpus: [u32; 2], rounds: u32) -> Result<Vec<f64>, Error> {
    let ball = Ball(AtomicU64::new(0));
    let ready = Barrier::new(2);
    let timed = |is_there| {
        let mut samples = Vec::new();
        for _ in 0..rounds {
            ball.0.store(0, Ordering::SeqCst);
            ready.wait();
            let start = Instant::now();
            if is_there && rally(&ball.0, 0) {
                samples.push(start.elapsed().as_nanos() as f64 / TRIPS as f64);
            }
            ready.wait();
        }
        samples
    };
    let back = |is_there| {
        for _ in 0..rounds {
            ready.wait();
            if is_there {
                rally(&ball.0, 1);
            }
            ready.wait();
        }
    };
    on_two(cpus, timed, back)
}

/// Adds one whenever the number is of this side's parity, until all trips are done; `false` when patience is at its end.
fn rally(ball: &AtomicU64, parity: u64) -> bool {
    let begun = Instant::now();
    let mut next = parity;
    let mut spins = 0u32;
    while next < 2 * TRIPS {
        if ball.load(Ordering::Acquire) == next {
            ball.store(next + 1, Ordering::Release);
            next += 2;
        } else {
            std::hint::spin_loop();
            spins += 1;
            if spins.is_multiple_of(1 << 12) && begun.elapsed() > ROUND_TIMEOUT {
                return false;
            }
        }
    }
    true
}
