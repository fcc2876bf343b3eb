//! What a program used with all that descended from it, and when that is not known.

use std::process::ExitStatus;
use std::time::Duration;

/// What a killed process takes to end: one in an uninterruptible wait, or with much memory to give back, takes longest.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Between being asked to end and being killed.
pub(crate) const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// How a child ended and what it used.
pub struct Ended {
    pub status: ExitStatus,
    /// The largest resident set of any one process that was waited for, in bytes.
    pub max_rss: u64,
    /// CPU time of all that descended from it; `None` if that of some of them is not known.
    pub cpu: Option<Cpu>,
    /// What else was counted, likewise.
    pub counts: Option<Counts>,
}

/// CPU seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    pub user: f64,
    pub system: f64,
}

/// What the kernel counts of a process and of those that it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub faults: u64,
    pub major_faults: u64,
    /// Voluntary context switches.
    pub waits: u64,
    /// Involuntary context switches.
    pub preemptions: u64,
}

impl Cpu {
    pub fn total(self) -> f64 {
        self.user + self.system
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            user: (self.user - before.user).max(0.0),
            system: (self.system - before.system).max(0.0),
        }
    }

    /// Each process's time is rounded down, and a process is made before it is in its cgroup.
    fn is_about_all_of(self, all: Self) -> bool {
        all.total() <= self.total() * 1.01 + 0.001
    }
}

impl Ended {
    /// What all that descended from it used, of which the kernel added up those that were waited for: given what their cgroup
    /// counted, if they had one, and whether others outlived it.
    pub(crate) fn of_all(self, cgroup: Option<Cpu>, has_left_others: bool) -> Self {
        let waited_for = self.cpu.filter(|_| !has_left_others);
        let is_all = waited_for.is_some_and(|cpu| cgroup.is_none_or(|all| cpu.is_about_all_of(all)));
        Self {
            cpu: cgroup.or(waited_for),
            counts: self.counts.filter(|_| is_all),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::{Counts, Cpu, Ended};

    fn cpu(user: f64) -> Cpu {
        Cpu { user, system: 0.5 }
    }

    fn told(cgroup: Option<Cpu>, has_left_others: bool) -> (Option<Cpu>, bool) {
        let ended = Ended {
            status: ExitStatus::from_raw(0),
            max_rss: 0,
            cpu: Some(cpu(2.0)),
            counts: Some(Counts::default()),
        };
        let all = ended.of_all(cgroup, has_left_others);
        (all.cpu, all.counts.is_some())
    }

    #[test]
    fn without_a_cgroup_what_others_used_that_outlived_it_is_not_known_and_no_zero() {
        assert_eq!(told(None, false), (Some(cpu(2.0)), true));
        assert_eq!(told(None, true), (None, false));
    }

    #[test]
    fn a_cgroup_has_all_cpu_time_and_shows_whether_the_other_counts_are_whole() {
        assert_eq!(told(Some(cpu(1.999)), false), (Some(cpu(1.999)), true));
        assert_eq!(told(Some(cpu(1.999)), true), (Some(cpu(1.999)), false));
        // A daemon that ended before, and that init waited for.
        assert_eq!(told(Some(cpu(2.2)), false), (Some(cpu(2.2)), false));
    }
}
