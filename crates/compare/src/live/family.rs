//! The processes of a server, wherever they went: what backs their memory, shared memory counted once, and what they used.

use std::collections::BTreeMap;
use std::time::Duration;

use host::Source;
use host::processes::{Stat, smaps};
use model::compare::Metric;
use model::{Backing, Bytes, Cause, PageKind, Unread};
use process::{cpu_time, is_own, tree};

/// The variable that stays with what a server's command starts, also where another process becomes its parent.
pub(super) const MARK: &str = "HUGEWISE_RUN";

/// The processes that a command started.
pub(super) struct Family {
    source: Source,
    /// The command's own, and those that descend from it no more.
    roots: Vec<u32>,
    mark: String,
}

/// What a look at all of them found.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Own memory by page kind; files that they mapped are left out.
    pub(super) backing: Result<Backing, Unread>,
    /// Code from files.
    pub(super) text: Backing,
    /// What their memory comes to once all that is shared is touched.
    pub(super) whole: Bytes,
    /// CPU time that the look took.
    pub(super) took: Duration,
}

/// What they used since they started, those that ended and were waited for among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    user: u64,
    system: u64,
    faults: u64,
    major_faults: u64,
}

impl Family {
    pub(super) fn new(root: u32, mark: &str) -> Self {
        Self {
            source: Source::live(),
            roots: vec![root],
            mark: format!("{MARK}={mark}"),
        }
    }

    /// Looks for those that have left: daemons, and what `su` or `pg_ctl` started. What systemd starts for it has no mark.
    pub(super) fn find_daemons(&mut self) {
        // Once the command has ended, all that is left of it in its cgroup are daemons.
        let root = self.roots[0];
        let known = if self.is_there(root) { self.pids() } else { vec![root] };
        let mut marked = tree::with_variable(&self.source, self.mark.as_bytes());
        marked.retain(|pid| !known.contains(pid));
        self.roots.extend(marked);
    }

    /// All of them that are there now.
    pub(super) fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self
            .roots
            .iter()
            .flat_map(|root| tree::of(&self.source, *root).pids)
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    pub(super) fn has_daemons(&self) -> bool {
        self.roots.iter().skip(1).any(|pid| self.is_there(*pid))
    }

    fn is_there(&self, pid: u32) -> bool {
        let stat = Stat::of(&self.source, pid).into_result().ok().flatten();
        let state = stat.and_then(|stat| stat.state());
        state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// What they used; processes that could not be read are left out.
    pub(super) fn used(&self) -> Used {
        let stats = self.pids().into_iter();
        let stats = stats.filter_map(|pid| Stat::of(&self.source, pid).into_result().ok().flatten());
        stats
            .filter_map(|stat| Used::of(&stat))
            .fold(Used::default(), Used::and)
    }

    /// What backs their memory now.
    pub(super) fn look(&self) -> Look {
        let began = cpu_time();
        let mut sum = Sum::default();
        for pid in self.pids() {
            let path = format!("/proc/{pid}/smaps");
            let bytes = self.source.bytes_within(&path, Bytes::gib(1)).into_result();
            let read = bytes.and_then(|bytes| smaps::parse(&path, &bytes).map(|mappings| sum.add(&mappings)));
            match read {
                // It has ended.
                Err(why) if why.unread != Cause::Absent => sum.why_not = Some(why),
                _ => {}
            }
        }
        Look {
            took: cpu_time().saturating_sub(began),
            ..sum.look()
        }
    }
}

impl Used {
    fn of(stat: &Stat) -> Option<Self> {
        let [user, system] = stat.ticks()?;
        let [faults, major_faults] = stat.all_faults()?;
        Some(Self {
            user,
            system,
            faults,
            major_faults,
        })
    }

    fn and(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
            faults: self.faults + other.faults,
            major_faults: self.major_faults + other.major_faults,
        }
    }

    /// What was used since, by metric. `None` if that is no time at all, or less than before: then these are not the processes
    /// that worked, or some of them ended where their accounts are lost.
    pub(super) fn since(self, before: Self) -> Option<[(Metric, f64); 5]> {
        let seconds = |now: u64, before: u64| Some(now.checked_sub(before)? as f64 / ticks_per_second());
        let (user, system) = (seconds(self.user, before.user)?, seconds(self.system, before.system)?);
        let faults = self.faults.checked_sub(before.faults)? as f64;
        let major = self.major_faults.checked_sub(before.major_faults)? as f64;
        (user + system > 0.0).then_some([
            (Metric::Cpu, user + system),
            (Metric::User, user),
            (Metric::System, system),
            (Metric::Faults, faults),
            (Metric::MajorFaults, major),
        ])
    }
}

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// A file by device and inode.
type File = (Vec<u8>, u64);
/// What is mapped of it by page kind, and in all.
type Mapped = (BTreeMap<PageKind, Bytes>, Bytes);

