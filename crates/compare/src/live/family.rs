//! The processes of a server, wherever they went: what backs their memory, shared memory counted once, and what they used.

use std::time::Duration;

use host::Source;
use host::processes::areas::Area;
use host::processes::{Coverage, Sort, Stat, objects};
use model::compare::Metric;
use model::{Backing, Bytes, Cause, Unread};
use process::{Walk, tree, walk};

/// The variable that stays with what a server's command starts, also where another process becomes its parent.
pub(super) const MARK: &str = "HUGEWISE_RUN";

/// A smaller mapping may be the stack of a thread, which is never touched whole.
const PIECE: Bytes = Bytes::mib(16);

/// The processes that a command started.
pub(super) struct Family {
    source: Source,
    /// The command's own, and those that descend from it no more.
    roots: Vec<u32>,
    mark: String,
    thp_size: Option<Bytes>,
}

/// What a look at all of them found.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Own memory by page kind; files that they mapped are left out.
    pub(super) backing: Result<Backing, Unread>,
    /// Code from files.
    pub(super) text: Backing,
    /// What their memory comes to once all of it is touched.
    pub(super) whole: Bytes,
    /// CPU time that the look took.
    pub(super) took: Duration,
}

/// What they used since they started, those that ended and were waited for among them: ticks as user and in the kernel, faults, major faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used([u64; 4]);

impl Family {
    pub(super) fn new(root: u32, mark: &str, thp_size: Option<Bytes>) -> Self {
        Self {
            source: Source::live(),
            roots: vec![root],
            mark: format!("{MARK}={mark}"),
            thp_size,
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
        let all = stats.filter_map(|stat| stat.ticks().zip(stat.all_faults()));
        Used(all.fold([0; 4], |[user, system, faults, major], (ticks, more)| {
            [user + ticks[0], system + ticks[1], faults + more[0], major + more[1]]
        }))
    }

    /// What backs their memory now.
    pub(super) fn look(&self) -> Look {
        Look::of(walk(&self.source, self.pids(), self.thp_size))
    }
}

impl Look {
    /// At the mappings of all of them. Memory that was mapped in one piece counts whole: a pool has to reserve all of it.
    fn of(walk: Walk) -> Self {
        let areas = &walk.areas;
        let segments = objects(areas, Sort::Shared).into_iter();
        let shared = segments.map(|segment| segment.size.0);
        let is_piece = |area: &&Area| area.is_private_data() && area.is_anonymous() && area.size() >= PIECE;
        let untouched = |area: &Area| area.size().0.saturating_sub(area.resident().unwrap_or_default().0);
        let untouched: u64 = areas.iter().filter(is_piece).map(untouched).sum();
        let nothing = || Unread::new(Cause::Absent, "/proc/PID/smaps", "no process of the server was found");
        Self {
            whole: Bytes(Coverage::of(areas).private.total().0 + untouched + shared.sum::<u64>()),
            backing: match walk.why_not {
                Some(why) => Err(why),
                None if walk.own.total().0 == 0 => Err(nothing()),
                None => Ok(walk.own),
            },
            text: walk.text,
            took: walk.took,
        }
    }
}

impl Used {
    /// What was used since, by metric. `None` if that is no time at all, or less than before: then these are not the processes
    /// that worked, or some of them ended where their accounts are lost.
    pub(super) fn since(self, before: Self) -> Option<[(Metric, f64); 5]> {
        if self.0.iter().zip(before.0).any(|(now, before)| *now < before) {
            return None;
        }
        let [user, system, faults, major] = std::array::from_fn(|at| (self.0[at] - before.0[at]) as f64);
        let [user, system] = [user, system].map(|ticks| ticks / rustix::param::clock_ticks_per_second() as f64);
        (user + system > 0.0).then_some([
            (Metric::Cpu, user + system),
            (Metric::User, user),
            (Metric::System, system),
            (Metric::Faults, faults),
            (Metric::MajorFaults, major),
        ])
    }
}

#[cfg(test)]
mod tests {
    use host::{Source, Tree};
    use model::{Bytes, PageKind};

    use super::{Look, Used, walk};

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
7f0060000000-7f0070000000 rw-p 00000000 00:00 0
Size: 262144 kB
KernelPageSize: 4 kB
Rss: 512 kB
VmFlags: rd wr
";

    #[test]
    fn memory_that_processes_share_counts_once_and_that_of_each_counts_for_each() {
        let other = SERVER.replace("8192 kB", "4096 kB");
        let tree = Tree::new().file("/proc/7/smaps", SERVER).file("/proc/8/smaps", &*other);
        let source = Source::from_tree("made", tree);
        let look = Look::of(walk(&source, [7, 8], None));
        let backing = look.backing.expect("there");
        assert_eq!(backing.of(PageKind::HUGETLB_2M), Bytes::mib(8));
        assert_eq!(backing.of(PageKind::Base), Bytes::mib(2));
        // The segment, and of each process its large mapping and what it has touched of the small one.
        assert_eq!(
            look.whole,
            Bytes(Bytes::gib(1).0 + 2 * Bytes::mib(256).0 + Bytes::mib(1).0)
        );
        assert!(
            Look::of(walk(&source, [], None)).backing.is_err(),
            "nothing is not zero"
        );
    }

    #[test]
    fn a_server_that_used_no_time_is_not_the_one_that_worked() {
        let used = |user, faults| Used([user, 0, faults, 0]);
        assert_eq!(used(5, 9).since(used(5, 3)), None);
        assert_eq!(used(4, 9).since(used(5, 3)), None, "what ended is lost");
        let metrics = used(7, 9).since(used(5, 3)).expect("two ticks");
        assert!(metrics[0].1 > 0.0 && metrics[3].1 == 6.0);
    }
}
