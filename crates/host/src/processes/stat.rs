//! /proc/PID/stat: state, identity and faults of a process or thread.

use std::str::FromStr;

use model::Reading;

use crate::Source;

/// The line, whose fields are numbered as in proc_pid_stat(5). A field that is missing or no number is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pid: Option<u32>,
    name: String,
    /// Field 3 and those after it.
    rest: String,
}

impl Stat {
    /// Reads the line; `None` if it is not one. The name, in parentheses, may hold anything, parentheses too.
    pub fn parse(line: &str) -> Option<Self> {
        let (before, rest) = line.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        Some(Self {
            name: name.to_owned(),
            pid: before.split(' ').next().and_then(|pid| pid.parse().ok()),
            rest: rest.to_owned(),
        })
    }

    /// Of a process. The name may hold bytes that are no text.
    pub fn of(source: &Source, pid: u32) -> Reading<Option<Self>> {
        let line = source.bytes(&format!("/proc/{pid}/stat"));
        line.map(|line| Self::parse(&String::from_utf8_lossy(&line)))
    }

    /// That of a thread; `None` once it has ended.
    pub fn of_thread(source: &Source, pid: u32, tid: u32) -> Option<Self> {
        let line = source.bytes(&format!("/proc/{pid}/task/{tid}/stat"));
        Self::parse(&String::from_utf8_lossy(line.known()?))
    }

    /// Process id.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Its name, 15 bytes at most.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `R`, `S`, `T`, `Z`, ...
    pub fn state(&self) -> Option<char> {
        self.field(3)
    }

    /// The parent's process id.
    pub fn parent(&self) -> Option<u32> {
        self.field(4)
    }

    pub fn group(&self) -> Option<i32> {
        self.field(5)
    }

    /// `PF_*` of the kernel's sched.h.
    pub fn flags(&self) -> Option<u64> {
        self.field(9)
    }

    /// Faults without input or output.
    pub fn faults(&self) -> Option<u64> {
        self.field(10)
    }

    /// Faults that waited for a disk.
    pub fn major_faults(&self) -> Option<u64> {
        self.field(12)
    }

    /// Clock ticks in user and in system mode, with those of the children that it has waited for.
    pub fn ticks(&self) -> Option<[u64; 2]> {
        let sum = |own, children| Some(self.field::<u64>(own)?.saturating_add(self.field(children)?));
        Some([sum(14, 16)?, sum(15, 17)?])
    }

    /// Faults, and those that waited for a disk, with those of the children that it has waited for.
    pub fn all_faults(&self) -> Option<[u64; 2]> {
        let sum = |own, children| Some(self.field::<u64>(own)? + self.field::<u64>(children)?);
        Some([sum(10, 11)?, sum(12, 13)?])
    }

    pub fn threads(&self) -> Option<u64> {
        self.field(20)
    }

    /// Clock ticks from boot to its start. With its id, this identifies a process until the next boot.
    pub fn started(&self) -> Option<u64> {
        self.field(22)
    }

    /// Mask of pending signals.
    pub fn pending(&self) -> Option<u64> {
        self.field(31)
    }

    /// The CPU that it runs on, or ran on last.
    pub fn processor(&self) -> Option<u32> {
        self.field(39)
    }

    fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.rest.split_ascii_whitespace().nth(number - 3)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn a_name_with_parentheses_and_blanks_is_no_obstacle() {
        let line = "71 (a) b (c) S 1 72 71 0 -1 4194560 1234 0 56 0 10 20 0 0 20 0 1 0 987654 4096 100";
        let stat = Stat::parse(line).expect("a line");
        assert_eq!((stat.pid(), stat.state()), (Some(71), Some('S')));
        assert_eq!((stat.name(), stat.processor()), ("a) b (c", None));
        assert_eq!((stat.parent(), stat.group()), (Some(1), Some(72)));
        assert_eq!((stat.faults(), stat.major_faults()), (Some(1234), Some(56)));
        assert_eq!((stat.started(), stat.threads()), (Some(987_654), Some(1)));
        assert_eq!(stat.pending(), None, "the line ends before it");
        let cut = Stat::parse("71 (cut) S 1").expect("a line");
        assert_eq!((cut.state(), cut.started()), (Some('S'), None));
        assert_eq!(Stat::parse("garbled"), None);
    }
}
