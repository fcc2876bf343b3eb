//! One process: its status and what backs it, with no more cost than asked for.

use model::process::{MappingPages, ProcessPages};
use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};

use super::limits::{Limits, is_without_steps};
use super::mapping::Counts;
use super::scan;
use super::smaps;
use super::status::Status;
use crate::Source;

/// What backs one process.
///
/// Absent if there is no such process, or if it is a thread of the kernel or a zombie: those have no memory of their
/// own.
pub fn one(source: &Source, pid: u32) -> Reading<ProcessPages> {
    one_within(source, pid, Limits::default())
}

/// The same within other limits.
pub fn one_within(source: &Source, pid: u32, limits: Limits) -> Reading<ProcessPages> {
    Reading::from(status(source, pid)).map(|status| {
        let counts = limits.counts(source, pid, &status);
        let hugetlb = match status.hugetlb.known() {
            Some(Bytes(0)) => Ok(Hugetlb::none()),
            _ => limits
                .allow_whole(source, pid, &status)
                .and_then(|()| Hugetlb::read(source, pid)),
        };
        row(pid, status, counts, hugetlb)
    })
}

impl Limits {
    /// Resident bytes: of a live process in steps, which cost a tenth of the kernel's own sums, and hold it up for a
    /// step only. They do not show which THP size it was.
    pub(super) fn counts(self, source: &Source, pid: u32, status: &Status) -> Result<Counts, Unread> {
        if !source.is_live() {
            return rollup(source, pid);
        }
        let rss = *status.rss.as_ref().into_result()?;
        let huge = match scan::huge_bytes(pid, self.deadline()) {
            Ok(huge) => huge,
            Err(why) if is_without_steps(&why) => {
                self.allow_whole(source, pid, status)?;
                return rollup(source, pid);
            }
            Err(why) => return Err(why),
        };
        let hugetlb = status.hugetlb.or_if_absent(Bytes(0))?;
        Ok(Counts {
            rss,
            anon_huge: Bytes(huge.saturating_sub(hugetlb.0)),
            ..Counts::default()
        })
    }
}

pub(super) fn status(source: &Source, pid: u32) -> Result<Status, Unread> {
    let path = format!("/proc/{pid}/status");
    let status = Status::parse(&path, &source.bytes(&path).into_result()?);
    if !status.has_memory() {
        let why = "a thread of the kernel or a zombie has no memory of its own";
        return Err(Unread::new(Cause::Absent, path, why));
    }
    Ok(status)
}

/// Every mapping of a process, in the order of addresses.
///
/// One too large to be walked at once is walked in steps; then the kernel's flags are missing. If it has hugetlb pages
/// too, which the steps cannot distinguish, it is left out with the reason.
pub fn mappings(source: &Source, pid: u32) -> Reading<Vec<MappingPages>> {
    mappings_within(source, pid, Limits::default())
}

/// The same within other limits.
pub fn mappings_within(source: &Source, pid: u32, limits: Limits) -> Reading<Vec<MappingPages>> {
    let mut mappings = Vec::new();
    let read = each_mapping(source, pid, limits, |mapping| mappings.push(mapping));
    read.map(|()| mappings).into()
}

/// Visits the same one by one: a process may have hundreds of thousands, and smaps has 750 bytes for each.
///
/// # Errors
/// Why they cannot be read, or not to the end.
pub fn each_mapping(
    source: &Source,
    pid: u32,
    limits: Limits,
    mut visit: impl FnMut(MappingPages),
) -> Result<(), Unread> {
    if source.is_live() {
        let status = status(source, pid)?;
        if let Err(too_dear) = limits.allow_whole(source, pid, &status) {
            return match status.hugetlb.known() {
                Some(Bytes(0)) => match scan::each_mapping(pid, limits.deadline(), visit) {
                    Err(why) if is_without_steps(&why) => Err(too_dear),
                    walked => walked,
                },
                _ => Err(too_dear),
            };
        }
    }
    smaps::each(source, &format!("/proc/{pid}/smaps"), |mapping| {
        visit(mapping.to_pages());
        Ok(())
    })
}

/// The sum of a process's mappings.
pub(super) fn rollup(source: &Source, pid: u32) -> Result<Counts, Unread> {
    let path = format!("/proc/{pid}/smaps_rollup");
    smaps::parse_rollup(&path, &source.bytes(&path).into_result()?)
}

/// hugetlb pages of a process.
#[derive(Clone, Debug)]
pub(super) struct Hugetlb {
    /// By page size.
    pub(super) by_size: Backing,
    /// Those in mappings that other processes can share.
    pub(super) shared: Reading<Bytes>,
}

impl Hugetlb {
    pub(super) fn none() -> Self {
        Self {
            by_size: Backing::new(),
            shared: Reading::Known(Bytes(0)),
        }
    }

    /// From its mappings: no file gives their sums by size, or those of shared mappings.
    pub(super) fn read(source: &Source, pid: u32) -> Result<Self, Unread> {
        let (mut by_size, mut shared) = (Backing::new(), 0u64);
        smaps::each(source, &format!("/proc/{pid}/smaps"), |mapping| {
            if let Some(page) = mapping.hugetlb_page() {
                let bytes = mapping.counts().unwrap_or_default().hugetlb();
                by_size.add(PageKind::Hugetlb(page), bytes);
                if mapping.is_shared() {
                    shared = shared.saturating_add(bytes.0);
                }
            }
            Ok(())
        })?;
        Ok(Self {
            by_size,
            shared: Reading::Known(Bytes(shared)),
        })
    }
}

/// A row of results. `counts` replaces the status's RSS, which kernels before 6.16 keep only roughly per CPU.
pub(super) fn row(
    pid: u32,
    status: Status,
    counts: Result<Counts, Unread>,
    hugetlb: Result<Hugetlb, Unread>,
) -> ProcessPages {
    let shared = hugetlb.clone().map_or_else(Reading::Unread, |hugetlb| hugetlb.shared);
    let shared = sum(&status.rss_shmem, shared);
    let rss = counts.as_ref().map_or(status.rss, |counts| Reading::Known(counts.rss));
    let backing = counts.and_then(|counts| {
        let mut backing = counts.transparent();
        backing.extend(hugetlb?.by_size.iter());
        Ok(backing)
    });
    // A kernel without hugetlb has no HugetlbPages line, and then there is nothing to add.
    let hugetlb = status.hugetlb.or_if_absent(Bytes(0));
    ProcessPages {
        pid,
        name: status.name.known().cloned().unwrap_or_default(),
        uid: status.uid,
        resident: sum(&rss, hugetlb.into()),
        shared,
        rss,
        hugetlb: status.hugetlb,
        page_tables: status.page_tables,
        backing: backing.into(),
        thp_enabled: status.thp_enabled,
    }
}

fn sum(one: &Reading<Bytes>, other: Reading<Bytes>) -> Reading<Bytes> {
    match other {
        Reading::Unread(why) => Reading::Unread(why),
        Reading::Known(other) => one.clone().map(|one| Bytes(one.0.saturating_add(other.0))),
    }
}
