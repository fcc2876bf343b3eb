//! Counters of a whole program: attached to a process before its first instruction, inherited by all that descends from it.

use std::io;
use std::time::Duration;

use perf_event::events::{Hardware, Raw, Software};
use perf_event::{Builder, Counter, ReadFormat};

use super::{dtlb_misses, reason};

/// What can be counted about a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
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

    fn plain(self) -> Builder<'static> {
        let mut builder = self.event.builder();
        builder.exclude_kernel(self.user_only).exclude_hv(self.user_only);
        builder
    }

    /// Counts from exec on, and in every child and thread.
    fn builder(self) -> Builder<'static> {
        let mut builder = self.plain();
        builder
            .inherit(true)
            .enable_on_exec(true)
            .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
        builder
    }
}

/// Counters that never count. The kernel rewrites its own code when the first counter of an event is opened and the last one closed,
/// which takes longer than a short program; one that stays open spares the others that.
pub struct Held {
    _open: Vec<Counter>,
}

impl Held {
    /// One of each event; those that cannot be opened are left out.
    pub fn of(events: &[Countable]) -> Self {
        let open = |countable: &Countable| countable.plain().build().ok();
        Self {
            _open: events.iter().filter_map(open).collect(),
        }
    }
}

/// Counters of a program.
pub struct Attached(Vec<Open>);

/// A counter and its last reading.
struct Open {
    event: Event,
    counter: Counter,
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
    /// Opens them for a process that has yet to execute its program.
    ///
    /// # Errors
    /// The kernel's, for the first event that cannot be counted.
    pub fn to(pid: i32, events: &[Countable]) -> io::Result<Self> {
        let open = |countable: &Countable| {
            Ok(Open {
                event: countable.event,
                counter: countable.builder().observe_pid(pid).build()?,
                last: Count::default(),
            })
        };
        events.iter().map(open).collect::<io::Result<_>>().map(Self)
    }

    /// What was counted since the last reading, or from the start. An event that was never counted in that time, or cannot be
    /// read, is left out.
    pub fn read(&mut self) -> Vec<(Event, f64)> {
        self.0.iter_mut().filter_map(Open::read).collect()
    }
}

impl Open {
    fn read(&mut self) -> Option<(Event, f64)> {
        let now = Count::read(&mut self.counter).ok()?;
        let since = now.since(self.last);
        self.last = now;
        scaled(since).map(|count| (self.event, count))
    }
}

impl Count {
    fn read(counter: &mut Counter) -> io::Result<Self> {
        let nanoseconds = |time: Option<Duration>| time.unwrap_or_default().as_nanos() as u64;
        let data = counter.read_full()?;
        Ok(Self {
            value: data.count(),
            enabled: nanoseconds(data.time_enabled()),
            running: nanoseconds(data.time_running()),
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