/// The memory of several processes, in the making.
#[derive(Default)]
struct Sum {
    private: Backing,
    text: Backing,
    /// By device and inode: the most that one process has of it on each page kind, and its size.
    shared: BTreeMap<File, Mapped>,
    why_not: Option<Unread>,
}

impl Sum {
    fn add(&mut self, mappings: &[host::processes::Mapping<&[u8]>]) {
        // Several mappings of one process that are of one file are parts of it.
        let mut shared: BTreeMap<(Vec<u8>, u64), (Backing, Bytes)> = BTreeMap::new();
        for mapping in mappings {
            if !is_own(mapping.name) {
                if mapping.perms.contains(&b'x') {
                    self.text.extend(mapping.backing().iter());
                }
            } else if mapping.perms.ends_with(b"s") {
                let part = shared.entry((mapping.device.to_vec(), mapping.inode)).or_default();
                part.0.extend(mapping.backing().iter());
                part.1 = Bytes(part.1.0 + mapping.size().0);
            } else {
                self.private.extend(mapping.backing().iter());
            }
        }
        for (file, (backing, size)) in shared {
            let most = self.shared.entry(file).or_default();
            for (kind, bytes) in backing.iter() {
                let known = most.0.entry(kind).or_default();
                *known = (*known).max(bytes);
            }
            most.1 = most.1.max(size);
        }
    }

    fn look(self) -> Look {
        let whole = self.private.total().0 + self.shared.values().map(|(_, size)| size.0).sum::<u64>();
        let mut backing = self.private;
        for (kinds, _) in self.shared.into_values() {
            backing.extend(kinds);
        }
        let is_empty = backing.total().0 == 0;
        let nothing = || Unread::new(Cause::Absent, "/proc/PID/smaps", "no process of the server was found");
        Look {
            backing: match self.why_not {
                Some(why) => Err(why),
                None if is_empty => Err(nothing()),
                None => Ok(backing),
            },
            text: self.text,
            whole: Bytes(whole),
            took: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use host::processes::smaps;
    use model::{Bytes, PageKind};

    use super::{Sum, Used};

    const SERVER: &str = "\
7f0000000000-7f0040000000 rw-s 00000000 00:0f 77 /anon_hugepage (deleted)
Size: 1048576 kB
KernelPageSize: 2048 kB
Rss: 0 kB
Shared_Hugetlb: 8192 kB
VmFlags: rd wr sh ht
7f0050000000-7f0050100000 rw-p 00000000 00:00 0
Size: 1024 kB
KernelPageSize: 4 kB
Rss: 512 kB
VmFlags: rd wr
";

    #[test]
    fn memory_that_processes_share_counts_once_and_that_of_each_counts_for_each() {
        let other = SERVER.replace("8192 kB", "4096 kB");
        let mut sum = Sum::default();
        for text in [SERVER, &other] {
            sum.add(&smaps::parse("smaps", text.as_bytes()).expect("smaps"));
        }
        let look = sum.look();
        let backing = look.backing.expect("there");
        assert_eq!(backing.of(PageKind::HUGETLB_2M), Bytes::mib(8));
        assert_eq!(backing.of(PageKind::Base), Bytes::mib(1));
        assert_eq!(look.whole, Bytes(Bytes::gib(1).0 + Bytes::mib(1).0));
        assert!(Sum::default().look().backing.is_err(), "nothing is not zero");
    }

    #[test]
    fn a_server_that_used_no_time_is_not_the_one_that_worked() {
        let used = |user, faults| Used {
            user,
            faults,
            ..Used::default()
        };
        assert_eq!(used(5, 9).since(used(5, 3)), None);
        assert_eq!(used(4, 9).since(used(5, 3)), None, "what ended is lost");
        let metrics = used(7, 9).since(used(5, 3)).expect("two ticks");
        assert!(metrics[0].1 > 0.0 && metrics[3].1 == 6.0);
    }
}
