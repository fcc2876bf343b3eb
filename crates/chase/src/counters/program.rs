//! Counters of a whole program: attached to a process before its first instruction, inherited by all that descends from it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use perf_event::events::{Hardware, Raw, Software};
use perf_event::{Builder, Counter, ReadFormat};

use super::{dtlb_misses, reason};

/// What can be counted about a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Retired instructions.
    Instructions,
    /// Data TLB load misses, as the kernel defines `dTLB-load-misses` for this CPU.
    DtlbMisses,
    /// Cycles in which a page walk was under way, by the CPU's own code for that event.
    WalkCycles(u64),
    /// Moves of any thread from one CPU to another; the kernel counts them, no hardware does.
    Migrations,
}

/// An event that can be counted here, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Countable {
    /// The event.
    pub event: Event,
    /// Is only user mode counted, because the kernel's part is not permitted?
    pub user_only: bool,
}

impl Event {
    /// Does hardware count it?
    pub fn is_hardware(self) -> bool {
        self != Self::Migrations
    }

    fn builder(self) -> Builder<'static> {
        match self {
            Self::Instructions => Builder::new(Hardware::INSTRUCTIONS),
            Self::DtlbMisses => Builder::new(dtlb_misses()),
            Self::WalkCycles(code) => Builder::new(Raw::new(code)),
            Self::Migrations => Builder::new(Software::CPU_MIGRATIONS),
        }
    }
}

impl Countable {
    /// Tries to count an event: in all modes, and in user mode only if the kernel's part is not permitted.
    ///
    /// # Errors
    /// A sentence that says why it cannot be counted and what could be done.
    pub fn probe(event: Event) -> Result<Self, String> {
        let try_it = |user_only: bool| {
            let countable = Self { event, user_only };
            countable.builder().build().map(|_| countable)
        };
        let denied = |error: &std::io::Error| matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM));
        match try_it(false) {
            // Threads move in kernel mode: a count without it would be zero.
            Err(error) if denied(&error) && event.is_hardware() => try_it(true),
            other => other,
        }
        .map_err(|error| reason(&error))
    }

    /// Counts from exec on, and in every child and thread.
    fn builder(self) -> Builder<'static> {
        let mut builder = self.event.builder();
        builder
            .exclude_kernel(self.user_only)
            .exclude_hv(self.user_only)
            .inherit(true)
            .enable_on_exec(true)
            .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
        builder
    }

    /// Keeps the event in use for as long as the answer lives, without counting anything.
    ///
    /// # Errors
    /// The kernel's.
    pub fn hold(self) -> io::Result<Held> {
        let mut builder = self.event.builder();
        builder.exclude_kernel(self.user_only).exclude_hv(self.user_only);
        builder.build().map(Held)
    }

    /// What a process does between fork and exec to have itself counted: one system call that takes no memory. The file goes to
    /// the reader of the count.
    pub fn opener(self) -> impl Fn() -> io::Result<OwnedFd> + Send + Sync + 'static {
        /// `PERF_FLAG_FD_CLOEXEC` of `linux/perf_event.h`.
        const CLOSED_ON_EXEC: libc::c_ulong = 1 << 3;
        const ITSELF: libc::pid_t = 0;
        const ANY_CPU: libc::c_int = -1;
        const NO_GROUP: libc::c_int = -1;
        let attributes = *self.builder().attrs();
        move || {
            let (attributes, flags) = (&raw const attributes, CLOSED_ON_EXEC);
            // SAFETY: the attributes outlive the call and state their own size.
            let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, ITSELF, ANY_CPU, NO_GROUP, flags) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the kernel has just made this file, and nothing else refers to it.
            Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
        }
    }
}

/// An event in use. With the first counter of an event the kernel rewrites its own code on every CPU, and with the last one
/// it writes it back: a tenth of a millisecond for each program that is counted, unless another program holds the event.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "it is there to be open")] Counter);

/// Counters of a program that opened them on itself.
pub struct Attached(Vec<Open>);

/// A counter and its last reading.
struct Open {
    event: Event,
    file: File,
    last: Count,
}

/// A count, and how long the counter should have counted and did, in nanoseconds: the kernel's `read_format`.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    value: u64,
    enabled: u64,
    running: u64,
}

impl Attached {
    /// The files that the openers of these events gave, in the same order.
    pub fn of(events: &[Countable], opened: Vec<OwnedFd>) -> Self {
        let open = |(countable, file): (&Countable, OwnedFd)| Open {
            event: countable.event,
            file: file.into(),
            last: Count::default(),
        };
        Self(events.iter().zip(opened).map(open).collect())
    }

    /// What was counted since the last reading, or from the start. An event that was never counted in that time, or cannot be
    /// read, is left out.
    pub fn read(&mut self) -> Vec<(Event, f64)> {
        self.0.iter_mut().filter_map(Open::read).collect()
    }
}

impl Open {
    fn read(&mut self) -> Option<(Event, f64)> {
        let now = Count::read(&mut self.file).ok()?;
        let since = now.since(self.last);
        self.last = now;
        scaled(since).map(|count| (self.event, count))
    }
}

impl Count {
    fn read(file: &mut File) -> io::Result<Self> {
        // The kernel gives all at once or nothing.
        let mut bytes = [0; 3 * size_of::<u64>()];
        file.read_exact(&mut bytes)?;
        let mut words = bytes
            .chunks_exact(size_of::<u64>())
            .map(|word| word.try_into().map(u64::from_ne_bytes));
        let mut word = || words.next().and_then(Result::ok).unwrap_or_default();
        Ok(Self {
            value: word(),
            enabled: word(),
            running: word(),
        })
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.saturating_sub(earlier.value),
            enabled: self.enabled.saturating_sub(earlier.enabled),
            running: self.running.saturating_sub(earlier.running),
        }
    }
}

/// The count, scaled up where others had the counter for a part of the time; `None` if it never counted.
fn scaled(count: Count) -> Option<f64> {
    (count.running > 0).then(|| count.value as f64 * count.enabled as f64 / count.running as f64)
}

#[cfg(test)]
mod tests {
    use super::{Count, Countable, Event, scaled};

    #[test]
    fn a_counter_that_had_half_of_the_time_counts_twice_and_one_without_time_is_none() {
        let read = |running| Count {
            value: 100,
            enabled: 10,
            running,
        };
        assert_eq!(
            [10, 5, 0].map(|time| scaled(read(time))),
            [Some(100.0), Some(200.0), None]
        );
    }

    #[test]
    fn what_came_between_two_readings_is_scaled_by_the_time_between_them() {
        let count = |value, enabled, running| Count {
            value,
            enabled,
            running,
        };
        let since = count(300, 20, 15).since(count(100, 10, 10));
        assert_eq!(scaled(since), Some(400.0));
        assert_eq!(scaled(count(300, 20, 15).since(count(300, 20, 15))), None);
    }

    #[test]
    fn an_event_is_countable_or_says_why_not() {
        for event in [Event::Instructions, Event::DtlbMisses, Event::Migrations] {
            match Countable::probe(event) {
                Ok(countable) => assert_eq!(countable.event, event),
                Err(why) => assert!(why.len() > 20, "{why}"),
            }
        }
    }
}
