//! What /proc says of threads and CPUs: names, memory, and time that the hypervisor withheld.

use std::collections::BTreeMap;

use host::Source;
use host::processes::{Limits, Stat, ThpByStart, nodes};
use model::{Cause, Reading, Unread};

const STAT: &str = "/proc/stat";
/// The place of `steal` among the numbers of a CPU's line (proc_stat(5)).
const STEAL: usize = 7;

/// The name of a thread; empty once it has ended.
pub(crate) fn name(source: &Source, pid: u32, tid: u32) -> String {
    Stat::of_thread(source, pid, tid).map_or_else(String::new, |stat| stat.name().to_owned())
}

/// Bytes of a process's memory by node; none if that could not be read.
pub(crate) fn memory(source: &Source, pid: u32) -> Option<BTreeMap<u32, u64>> {
    let read = nodes(source, pid, &ThpByStart::default(), Limits::default()).into_result();
    Some(read.ok()?.iter().map(|node| (node.node, node.total().0)).collect())
}

/// Ticks that the hypervisor withheld from each CPU since boot.
pub(crate) fn steal(source: &Source) -> Reading<BTreeMap<u32, u64>> {
    source.text(STAT).map(|text| {
        let of = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split(' ');
            Some((words.next()?.parse().ok()?, words.nth(STEAL)?.parse().ok()?))
        };
        text.lines().filter_map(of).collect()
    })
}

/// Seconds withheld from a CPU between two readings.
pub(crate) fn stolen(
    before: &Reading<BTreeMap<u32, u64>>,
    after: &Reading<BTreeMap<u32, u64>>,
    cpu: u32,
) -> Reading<f64> {
    let of = |reading: &Reading<BTreeMap<u32, u64>>| {
        let ticks = reading.as_ref().into_result()?;
        let none = || Unread::new(Cause::Absent, STAT, format!("no line of cpu{cpu}"));
        ticks.get(&cpu).copied().ok_or_else(none)
    };
    let ticks = of(after).and_then(|after| Ok(after.saturating_sub(of(before)?)));
    Reading::from(ticks).map(|ticks| ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use host::processes::Stat;
    use host::threads::times;
    use host::{Source, Tree};
    use model::Reading;

    use process::migrations;

    use super::{name, steal, stolen};

    #[test]
    fn a_thread_and_the_steal_of_each_cpu_are_read() {
        let numbers = "1 1 1 0 -1 4194560 0 0 0 0 1 2 0 0 20 0 1 0 98 4096 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 0 0";
        let machine = Tree::default()
            .line("/proc/5/task/6/stat", format!("6 (a) b) R {numbers}"))
            .line("/proc/5/task/6/schedstat", "1200 34 5")
            .file("/proc/5/task/6/sched", "a (6)\n----\nse.nr_migrations   :     17\n")
            .file(
                "/proc/stat",
                "cpu  1 1 1 1 1 1 1 90 0 0\ncpu0 1 1 1 1 1 1 1 40 0 0\ncpu1 1 1 1 1 1 1 1 50 0 0\n",
            );
        let source = Source::from_tree("made", machine);
        let seen = Stat::of_thread(&source, 5, 6).expect("a thread");
        assert_eq!((seen.state(), seen.processor()), (Some('R'), Some(3)));
        assert_eq!(name(&source, 5, 6), "a) b");
        assert_eq!(
            (times(&source, 5, 6), migrations(&source, "/proc/5/task/6")),
            (Some([1200, 34]), Some(17))
        );
        assert_eq!((name(&source, 5, 7), times(&source, 5, 7)), (String::new(), None));
        let before = Reading::Known([(0, 30), (1, 50)].into());
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(stolen(&before, &steal(&source), 0), Reading::Known(10.0 / ticks));
        assert!(stolen(&before, &steal(&source), 9).unread().is_some());
    }
}
