//! Windows of a whole run whose length is not known: each comes after the same multiple of the processor time before it.

use std::io;
use std::time::{Duration, Instant};

use host::Source;
use host::processes::Stat;
use host::threads::times;
use model::latency::Frames;

use crate::due::{Due, Ran};
use crate::lay::Lay;
use crate::process::{Process, WaitError};
use crate::steps::{self, Bound, Window};
use crate::tree;
use crate::used;

/// Windows at most: they are in memory.
const MOST: usize = 200;
/// Processor time before the first window.
const FIRST: Duration = Duration::from_millis(20);
/// Of the budget for stepping; the program runs in the rest.
const STEPPING: f64 = 0.6;
/// Between two looks at what the program has used.
const SHORTEST_REST: Duration = Duration::from_millis(2);
const LONGEST_REST: Duration = Duration::from_millis(50);
/// A window with fewer instructions caught a thread that waits or ends.
const FEWEST: u64 = 1000;

/// How much is captured.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub budget: Duration,
    pub window: Bound,
}

#[derive(Debug, Default)]
pub struct Captured {
    pub windows: Vec<Sampled>,
    /// Processor time that was seen of it, without that of stepping.
    pub cpu: Duration,
    /// Did it end by itself?
    pub has_ended: bool,
    /// Did more than one of its threads run?
    pub has_threads: bool,
    /// Where its pages lay in memory; none without CAP_SYS_ADMIN.
    pub frames: Option<Frames>,
    /// The last reason why a thread could not be traced.
    pub refused: Option<io::Error>,
}

/// A window, and what was before it.
#[derive(Debug, Default)]
pub struct Sampled {
    /// Processor time of the program.
    pub at: Duration,
    /// Base pages that its process used since the window before, or since it started; none if the kernel did not count them.
    pub used_pages: Option<u64>,
    /// What the thread did.
    pub window: Window,
}

/// Takes windows of a program that was just started.
///
/// # Errors
/// That the user stopped it, or the kernel's.
pub fn capture(process: &mut Process, limits: Limits, stop: &dyn Fn() -> bool) -> Result<Captured, WaitError> {
    let (mut captured, mut due) = (Captured::default(), Due::default());
    let (mut stepping, mut taken, begun) = (Duration::ZERO, 0_u32, Instant::now());
    let (mut next, mut rest, mut lay) = (FIRST, SHORTEST_REST, Lay::default());
    while begun.elapsed() < limits.budget && captured.windows.len() < MOST {
        if process.rest(rest, stop)? {
            captured.has_ended = true;
            break;
        }
        let family = tree::of(&Source::live(), process.id()).pids;
        process.guard(&family);
        let first = due.look(&threads(&family));
        captured.cpu = due.used;
        captured.has_threads |= due.running > 1;
        rest = ((next.saturating_sub(due.used)) / 2).clamp(SHORTEST_REST, LONGEST_REST);
        let Some(Ran {
            process: leader,
            thread,
            ..
        }) = first.filter(|_| due.used >= next)
        else {
            continue;
        };
        let before = Instant::now();
        let used_pages = used::base_pages(leader);
        match steps::window(leader, thread, limits.window, stop) {
            Ok(window) if window.instructions >= FEWEST && !window.touched.is_empty() => {
                lay.look(leader, &window.touched);
                captured.windows.push(Sampled {
                    at: due.used,
                    used_pages,
                    window,
                });
            }
            Ok(_) => {}
            // It ended after it was looked at, and may not have been waited for yet: then the kernel permits nothing.
            Err(_) if has_ended(leader, thread) => {}
            Err(error) => captured.refused = Some(error),
        }
        due.took(thread, times(&Source::live(), leader, thread).map(|[used, _]| used));
        family.iter().copied().for_each(used::forget);
        (stepping, taken) = (stepping + before.elapsed(), taken + 1);
        next = due.used + distance(due.used, limits.budget, stepping, taken);
    }
    captured.frames = lay.frames();
    Ok(captured)
}

/// Processor time until the next window: as many windows as the budget allows lie between the first one and the longest run that it
/// allows. From half as much to one and a half, so that windows do not fall in step with a program that repeats itself.
fn distance(used: Duration, budget: Duration, stepping: Duration, taken: u32) -> Duration {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let each = stepping.as_secs_f64() / f64::from(taken);
    let windows = (budget.as_secs_f64() * STEPPING / each).clamp(6.0, MOST as f64);
    let longest = (budget.as_secs_f64() * (1.0 - STEPPING) / FIRST.as_secs_f64()).max(2.0);
    let growth = longest.powf(1.0 / windows) - 1.0;
    used.mul_f64(growth * (0.5 + (f64::from(taken) * GOLDEN).fract()))
}

/// All threads of some processes that did not end yet, with their processor time.
fn threads(family: &[u32]) -> Vec<Ran> {
    let source = Source::live();
    let ran = |(process, thread)| {
        let [used, _] = times(&source, process, thread)?;
        Some(Ran { process, thread, used })
    };
    tree::threads(&source, family.iter().copied()).filter_map(ran).collect()
}

fn has_ended(process: u32, thread: u32) -> bool {
    let state = Stat::of_thread(&Source::live(), process, thread).and_then(|stat| stat.state());
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
