//! All that a diagnosis rests on, taken from a machine in one pass.

use model::{Cause, Reading, Unread};

use crate::config::{Config, Given, is_mounted};
use crate::facts::TICKS;
use crate::{self as programs, Program};
use host::groups::{self, GroupLevel};
use host::processes::{self, Stat};
use host::{Snapshot, Source, Tree};

/// What the rules examine: a machine, files that are to hold on it, or files alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The kernel's settings and accounts.
    pub snapshot: Snapshot,
    /// Every process with memory of its own; absent in a capture without processes.
    pub programs: Reading<Vec<Program>>,
    /// Why there may be others, which this user does not see.
    pub hidden: Option<Unread>,
    /// The control groups of all pods together, whatever runs in them; none where no kubelet makes them.
    pub pods: Vec<GroupLevel>,
    /// Those of single pods that were refused hugetlb pages, by cgroup v1, where their programs have ended too.
    pub refused_pods: Vec<GroupLevel>,
    /// CPU time that khugepaged has used since boot, in seconds; absent where it does not run.
    pub khugepaged: Reading<f64>,
    /// What was asked for in files and at boot.
    pub config: Config,
    /// Seconds since boot.
    pub uptime: Reading<f64>,
    /// Settings that hugewise applied and keeps a journal of; unknown until the caller fills it in.
    pub applied: Reading<Vec<Applied>>,
    /// Configuration files that were given by name; none until the caller fills them in.
    pub files: Given,
    /// False if there are only files: then all of the above is absent.
    pub has_machine: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    pub path: String,
    /// The value that was written and read back.
    pub value: String,
    /// When, in seconds since boot.
    pub at: f64,
}

impl Evidence {
    /// Looks at everything once: within half a second on a machine with 500 processes, with no process held for longer
    /// than some 60 ms (4 GiB of base pages).
    pub fn gather(source: &Source) -> Self {
        let snapshot = Snapshot::take(source);
        let programs = programs::programs(source, &snapshot);
        Self::of(source, snapshot, programs)
    }

    /// The same of a machine of which a snapshot was taken already, with these programs.
    pub fn of(source: &Source, snapshot: Snapshot, programs: Reading<Vec<Program>>) -> Self {
        let pools = snapshot.pools.known().into_iter().flatten();
        let sizes: Vec<_> = pools.map(|pool| pool.size).collect();
        Self {
            programs,
            hidden: processes::hidden(source),
            pods: groups::pods(source, &snapshot.cgroup, &sizes),
            refused_pods: groups::refused_pods(source, &snapshot.cgroup, &sizes),
            khugepaged: khugepaged(source),
            config: Config::read(source, &snapshot),
            uptime: uptime(source),
            applied: Reading::absent("a journal of settings that hugewise applied"),
            files: Given::default(),
            has_machine: true,
            snapshot,
        }
    }

    /// The same with configuration files that are to hold on the machine.
    #[must_use]
    pub fn with_files(self, files: Given) -> Self {
        Self {
            files: files.on(&self.snapshot),
            ..self
        }
    }

    /// Of configuration files with no machine around them.
    pub fn of_files(files: Given) -> Self {
        Self {
            files,
            has_machine: false,
            ..Self::gather(&Source::from_tree("files", Tree::new()))
        }
    }

    /// Leaves out pages that a run of hugewise holds as a lease of a setting: they go when it ends, and say nothing about how the
    /// machine is set up. `path` is the setting's file.
    pub fn leave_out(&mut self, path: &str, pages: u64) {
        let Reading::Known(pools) = &mut self.snapshot.pools else {
            return;
        };
        pools.iter_mut().for_each(|pool| pool.leave_out(path, pages));
    }
}

fn khugepaged(source: &Source) -> Reading<f64> {
    let name = "khugepaged";
    let pids = source.pids();
    let pids = pids.known().map_or(&[][..], Vec::as_slice);
    let is_it = |pid: &&u32| {
        source
            .line(&format!("/proc/{pid}/comm"))
            .known()
            .is_some_and(|comm| comm == name)
    };
    let Some(pid) = pids.iter().find(is_it) else {
        return Reading::absent(name);
    };
    let path = format!("/proc/{pid}/stat");
    Stat::of(source, *pid).and_then(|stat| {
        let garbled = || Unread::new(Cause::Garbled, &path, "no user and system time");
        let [user, system] = stat.and_then(|stat| stat.ticks()).ok_or_else(garbled)?;
        Ok(user.saturating_add(system) as f64 / TICKS)
    })
}

pub(crate) fn uptime(source: &Source) -> Reading<f64> {
    let path = "/proc/uptime";
    if is_mounted(source, path, |_| true) {
        let why = "it shows a container's own time (lxcfs)";
        return Reading::Unread(Unread::new(Cause::Masked, path, why));
    }
    source.line(path).and_then(|line| {
        let seen = line.split(' ').next().unwrap_or_default();
        host::parse::value(path, 0, "uptime", "seconds", seen)
    })
}

#[cfg(test)]
mod tests {
    use super::Evidence;
    use host::{Source, Tree};

    const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

    fn pools(nr: u64, free: u64, surplus: u64, overcommit: u64) -> Evidence {
        let line = |tree: Tree, name: &str, value: u64| tree.line(&format!("{POOL}/{name}"), value);
        let tree = line(Tree::new(), "nr_hugepages", nr);
        let tree = line(line(tree, "free_hugepages", free), "resv_hugepages", 0);
        let tree = line(
            line(tree, "surplus_hugepages", surplus),
            "nr_overcommit_hugepages",
            overcommit,
        );
        Evidence::gather(&Source::from_tree("test", tree))
    }

    fn counts(evidence: &Evidence) -> [u64; 4] {
        let pool = &evidence.snapshot.pools.known().expect("pools")[0];
        [&pool.nr, &pool.free, &pool.surplus, &pool.overcommit].map(|count| *count.known().expect("a count"))
    }

    #[test]
    fn a_containers_own_time_is_not_the_machines() {
        let tree = Tree::new().line("/proc/uptime", "7200.00 7200.00");
        let read = |tree| super::uptime(&Source::from_tree("test", tree));
        assert_eq!(read(tree.clone()).known(), Some(&7200.0));
        let mounts = "lxcfs /proc/uptime fuse.lxcfs rw 0 0\n";
        let own = read(tree.file("/proc/self/mounts", mounts));
        assert_eq!(own.unread().map(|why| why.unread), Some(model::Cause::Masked));
    }

    #[test]
    fn borrowed_pages_are_left_out_of_the_pool() {
        let mut with_surplus = pools(110, 105, 10, 64);
        with_surplus.leave_out(&format!("{POOL}/nr_overcommit_hugepages"), 64);
        assert_eq!(counts(&with_surplus), [100, 100, 0, 0]);
        let mut grown = pools(10, 8, 0, 0);
        grown.leave_out(&format!("{POOL}/nr_hugepages"), 8);
        assert_eq!(counts(&grown), [2, 2, 0, 0]);
        let mut other = pools(10, 8, 0, 0);
        other.leave_out("/sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages", 8);
        assert_eq!(counts(&other), [10, 8, 0, 0]);
    }
}
