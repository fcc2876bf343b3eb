//! The CPU time of chosen threads of a program, read from outside.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use host::Source;
use model::{Cause, Unread, counted};

use process::tree;

/// Whose CPU time counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// Every thread of the program and of the processes that it started.
    #[default]
    All,
    /// Those whose name (`/proc/PID/task/TID/comm`, 15 characters at most) begins so.
    Named(String),
}

/// CPU time of each thread since it began, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times(BTreeMap<u32, Duration>);

/// CPU time between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Of all the threads together.
    pub cpu: Duration,
    /// Threads that ended in between: what they used after the first moment is not in it.
    pub ended: usize,
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Err("write `all`, or how the names of the threads begin (ps -T shows them)".to_owned()),
            "all" => Ok(Self::All),
            name => Ok(Self::Named(name.chars().take(15).collect())),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::Named(beginning) => f.pad(beginning),
        }
    }
}

impl Threads {
    /// The CPU time so far of those threads of a process and all that descend from it, from their `schedstat`.
    ///
    /// # Errors
    /// If there is no such thread, or the kernel keeps no such account.
    pub fn times(&self, source: &Source, root: u32) -> Result<Times, Unread> {
        let family = tree::of(source, root);
        if let Some(why) = family.not_whole {
            return Err(why);
        }
        let threads = tree::threads(source, family.pids).filter(|&(pid, task)| self.is_meant(source, pid, task));
        let mut times = BTreeMap::new();
        for (pid, task) in threads {
            // One that ended while it was looked at has none.
            if let Some([used, _]) = host::threads::read_times(source, pid, task).if_present()? {
                times.insert(task, Duration::from_nanos(used));
            }
        }
        match times.is_empty() {
            true => Err(self.nobody(root)),
            false => Ok(Times(times)),
        }
    }

    fn is_meant(&self, source: &Source, pid: u32, task: u32) -> bool {
        match self {
            Self::All => true,
            Self::Named(beginning) => {
                let name = source.text(&format!("/proc/{pid}/task/{task}/comm"));
                name.known().is_some_and(|name| name.starts_with(beginning.as_str()))
            }
        }
    }

    fn nobody(&self, root: u32) -> Unread {
        let why = match self {
            Self::All => "the process is not there, or the kernel keeps no schedstat".to_owned(),
            Self::Named(name) => format!("no thread has a name that begins with `{name}` (ps -T -p {root} shows them)"),
        };
        Unread::new(Cause::Absent, format!("/proc/{root}/task"), why)
    }
}

impl Used {
    /// That some of it is missing.
    pub(crate) fn note(&self) -> Option<String> {
        let threads = counted(self.ended, "thread");
        (self.ended > 0).then(|| format!("{threads} ended in the slice: the last of that CPU time is missing"))
    }
}

impl Times {
    /// What was used since an earlier moment; of a thread that began in between, all of it.
    pub fn since(&self, earlier: &Self) -> Used {
        let of =
            |(task, time): (&u32, &Duration)| time.saturating_sub(earlier.0.get(task).copied().unwrap_or_default());
        Used {
            cpu: self.0.iter().map(of).sum(),
            ended: earlier.0.keys().filter(|task| !self.0.contains_key(task)).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Threads, Times, Used};
    use host::{Source, Tree};
    use model::Unread;
    use std::time::Duration;

    fn times(threads: &str, all: &[(u32, &str, u64)]) -> Result<Times, Unread> {
        let mut machine = Tree::default();
        for (task, name, nanoseconds) in all {
            let folder = format!("/proc/7/task/{task}");
            machine = machine.file(&format!("{folder}/comm"), format!("{name}\n"));
            let folder = folder.replace("/task/7", "");
            machine = machine.file(&format!("{folder}/schedstat"), format!("{nanoseconds} 17 3\n"));
        }
        let threads: Threads = threads.parse().expect("threads");
        threads.times(&Source::from_tree("made", machine), 7)
    }

    #[test]
    fn only_the_chosen_threads_count_and_those_that_ended_are_told() {
        let before = [(7, "java", 100), (8, "worker-1", 1000), (9, "worker-2", 2000)];
        let after = [(7, "java", 190), (8, "worker-1", 1500), (10, "worker-3", 40)];
        let used = |threads: &str| {
            let earlier = times(threads, &before).expect("there");
            times(threads, &after).expect("there").since(&earlier)
        };
        let told = |nanoseconds| Used {
            cpu: Duration::from_nanos(nanoseconds),
            ended: 1,
        };
        assert_eq!((used("worker"), used("all")), (told(540), told(630)));
        let why = times("gc", &before).expect_err("nobody").to_string();
        assert!(why.contains("begins with `gc`"), "{why}");
        assert!("".parse::<Threads>().is_err());
        assert_eq!(
            ["all", "worker"].map(|text| text.parse::<Threads>().expect(text).to_string()),
            ["all", "worker"]
        );
    }
}
