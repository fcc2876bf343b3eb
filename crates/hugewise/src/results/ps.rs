//! What `hugewise ps` answers: processes and what backs them.

use host::processes::{Coverage, Held, Missed, NodePages};
use model::process::{Once, ProcessPages, Remedy, Shared, Unseen};
use model::{Backing, Bytes, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mappings::{MappingRow, MappingRows};
use crate::cli::args::Sort;

/// The processes of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessList {
    /// The processes asked for, in the order asked for; none if sums were asked for.
    pub processes: Vec<ProcessRow>,
    /// Sums over all processes of the machine that fit, listed or not.
    pub totals: Totals,
    /// Which processes were asked for, in words; `null` for all.
    #[serde(default)]
    pub filter: Option<String>,
    /// Sums by group, if those were asked for.
    #[serde(default)]
    pub groups: Option<Groups>,
    /// Pages of hugetlb pools that no process maps; `null` unless asked for.
    #[serde(default)]
    pub held_by_nobody: Option<Reading<Held>>,
    /// Processes that may be among those asked for, and are neither listed nor in the sums.
    #[serde(default)]
    pub unseen: Unseen,
}

/// One process in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessRow {
    /// What it has.
    #[serde(flatten)]
    pub pages: ProcessPages,
    /// Memory that huge pages could back and do not; `null` unless asked for, and for a process with too little memory backed by
    /// base pages.
    #[serde(default)]
    pub missed: Option<Reading<Missed>>,
    /// Where its pages lie; `null` unless asked for.
    #[serde(default)]
    pub nodes: Option<Reading<Vec<NodePages>>>,
}

/// Sums by group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Groups {
    /// `cgroup`, `container`, `unit`, `vm` or `user`.
    pub by: String,
    /// The groups: control groups by path, each with those below it; others by size.
    pub groups: Vec<Group>,
}

/// One group of processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Path, id or name; `null` for the processes that are in none.
    pub name: Option<String>,
    /// Sums over its processes.
    pub totals: Totals,
    /// Memory that huge pages could back and do not, as far as it was asked for and is known.
    pub missed: Bytes,
}

/// Sums over processes. A segment of shared memory counts once, with what the process has that touched most of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Processes that have memory of their own.
    pub processes: u64,
    /// Resident memory with hugetlb, where it is known.
    pub resident: Bytes,
    /// hugetlb pages of all sizes, where they are known.
    pub hugetlb: Bytes,
    /// Page tables, where they are known.
    pub page_tables: Bytes,
    /// Resident bytes by page kind, where they are known.
    pub backing: Backing,
    /// Processes whose page kinds are not known, and so are missing in `backing`.
    pub unread: u64,
    /// Of the sums, at most so much may count several times: it is not known which processes share it, as of small segments, and of
    /// processes whose mappings were not read.
    #[serde(default)]
    pub repeated: Bytes,
    /// Why the first of those are not known.
    #[serde(default)]
    pub first_unread: Option<Unread>,
}

/// One process, and its mappings if they were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneProcess {
    /// The process.
    pub process: ProcessPages,
    /// Its mappings by address; `null` unless asked for.
    #[schemars(with = "Option<Reading<Vec<MappingRow>>>")]
    pub mappings: Option<Reading<MappingRows>>,
    /// What it has resident, each page once: private memory, shared memory and files, which add up.
    #[serde(default)]
    pub coverage: Option<Reading<Coverage>>,
    /// Memory that huge pages could back and do not.
    #[serde(default)]
    pub missed: Option<Reading<Missed>>,
    /// Where its pages lie.
    #[serde(default)]
    pub nodes: Option<Reading<Vec<NodePages>>>,
    /// What the kernel counts about pages that were eligible and not given; empty if that is not a reason here.
    #[serde(default)]
    pub hints: Vec<String>,
}

impl ProcessRow {
    /// A process of which nothing more is known.
    pub fn new(pages: ProcessPages) -> Self {
        Self {
            pages,
            missed: None,
            nodes: None,
        }
    }

    /// Bytes that huge pages could back, as far as they are known.
    pub fn missed_bytes(&self) -> Bytes {
        let missed = self.missed.as_ref().and_then(Reading::known);
        missed.map_or(Bytes(0), |missed| missed.bytes)
    }
}

