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
    read_one(source, pid, limits).into()
}

fn read_one(source: &Source, pid: u32, limits: Limits) -> Result<ProcessPages, Unread> {
    let status = status(source, pid)?;
    let counts = limits.counts(source, pid, &status);
    let backing = counts.clone().and_then(|counts| {
        let hugetlb = match status.hugetlb.known() {
            Some(Bytes(0)) => Backing::new(),
            _ => {
                limits.allow_whole(source, pid, &status)?;
                hugetlb_by_size(source, pid)?
            }
        };
        Ok(joined(counts.transparent(), &hugetlb))
    });
    Ok(row(pid, status, counts.ok(), backing.into()))
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

/// hugetlb pages of a process by size, from its mappings: no file gives their sums by size.
pub(super) fn hugetlb_by_size(source: &Source, pid: u32) -> Result<Backing, Unread> {
    let mut sums = Backing::new();
    smaps::each(source, &format!("/proc/{pid}/smaps"), |mapping| {
        if let Some(page) = mapping.hugetlb_page() {
            sums.add(PageKind::Hugetlb(page), mapping.counts().unwrap_or_default().hugetlb());
        }
        Ok(())
    })?;
    Ok(sums)
}

/// Two accounts of different bytes as one.
pub(super) fn joined(mut backing: Backing, more: &Backing) -> Backing {
    backing.extend(more.iter());
    backing
}

/// A row of results. `counts` replaces the status's RSS, which kernels before 6.16 keep only roughly per CPU.
pub(super) fn row(pid: u32, status: Status, counts: Option<Counts>, backing: Reading<Backing>) -> ProcessPages {
    let rss = counts.map_or(status.rss, |counts| Reading::Known(counts.rss));
    ProcessPages {
        pid,
        name: status.name.known().cloned().unwrap_or_default(),
        uid: status.uid,
        resident: resident(&rss, &status.hugetlb),
        rss,
        hugetlb: status.hugetlb,
        page_tables: status.page_tables,
        backing,
        thp_enabled: status.thp_enabled,
    }
}

/// RSS and hugetlb together. A kernel without hugetlb has no HugetlbPages line, and then there is nothing to add.
fn resident(rss: &Reading<Bytes>, hugetlb: &Reading<Bytes>) -> Reading<Bytes> {
    match hugetlb.or_if_absent(Bytes(0)) {
        Err(why) => Reading::Unread(why),
        Ok(hugetlb) => rss.clone().map(|rss| Bytes(rss.0.saturating_add(hugetlb.0))),
    }
}
