//! Which thread of a program the next window is of: each has windows as its share of the processor time is.

use std::collections::BTreeMap;
use std::time::Duration;

/// A thread with its processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// Nanoseconds on a CPU.
    pub(crate) used: u64,
}

/// The threads of a program, and the time that no window stands for yet.
#[derive(Default)]
pub(crate) struct Due {
    threads: BTreeMap<u32, Thread>,
    /// Processor time of all, without that of stepping.
    pub(crate) used: Duration,
    /// Of that, what is behind the last window.
    since_window: u64,
    /// Threads that ran between the last two looks.
    pub(crate) running: usize,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    /// Nanoseconds on a CPU.
    used: u64,
    /// Of them, those that no window stands for; below zero if its windows stand for more.
    due: i64,
}

impl Due {
    /// Looks at all threads; gives the one to be stepped: of those that ran since the last look, the one with most time that no window stands for.
    pub(crate) fn look(&mut self, all: &[Ran]) -> Option<Ran> {
        let (mut now, mut first) = (BTreeMap::new(), None);
        self.running = 0;
        for &ran in all {
            let before = self.threads.get(&ran.thread).copied().unwrap_or_default();
            let since = ran.used.saturating_sub(before.used);
            let due = before.due + since.cast_signed();
            now.insert(ran.thread, Thread { used: ran.used, due });
            self.used += Duration::from_nanos(since);
            self.since_window += since;
            self.running += usize::from(since > 0);
            if since > 0 && first.is_none_or(|(most, _)| due > most) {
                first = Some((due, ran));
            }
        }
        self.threads = now;
        first.map(|(_, ran)| ran)
    }

    /// A window of a thread was taken, which stands for all time since the one before. What the thread used until now was stepping; it may have ended.
    pub(crate) fn took(&mut self, thread: u32, used: Option<u64>) {
        let since = std::mem::take(&mut self.since_window).cast_signed();
        if let (Some(known), Some(used)) = (self.threads.get_mut(&thread), used) {
            *known = Thread {
                used,
                due: known.due - since,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Due, Ran};

    #[test]
    fn threads_have_windows_by_their_share_of_the_time() {
        // Shares of 60, 30 and 10 %; a thread that ran before and rests now has no window.
        let shares = [(1, 6_u64), (2, 3), (3, 1), (4, 0)];
        let (mut due, mut windows) = (Due::default(), [0; 5]);
        let mut used = [0, 0, 0, 0, 1_000_000];
        for _ in 0..1000 {
            for (thread, share) in shares {
                used[thread] += 100 * share;
            }
            let all: Vec<Ran> = shares
                .iter()
                .map(|&(thread, _)| Ran {
                    process: 1,
                    thread: thread as u32,
                    used: used[thread],
                })
                .collect();
            let first = due.look(&all).expect("three run");
            // Stepping takes time of its own, which is not counted.
            used[first.thread as usize] += 7000;
            due.took(first.thread, Some(used[first.thread as usize]));
            windows[first.thread as usize] += 1;
        }
        // All was new at the first look.
        assert_eq!(due.used.as_nanos(), 1_000_000 + 1_000_000);
        let is_near = |thread: usize, expected: i32| (windows[thread] - expected).abs() < 12;
        assert!(is_near(1, 600) && is_near(2, 300) && is_near(3, 100), "{windows:?}");
    }
}