impl ProcessList {
    /// The first `top` processes in the given order, with the sums of all.
    pub fn new(mut processes: Vec<ProcessRow>, sort: Sort, top: Option<usize>) -> Self {
        let totals = Totals::of(&processes);
        processes.sort_by_key(|process| place(process, sort));
        processes.truncate(top.unwrap_or(usize::MAX));
        Self {
            processes,
            totals,
            ..Self::default()
        }
    }
}

impl ProcessList {
    /// The processes that are missing in its sums of page kinds.
    pub fn unseen(&self) -> Unseen {
        Unseen {
            unread: self.totals.unread + self.unseen.unread,
            first: self.totals.first_unread.clone().or_else(|| self.unseen.first.clone()),
            hidden: self.unseen.hidden.clone(),
            remedy: self.unseen.remedy,
        }
    }
}

impl Totals {
    /// Sums over rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a ProcessRow>) -> Self {
        let mut totals = Self::default();
        let Once { own, segments } = Once::of(rows.into_iter().map(|row| &row.pages));
        let unnamed = own.iter().map(|(pages, _)| unnamed(pages).0);
        // What one process has is there once.
        let (all, most) = unnamed.fold((0_u64, 0), |(all, most), bytes| {
            (all.saturating_add(bytes), bytes.max(most))
        });
        totals.repeated = Bytes(all - most);
        for (pages, own) in own {
            totals.processes += 1;
            add(&mut totals.page_tables, &pages.page_tables, Bytes(0));
            let of_all = pages.segments.iter().map(|segment| segment.resident).sum();
            add(&mut totals.resident, &pages.resident, of_all);
            let of_pools = pages.segments.iter().filter(|segment| segment.page.is_some());
            let of_pools = of_pools.map(|segment| segment.resident).sum();
            add(&mut totals.hugetlb, &pages.hugetlb, of_pools);
            match own {
                Some(own) => totals.backing.extend(own.iter()),
                None => {
                    totals.unread += 1;
                    let why = pages.backing.unread();
                    totals.first_unread = totals.first_unread.take().or(why.cloned());
                }
            }
        }
        segments.into_iter().for_each(|Shared { segment, backing, .. }| {
            totals.backing.extend(backing.iter());
            totals.resident.0 = totals.resident.0.saturating_add(segment.resident.0);
            let of_pool = segment.page.map_or(0, |_| segment.resident.0);
            totals.hugetlb.0 = totals.hugetlb.0.saturating_add(of_pool);
        });
        totals
    }

    /// The processes that are missing in the sums of page kinds.
    pub fn unseen(&self, remedy: Option<Remedy>) -> Unseen {
        Unseen {
            unread: self.unread,
            first: self.first_unread.clone(),
            hidden: None,
            remedy,
        }
    }
}

/// Memory of a process that others may map, too, and of which the segment is not known; of one whose mappings were not read, its
/// hugetlb pages.
fn unnamed(pages: &ProcessPages) -> Bytes {
    let named: Bytes = pages.segments.iter().map(|segment| segment.resident).sum();
    let shared = pages.shared.known().or(pages.hugetlb.known());
    Bytes(shared.map_or(0, |shared| shared.0.saturating_sub(named.0)))
}

/// Adds what a process has, without a part of it.
fn add(sum: &mut Bytes, reading: &Reading<Bytes>, without: Bytes) {
    if let Some(bytes) = reading.known() {
        sum.0 = sum.0.saturating_add(bytes.0.saturating_sub(without.0));
    }
}

/// Where a process stands in the order: a smaller place comes first.
fn place(process: &ProcessRow, sort: Sort) -> (u64, u64, u32) {
    let most_first = |bytes: Option<Bytes>| u64::MAX - bytes.unwrap_or_default().0;
    let large = most_first(process.pages.backing.known().map(Backing::large));
    let total = most_first(process.pages.resident.known().copied());
    let pid = process.pages.pid;
    match sort {
        Sort::Large => (large, total, pid),
        Sort::Missed => (most_first(Some(process.missed_bytes())), total, pid),
        Sort::Total => (total, large, pid),
        Sort::Pid => (0, 0, pid),
    }
}

#[cfg(test)]
mod tests {
    use host::processes::Missed;
    use model::process::SharedMemory;
    use model::{Bytes, PageKind, Reading};

