//! One process: its status and what backs it, with no more cost than asked for.

use model::process::{ProcessPages, SharedMemory};
use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};

use super::limits::{Limits, is_without_steps};
use super::mapping::Counts;
use super::once::Objects;
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

pub fn one_within(source: &Source, pid: u32, limits: Limits) -> Reading<ProcessPages> {
    Reading::from(Status::read(source, pid)).map(|status| {
        let counts = limits.counts(source, pid, &status);
        let hugetlb = match status.hugetlb.known() {
            Some(Bytes(0)) => Ok(Hugetlb::none()),
            _ => limits
                .allow_whole(source, pid, &status)
                .and_then(|()| Hugetlb::read(source, pid)),
        };
        let shmem = shmem(source, pid, &status);
        row(pid, status, counts, hugetlb, shmem)
    })
}

/// Shows the sum of a process's mappings.
const ROLLUP: &str = "smaps_rollup";

/// What backs a process, and the file that shows it.
pub(super) type Shown = (Counts, &'static str);

impl Limits {
    /// Resident bytes: of a live process in steps, which cost a tenth of the kernel's own sums, and hold it up for a
    /// step only. They do not show which THP size it was.
    pub(super) fn counts(self, source: &Source, pid: u32, status: &Status) -> Result<Shown, Unread> {
        if !source.is_live() {
            return sum_of(source, pid, status);
        }
        let rss = *status.rss.as_ref().into_result()?;
        let huge = match scan::huge_bytes(pid, self) {
            Ok(huge) => huge,
            Err(why) if is_without_steps(&why) => {
                self.allow_whole(source, pid, status)?;
                return sum_of(source, pid, status);
            }
            Err(why) => return Err(why),
        };
        let hugetlb = status.hugetlb.or_if_absent(Bytes(0))?;
        let counts = Counts {
            rss,
            anon_huge: Bytes(huge.saturating_sub(hugetlb.0)),
            ..Counts::default()
        };
        Ok((counts, ROLLUP))
    }
}

/// The sum of a process's mappings, which kernels before 4.14 do not make.
fn sum_of(source: &Source, pid: u32, status: &Status) -> Result<Shown, Unread> {
    let path = format!("/proc/{pid}/{ROLLUP}");
    match source.bytes(&path) {
        Reading::Known(bytes) => Ok((smaps::parse_rollup(&path, &bytes)?, ROLLUP)),
        Reading::Unread(why) => {
            let counts = if why.unread == Cause::Absent {
                of_all(source, pid, status)
            } else {
                None
            };
            counts.map(|counts| (counts, "smaps")).ok_or(why)
        }
    }
}

/// The same from all mappings. A capture may have some of them: those are less than the status has, which
/// is off by a few pages per CPU only.
fn of_all(source: &Source, pid: u32, status: &Status) -> Option<Counts> {
    let mut sum = Counts::default();
    smaps::each(source, &format!("/proc/{pid}/smaps"), |mapping| {
        sum.add(&mapping.counts().unwrap_or_default());
        Ok(())
    })
    .ok()?;
    (sum.rss.0 > 0 && sum.rss.0 >= status.rss.known()?.0 / 10 * 9).then_some(sum)
}

/// hugetlb pages of a process.
#[derive(Clone, Debug)]
pub(super) struct Hugetlb {
    pub(super) by_size: Backing,
    /// Those in mappings that other processes can share, each segment once.
    pub(super) segments: Reading<Vec<SharedMemory>>,
}

impl Hugetlb {
    pub(super) fn none() -> Self {
        Self {
            by_size: Backing::new(),
            segments: Reading::Known(Vec::new()),
        }
    }

    /// From its mappings: no file gives their sums by size, or those of shared mappings. `HugetlbPages` of the status counts a page
    /// for each mapping of it, three times for a heap of ZGC.
    pub(super) fn read(source: &Source, pid: u32) -> Result<Self, Unread> {
        let (mut by_size, mut shared) = (Backing::new(), Objects::default());
        smaps::each(source, &format!("/proc/{pid}/smaps"), |mapping| {
            if let Some(page) = mapping.hugetlb_page() {
                match mapping.is_shared() {
                    true => shared.add(mapping),
                    false => by_size.add(PageKind::Hugetlb(page), mapping.counts().unwrap_or_default().hugetlb),
                }
            }
            Ok(())
        })?;
        let segments = shared.each();
        let pages = segments
            .iter()
            .filter_map(|segment| Some((PageKind::Hugetlb(segment.page?), segment.resident)));
        by_size.extend(pages);
        Ok(Self {
            by_size,
            segments: Reading::Known(segments),
        })
    }
}

/// Less shared memory than this is not worth a look at the mappings.
const WORTH: Bytes = Bytes::mib(16);

/// Its shared memory outside hugetlb, named by the largest segment of it: the status has its sum alone.
pub(super) fn shmem(source: &Source, pid: u32, status: &Status) -> Option<SharedMemory> {
    let resident = *status.rss_shmem.known().filter(|bytes| **bytes >= WORTH)?;
    let mut largest: Option<(Bytes, String)> = None;
    let named = smaps::each_named(source, pid, &mut |mapping| {
        let size = mapping.size();
        let is_larger = largest.as_ref().is_none_or(|(most, _)| size > *most);
        if mapping.is_shared() && mapping.is_shmem() && is_larger {
            let device = String::from_utf8_lossy(mapping.device);
            largest = Some((size, format!("{device}:{}", mapping.inode)));
        }
        Ok(())
    });
    named.ok()?;
    let (size, id) = largest?;
    Some(SharedMemory {
        id,
        page: None,
        size: size.max(resident),
        resident,
    })
}

/// A row of results. `counts` replaces the status's RSS, which kernels before 6.16 keep only roughly per CPU.
pub(super) fn row(
    pid: u32,
    status: Status,
    counts: Result<Shown, Unread>,
    hugetlb: Result<Hugetlb, Unread>,
    shmem: Option<SharedMemory>,
) -> ProcessPages {
    let shown_in = counts.as_ref().map_or("status", |(_, file)| file);
    let counts = counts.map(|(counts, _)| counts);
    let segments = hugetlb.clone().map_or_else(Reading::Unread, |hugetlb| hugetlb.segments);
    let bytes = |segments: &[SharedMemory]| segments.iter().map(|segment| segment.resident).sum();
    let shared = sum(&status.rss_shmem, segments.as_ref().map(|segments| bytes(segments)));
    let mut segments = segments.into_result().unwrap_or_default();
    segments.extend(shmem);
    let rss = counts.as_ref().map_or(status.rss, |counts| Reading::Known(counts.rss));
    // A kernel without hugetlb has no HugetlbPages line, and then there is nothing to add.
    let walked = hugetlb;
    let pages = match &walked {
        // A capture may have the status and not all mappings.
        Ok(hugetlb) if hugetlb.by_size.total().0 > 0 => Reading::Known(hugetlb.by_size.total()),
        Err(why) if status.hugetlb.is_absent() => Reading::Unread(why.clone()),
        _ => status.hugetlb.clone(),
    };
    let hugetlb = pages.or_if_absent(Bytes(0));
    let backing = counts.and_then(|counts| {
        let mut backing = counts.transparent();
        backing.extend(walked?.by_size.iter());
        Ok(backing)
    });
    ProcessPages {
        pid,
        name: status.name.known().cloned().unwrap_or_default(),
        uid: status.uid,
        resident: sum(&rss, hugetlb.into()),
        shared,
        rss,
        hugetlb: pages,
        page_tables: status.page_tables,
        backing: backing.into(),
        thp_enabled: status.thp_enabled,
        segments,
        shown_in,
    }
}

fn sum(one: &Reading<Bytes>, other: Reading<Bytes>) -> Reading<Bytes> {
    match other {
        Reading::Unread(why) => Reading::Unread(why),
        Reading::Known(other) => one.clone().map(|one| Bytes(one.0.saturating_add(other.0))),
    }
}
