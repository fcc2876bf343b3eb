//! All processes in one cheap pass: `status` for each, more only where huge pages are possible and cheap to read.

use model::process::ProcessPages;
use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};

use super::limits::Limits;
use super::machine::{Mapped, only_pool_in_use, pmd_size};
use super::mapping::Counts;
use super::one::{Hugetlb, row};
use super::status::Status;
use crate::{Source, spread};

/// How much a listing may cost the processes that it looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// A process with less resident memory of every sort that has PMD-mapped pages on this machine counts as base
    /// without a look into its page tables. `None` is half a PMD page: a PMD-mapped page needs a whole one, and RSS
    /// may be behind by a few pages per CPU.
    pub rollup_from: Option<Bytes>,
    /// What a look at one process may cost.
    pub limits: Limits,
}

/// All processes that have memory of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processes {
    /// One row each, by process id.
    pub rows: Vec<ProcessPages>,
    /// Sums over the rows.
    pub totals: Totals,
}

/// Sums over rows. Memory that several processes share counts once for each of them, as in their RSS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Rows in all.
    pub processes: usize,
    /// Resident memory with hugetlb, of the rows where it is known.
    pub resident: Bytes,
    /// hugetlb pages of all sizes, of the rows where they are known.
    pub hugetlb: Bytes,
    /// Page tables, of the rows where they are known.
    pub page_tables: Bytes,
    /// By page kind, of the rows where it is known.
    pub backing: Backing,
    /// Rows whose page kinds are not known, and so are missing in `backing`.
    pub unread: usize,
}

impl Totals {
    /// Sums over `rows`; filter them first to get the sums of a user or a program.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a ProcessPages>) -> Self {
        let mut totals = Self::default();
        for row in rows {
            totals.processes += 1;
            add(&mut totals.resident, &row.resident);
            add(&mut totals.hugetlb, &row.hugetlb);
            add(&mut totals.page_tables, &row.page_tables);
            match row.backing.known() {
                Some(backing) => totals.backing.extend(backing.iter()),
                None => totals.unread += 1,
            }
        }
        totals
    }
}

fn add(sum: &mut Bytes, reading: &Reading<Bytes>) {
    sum.0 = sum.0.saturating_add(reading.known().copied().unwrap_or_default().0);
}

/// Lists the processes of a machine. One that ends during the pass is left out; one that may not be read keeps what
/// its status gave.
///
/// mTHP counts as base here: to distinguish it takes root and a read of every physical page.
pub fn list(source: &Source, options: &ListOptions) -> Reading<Processes> {
    source.list("/proc").map(|names| {
        let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        pids.sort_unstable();
        let survey = Survey::new(source, options);
        let found = spread::over(source, &pids, |&pid| survey.process(pid));
        let rows: Vec<ProcessPages> = found.into_iter().flatten().collect();
        let totals = Totals::of(&rows);
        Processes { rows, totals }
    })
}

/// What one pass knows of the machine.
struct Survey<'a> {
    source: &'a Source,
    rollup_from: Bytes,
    limits: Limits,
    mapped: Mapped,
    only_pool: Option<Bytes>,
}

impl<'a> Survey<'a> {
    fn new(source: &'a Source, options: &ListOptions) -> Self {
        Self {
            source,
            rollup_from: options.rollup_from.unwrap_or_else(|| Bytes(pmd_size(source).0 / 2)),
            limits: options.limits,
            mapped: Mapped::read(source),
            only_pool: only_pool_in_use(source),
        }
    }

    /// A row, unless the process has ended or has no memory of its own.
    fn process(&self, pid: u32) -> Option<ProcessPages> {
        let path = format!("/proc/{pid}/status");
        let status = match self.source.bytes(&path) {
            Reading::Known(bytes) => Status::parse(&path, &bytes),
            Reading::Unread(why) if why.unread == Cause::Denied => Status::unread(|_| why.clone()),
            Reading::Unread(_) => return None,
        };
        if !status.has_memory() {
            return None;
        }
        let counts = self.counts(pid, &status);
        if counts.is_err() && self.has_ended(&path) {
            return None;
        }
        let hugetlb = self.hugetlb(pid, &status);
        Some(row(pid, status, counts, hugetlb))
    }

    fn has_ended(&self, path: &str) -> bool {
        let again = self.source.bytes(path);
        again.unread().is_some_and(|why| why.unread != Cause::Denied)
    }

    fn counts(&self, pid: u32, status: &Status) -> Result<Counts, Unread> {
        let rss = *status.rss.as_ref().into_result()?;
        if self.mapped.most(status, rss) < self.rollup_from {
            return Ok(Counts {
                rss,
                ..Counts::default()
            });
        }
        self.limits.counts(self.source, pid, status)
    }

    /// From its mappings; if those cannot be read and one pool alone is in use, from its status.
    fn hugetlb(&self, pid: u32, status: &Status) -> Result<Hugetlb, Unread> {
        let bytes = status.hugetlb.or_if_absent(Bytes(0))?;
        if bytes.0 == 0 {
            return Ok(Hugetlb::none());
        }
        let walked = self.limits.allow_whole(self.source, pid, status);
        match (walked.and_then(|()| Hugetlb::read(self.source, pid)), self.only_pool) {
            (Err(why), Some(size)) => Ok(Hugetlb {
                by_size: [(PageKind::Hugetlb(size), bytes)].into_iter().collect(),
                shared: Reading::Unread(why),
            }),
            (walked, _) => walked,
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
