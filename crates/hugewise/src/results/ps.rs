//! What `hugewise ps` answers: processes and what backs them.

use host::processes;
use model::process::{MappingPages, ProcessPages};
use model::{Backing, Bytes, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cli::typed::Sort;

/// The processes of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessList {
    /// The processes asked for, in the order asked for.
    pub processes: Vec<ProcessPages>,
    /// Sums over all processes of the machine, listed or not.
    pub totals: Totals,
}

/// Sums over processes. Memory that several processes share counts once for each of them, as in their RSS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
}

/// One process, and its mappings if they were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneProcess {
    /// The process.
    pub process: ProcessPages,
    /// Its mappings by address; `null` unless asked for.
    pub mappings: Option<Reading<Vec<MappingPages>>>,
}

impl ProcessList {
    /// The first `top` processes in the given order, with the sums of all.
    pub fn new(listed: processes::Processes, sort: Sort, top: Option<usize>) -> Self {
        let totals = Totals::from(listed.totals);
        let mut processes = listed.rows;
        processes.sort_by_key(|process| place(process, sort));
        processes.truncate(top.unwrap_or(usize::MAX));
        Self { processes, totals }
    }
}

/// Where a process stands in the order: a smaller place comes first.
fn place(process: &ProcessPages, sort: Sort) -> (u64, u64, u32) {
    let most_first = |bytes: Option<Bytes>| u64::MAX - bytes.unwrap_or_default().0;
    let large = most_first(process.backing.known().map(Backing::large));
    let total = most_first(process.resident.known().copied());
    match sort {
        Sort::Large => (large, total, process.pid),
        Sort::Total => (total, large, process.pid),
        Sort::Pid => (0, 0, process.pid),
    }
}

impl From<processes::Totals> for Totals {
    fn from(totals: processes::Totals) -> Self {
        Self {
            processes: totals.processes as u64,
            resident: totals.resident,
            hugetlb: totals.hugetlb,
            page_tables: totals.page_tables,
            backing: totals.backing,
            unread: totals.unread as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessList;
    use crate::cli::typed::Sort;
    use crate::samples::processes;

    #[test]
    fn most_on_large_pages_or_most_memory_comes_first() {
        let order = |sort, top| -> Vec<u32> {
            ProcessList::new(processes(), sort, top)
                .processes
                .iter()
                .map(|process| process.pid)
                .collect()
        };
        assert_eq!(order(Sort::Large, None), [30, 20, 10]);
        assert_eq!(order(Sort::Total, None), [20, 30, 10]);
        assert_eq!(order(Sort::Pid, Some(2)), [10, 20]);
        assert_eq!(ProcessList::new(processes(), Sort::Pid, Some(1)).totals.processes, 3);
    }
}
