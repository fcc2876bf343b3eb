//! What a capture saw of the threads of busy, pinned and virtualizing processes, as one file of it.

use std::fmt::Write as _;

use model::{Cause, Reading, Unread};

use crate::Source;

/// Where a capture keeps it: a line `looked SECONDS`, then for each thread `PID TID SHARE RUNNABLE CPU`, where `-` is not known.
pub const THREADS: &str = "/hugewise/threads";
const LOOKED: &str = "looked";

/// Nanoseconds of a thread on a CPU and on run queues; absent once it has ended, or without CONFIG_SCHED_INFO.
pub fn read_times(source: &Source, pid: u32, tid: u32) -> Reading<[u64; 2]> {
    // The first thread's is that of its process, which is found in half the steps.
    let path = match tid == pid {
        true => format!("/proc/{pid}/schedstat"),
        false => format!("/proc/{pid}/task/{tid}/schedstat"),
    };
    let numbers = |line: String| {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse().ok());
        let both = numbers.next().zip(numbers.next()).map(|(used, waited)| [used, waited]);
        both.ok_or_else(|| {
            Unread::new(
                Cause::Garbled,
                path.as_str(),
                "two numbers of nanoseconds were expected",
            )
        })
    };
    source.line(&path).into_result().and_then(numbers).into()
}

/// The same where only what is there counts.
pub fn times(source: &Source, pid: u32, tid: u32) -> Option<[u64; 2]> {
    read_times(source, pid, tid).into_result().ok()
}

/// Some looks at threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// From the first to the last.
    pub seconds: f64,
    /// Those that were looked at.
    pub threads: Vec<Seen>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub pid: u32,
    pub tid: u32,
    /// CPU time in that time.
    pub share: Option<f64>,
    /// Did it run or wait for a CPU at every look?
    pub is_runnable: bool,
    /// Where it was at every look; `None` if it moved.
    pub cpu: Option<u32>,
}

impl Look {
    /// What a capture has; `None` of a machine that runs, and of captures without threads.
    pub fn read(source: &Source) -> Option<Self> {
        let text = source.text(THREADS).into_result().ok().filter(|_| !source.is_live())?;
        let (first, rest) = text.split_once('\n')?;
        Some(Self {
            seconds: first.strip_prefix(LOOKED)?.trim().parse().ok()?,
            threads: rest.lines().filter_map(Seen::parse).collect(),
        })
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("{LOOKED} {:.3}\n", self.seconds);
        for seen in &self.threads {
            let share = seen.share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"));
            let cpu = seen.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string());
            let runnable = u8::from(seen.is_runnable);
            // Nothing fails that writes to a string.
            let _ = writeln!(text, "{} {} {share} {runnable} {cpu}", seen.pid, seen.tid);
        }
        text
    }
}

impl Seen {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        Some(Self {
            pid: words.next()?.parse().ok()?,
            tid: words.next()?.parse().ok()?,
            share: words.next()?.parse().ok(),
            is_runnable: words.next()? == "1",
            cpu: words.next()?.parse().ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Look, Seen, THREADS};
    use crate::{Source, Tree};

    #[test]
    fn what_was_written_is_read_again_and_lines_of_others_are_not() {
        let seen = |tid, share, is_runnable, cpu| Seen {
            pid: 7,
            tid,
            share,
            is_runnable,
            cpu,
        };
        let look = Look {
            seconds: 0.25,
            threads: vec![seen(7, Some(0.998), true, Some(3)), seen(8, None, false, None)],
        };
        let read = |text: String| Look::read(&Source::from_tree("made", Tree::new().file(THREADS, text)));
        assert_eq!(read(look.to_text()), Some(look.clone()));
        assert_eq!(read(format!("{}7 x 1\n\n", look.to_text())), Some(look));
        assert_eq!(read("0.25\n".to_owned()), None);
        assert_eq!(Look::read(&Source::from_tree("made", Tree::new())), None);
    }
}