    use super::{ProcessList, ProcessRow, Totals};
    use crate::cli::args::Sort;
    use crate::samples::process_rows;

    #[test]
    fn most_on_large_pages_or_most_memory_comes_first() {
        let mut rows = process_rows();
        rows[0].missed = Some(Reading::Known(Missed {
            bytes: Bytes::mib(2),
            ..Missed::default()
        }));
        let order = |sort, top| -> Vec<u32> {
            ProcessList::new(rows.clone(), sort, top)
                .processes
                .iter()
                .map(|process| process.pages.pid)
                .collect()
        };
        assert_eq!(order(Sort::Large, None), [30, 20, 10]);
        assert_eq!(order(Sort::Missed, None), [10, 20, 30]);
        assert_eq!(order(Sort::Total, None), [20, 30, 10]);
        assert_eq!(order(Sort::Pid, Some(2)), [10, 20]);
    }

    #[test]
    fn a_segment_that_processes_share_counts_once() {
        let mut rows = process_rows();
        rows.iter_mut().for_each(|row| row.pages.segments.clear());
        let before = ProcessList::new(rows.clone(), Sort::Pid, None).totals;
        let two = PageKind::Hugetlb(Bytes::mib(2));
        for (row, mib) in rows.iter_mut().zip([100, 300, 200]) {
            let resident = Bytes::mib(mib);
            let add = |bytes: &mut Reading<Bytes>| *bytes = bytes.clone().map(|bytes| Bytes(bytes.0 + resident.0));
            add(&mut row.pages.resident);
            add(&mut row.pages.hugetlb);
            row.pages.backing = row.pages.backing.clone().map(|mut backing| {
                backing.add(two, resident);
                backing
            });
            row.pages.segments = vec![SharedMemory {
                id: "00:0f:12".to_owned(),
                page: Some(Bytes::mib(2)),
                size: Bytes::gib(1),
                resident,
            }];
        }
        let totals = ProcessList::new(rows, Sort::Pid, None).totals;
        assert_eq!(totals.hugetlb.0, before.hugetlb.0 + Bytes::mib(300).0);
        assert_eq!(totals.resident.0, before.resident.0 + Bytes::mib(300).0);
        assert_eq!(totals.backing.of(two).0, before.backing.of(two).0 + Bytes::mib(300).0);
    }

    #[test]
    fn sums_are_over_all_and_what_is_not_known_is_missing_in_them() {
        let mut rows = process_rows();
        rows[0].pages.backing = Reading::absent("/proc/10/smaps_rollup");
        let totals = ProcessList::new(rows.clone(), Sort::Pid, Some(1)).totals;
        assert_eq!((totals.processes, totals.unread), (3, 1));
        let known = |row: &ProcessRow| row.pages.backing.known().map_or(0, |backing| backing.total().0);
        assert_eq!(totals.backing.total().0, rows.iter().map(known).sum::<u64>());
        let resident = |row: &ProcessRow| row.pages.resident.known().map_or(0, |bytes| bytes.0);
        assert_eq!(totals.resident.0, rows.iter().map(resident).sum::<u64>());
    }

    #[test]
    fn memory_of_which_it_is_not_known_who_shares_it_is_said_to_count_several_times() {
        let row = |shared: Reading<Bytes>| {
            let mut row = process_rows().remove(0);
            row.pages.segments.clear();
            row.pages.hugetlb = Reading::Known(Bytes::mib(18));
            row.pages.shared = shared;
            row
        };
        let known = |mib| row(Reading::Known(Bytes::mib(mib)));
        let unread = row(Reading::absent("smaps"));
        let repeated = |rows: &[ProcessRow]| Totals::of(rows).repeated;
        assert_eq!(repeated(&[known(12)]), Bytes(0), "of one process it is there once");
        assert_eq!(repeated(&[known(12), known(10), unread]), Bytes::mib(22));
        let mut named = known(12);
        named.pages.segments = vec![SharedMemory {
            id: "00:01:7".to_owned(),
            page: None,
            size: Bytes::mib(12),
            resident: Bytes::mib(12),
        }];
        assert_eq!(repeated(&[named.clone(), named, known(10)]), Bytes(0));
    }
}
