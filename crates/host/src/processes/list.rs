//! All processes in one cheap pass: `status` for each, more only where huge pages are possible and cheap to read.

use model::process::ProcessPages;
use model::{Bytes, Cause, PageKind, Reading, Unread};

use super::limits::Limits;
use super::machine::{Mapped, only_pool_in_use, pmd_size};
use super::mapping::Counts;
use super::one::{Hugetlb, Shown, row, shmem};
use super::status::Status;
use crate::{Source, spread};

/// Lists the processes of a machine that have memory of their own, by process id. One that ends during the pass is left out; one
/// that may not be read keeps what its status gave. Absent if there is none at all, as in a capture without processes.
///
/// mTHP counts as base here: to distinguish it takes root and a read of every physical page.
pub fn list(source: &Source) -> Reading<Vec<ProcessPages>> {
    // A PMD-mapped page needs a whole one, and RSS may be behind by a few pages per CPU.
    list_within(source, Limits::default(), Bytes(pmd_size(source).0 / 2))
}

/// The same within other limits. A process with less resident memory than `rollup_from` of every sort that has PMD-mapped pages on
/// this machine counts as base without a look into its page tables.
pub(super) fn list_within(source: &Source, limits: Limits, rollup_from: Bytes) -> Reading<Vec<ProcessPages>> {
    source.pids().and_then(|pids| {
        let survey = Survey {
            source,
            rollup_from,
            limits,
            mapped: Mapped::read(source),
            only_pool: only_pool_in_use(source),
        };
        let found = spread::over(source, &pids, |&pid| survey.process(pid));
        let found: Vec<ProcessPages> = found.into_iter().flatten().collect();
        if found.is_empty() { Err(none(source)) } else { Ok(found) }
    })
}

/// That there is no process at all: a running machine has one, so they were not read.
fn none(source: &Source) -> Unread {
    let place = if source.is_live() { "/proc" } else { "this capture" };
    Unread::new(
        Cause::Absent,
        "/proc/PID/status",
        format!("no process with memory of its own is in {place}"),
    )
}

/// What one pass knows of the machine.
struct Survey<'a> {
    source: &'a Source,
    rollup_from: Bytes,
    limits: Limits,
    mapped: Mapped,
    only_pool: Option<Bytes>,
}

impl Survey<'_> {
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
        let shmem = shmem(self.source, pid, &status);
        Some(row(pid, status, counts, hugetlb, shmem))
    }

    fn has_ended(&self, path: &str) -> bool {
        let again = self.source.bytes(path);
        again.unread().is_some_and(|why| why.unread != Cause::Denied)
    }

    /// What backs it, and the file that shows that.
    fn counts(&self, pid: u32, status: &Status) -> Result<Shown, Unread> {
        let rss = *status.rss.as_ref().into_result()?;
        if self.mapped.most(status, rss) < self.rollup_from {
            let base = Counts {
                rss,
                ..Counts::default()
            };
            return Ok((base, "status"));
        }
        self.limits.counts(self.source, pid, status)
    }

    /// From its mappings; if those cannot be read and one pool alone is in use, from its status.
    fn hugetlb(&self, pid: u32, status: &Status) -> Result<Hugetlb, Unread> {
        let bytes = status.hugetlb.or_if_absent(Bytes(0))?;
        // Kernels before 4.4 have no such line: then the mappings alone show them, wherever a pool is in use.
        let is_open = status.hugetlb.is_absent() && self.only_pool.is_some();
        if bytes.0 == 0 && !is_open {
            return Ok(Hugetlb::none());
        }
        let walked = self.limits.allow_whole(self.source, pid, status);
        match (walked.and_then(|()| Hugetlb::read(self.source, pid)), self.only_pool) {
            (Err(why), Some(size)) if !is_open => Ok(Hugetlb {
                by_size: [(PageKind::Hugetlb(size), bytes)].into_iter().collect(),
                segments: Reading::Unread(why),
            }),
            (walked, _) => walked,
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
