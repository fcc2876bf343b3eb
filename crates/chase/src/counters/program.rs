//! Counters of a whole program: attached to a process before its first instruction, inherited by all that descends from it.

use perf_event::events::{Hardware, Raw, Software};
use perf_event::{Builder, CountAndTime, Counter};

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
            .enable_on_exec(true);
        builder
    }
}

/// Counters that were attached to a program.
pub struct Attached(Vec<(Event, Counter)>);

impl Attached {
    /// Attaches to a process of this user that is about to exec.
    ///
    /// # Errors
    /// A sentence, if one of the counters cannot be attached.
    pub fn to(pid: i32, events: &[Countable]) -> Result<Self, String> {
        let open = |countable: &Countable| {
            let counter = countable.builder().observe_pid(pid).build();
            counter
                .map(|counter| (countable.event, counter))
                .map_err(|error| reason(&error))
        };
        events.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// What was counted until now. An event that was never counted, or cannot be read, is left out.
    pub fn read(&mut self) -> Vec<(Event, f64)> {
        let count = |(event, counter): &mut (Event, Counter)| {
            let read = counter.read_count_and_time().ok()?;
            scaled(read).map(|count| (*event, count))
        };
        self.0.iter_mut().filter_map(count).collect()
    }
}

/// The count, scaled up where others had the counter for a part of the time; `None` if it never counted.
fn scaled(read: CountAndTime) -> Option<f64> {
    (read.time_running > 0).then(|| read.count as f64 * read.time_enabled as f64 / read.time_running as f64)
}

#[cfg(test)]
mod tests {
    use super::{CountAndTime, Countable, Event, scaled};

    #[test]
    fn a_counter_that_had_half_of_the_time_counts_twice_and_one_without_time_is_none() {
        let read = |time_running| CountAndTime {
            count: 100,
            time_enabled: 10,
            time_running,
        };
        assert_eq!(
            [10, 5, 0].map(|time| scaled(read(time))),
            [Some(100.0), Some(200.0), None]
        );
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
