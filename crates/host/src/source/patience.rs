//! Reads that another process can hold up by a lock on its memory: each is waited for within a bound, and all of them together within
//! another. The kernel ends such a wait with this process.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// For accounts of a process's memory: the kernel needs its lock, and walks 60 GiB of base pages in about a second.
pub(super) const MEMORY: Duration = Duration::from_secs(5);

/// Time that may be lost to reads that do not answer; afterwards each is waited for no longer than [`SHORT`].
const LOST: Duration = Duration::from_secs(6);
const SHORT: Duration = Duration::from_millis(50);
/// Threads that wait for an answer until the program ends; with so many nothing more is tried.
const MOST_STUCK: u32 = 64;
/// A thread that reads a file needs little.
const STACK: usize = 128 << 10;

static LOST_SO_FAR: AtomicU64 = AtomicU64::new(0);
static STUCK: AtomicU32 = AtomicU32::new(0);

/// A thread that reads one file after the other, as long as it answers; a thread for each would cost more than most reads.
pub(super) struct Reader<Q, A>(RefCell<Option<Line<Q, A>>>);

struct Line<Q, A> {
    ask: Sender<Q>,
    answer: Receiver<A>,
    /// The process that its thread is one of.
    process: u32,
}

impl<Q: Send + 'static, A: Send + 'static> Reader<Q, A> {
    pub(super) const fn new() -> Self {
        Self(RefCell::new(None))
    }

    /// The answer to a question within `limit`; else why not.
    pub(super) fn within(&self, limit: Duration, question: Q, work: fn(Q) -> A) -> Result<A, String> {
        let limit = allowed(limit)?;
        let mut line = self.0.borrow_mut();
        if line.as_ref().is_some_and(|line| line.process != std::process::id()) {
            // A copy of that process has neither the thread nor, if it held a lock of the line just then, any way to drop the line.
            std::mem::forget(line.take());
        }
        if line.is_none() {
            *line = Some(Line::start(work)?);
        }
        let answer = line.as_ref().ok_or("no thread could be started").and_then(|line| {
            line.ask.send(question).map_err(|_| "the thread that reads has ended")?;
            Ok(wait(&line.answer, limit))
        });
        let answer = answer.unwrap_or_else(|why| Err(why.to_owned()));
        if answer.is_err() {
            *line = None;
        }
        answer
    }
}

impl<Q: Send + 'static, A: Send + 'static> Line<Q, A> {
    fn start(work: fn(Q) -> A) -> Result<Self, String> {
        let (ask, questions) = channel();
        let (answers, answer) = channel();
        let serve = move || {
            while let Ok(question) = questions.recv() {
                if answers.send(work(question)).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().stack_size(STACK).spawn(serve);
        started.map_err(|error| format!("no thread could be started: {error}"))?;
        let process = std::process::id();
        Ok(Self { ask, answer, process })
    }
}

fn allowed(limit: Duration) -> Result<Duration, String> {
    if STUCK.load(Ordering::Relaxed) >= MOST_STUCK {
        return Err(format!("left out: {MOST_STUCK} reads before it got no answer"));
    }
    let lost = Duration::from_nanos(LOST_SO_FAR.load(Ordering::Relaxed));
    Ok(if lost < LOST { limit } else { limit.min(SHORT) })
}

fn wait<T>(answer: &Receiver<T>, limit: Duration) -> Result<T, String> {
    let began = Instant::now();
    answer.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            STUCK.fetch_add(1, Ordering::Relaxed);
            LOST_SO_FAR.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            format!("no answer within {limit:?}")
        }
        RecvTimeoutError::Disconnected => "the thread that reads has ended".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::Reader;

    #[test]
    fn a_reader_that_got_stuck_is_replaced() {
        let reader: Reader<u32, u32> = Reader::new();
        let work = |question: u32| match question {
            0 => loop {
                thread::park();
            },
            other => other * 2,
        };
        let ask = |question, limit| reader.within(limit, question, work);
        assert_eq!(ask(4, Duration::from_secs(30)), Ok(8));
        assert!(ask(0, Duration::from_millis(5)).is_err());
        assert_eq!(ask(5, Duration::from_secs(30)), Ok(10));
    }
}
