//! Walks by PAGEMAP_SCAN: a range of one's own, or another process in short steps.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use model::{Bytes, Cause, Unread};

use super::limits::Limits;
use super::mapping::{Counted, Counts, Mapping};
use super::smaps;
use crate::Source;
use crate::syscall::{PageRegion, Wanted, scan_pages};

/// The most that one call walks of another process, which cannot map or unmap during the call: 256 MiB of base pages take
/// 0.3 to 1 ms.
const STEP: u64 = 256 << 20;

/// Visits every region of a page-aligned range.
pub(super) fn each_region(
    pagemap: &File,
    range: Range<u64>,
    wanted: Wanted,
    mut visit: impl FnMut(PageRegion),
) -> io::Result<()> {
    // 12 KiB on the stack: populated memory is a few long runs, and a scattered one takes a few calls more.
    let mut regions = [PageRegion::default(); 512];
    let mut at = range.start;
    while at < range.end {
        let scanned = scan_pages(pagemap, at..range.end, wanted, &mut regions)?;
        regions.iter().take(scanned.regions).copied().for_each(&mut visit);
        if scanned.reached <= at {
            return Err(io::Error::other("PAGEMAP_SCAN made no progress"));
        }
        at = scanned.reached;
    }
    Ok(())
}

/// The share of the mapped part of a page-aligned range of this process that large entries map, 0 to 1. The kernel's shared pages
/// of zeros count.
///
/// # Errors
/// Kernels before 6.7 lack PAGEMAP_SCAN.
pub fn large_share(range: Range<u64>) -> io::Result<f64> {
    let pagemap = File::open("/proc/self/pagemap")?;
    let (mut mapped, mut large) = (0, 0);
    each_region(&pagemap, range, Wanted::Mapped, |region| {
        mapped += region.len();
        large += if region.is_huge() { region.len() } else { 0 };
    })?;
    Ok(if mapped == 0 { 0.0 } else { large as f64 / mapped as f64 })
}

/// A process of this machine that is walked in steps, until its time is over.
struct Walk {
    path: String,
    pagemap: File,
    began: Instant,
    most: Duration,
    done: u64,
    all: u64,
}

impl Walk {
    /// Over so many bytes in all, in a time that has begun.
    fn over(pid: u32, all: u64, began: Instant, limits: Limits) -> Result<Self, Unread> {
        let path = format!("/proc/{pid}/pagemap");
        let pagemap = File::open(&path).map_err(|error| Unread::of_io(path.as_str(), &error))?;
        Ok(Self {
            path,
            pagemap,
            began,
            most: limits.walk_max,
            done: 0,
            all,
        })
    }

    /// What of a mapping is there.
    fn counts(&mut self, range: &Range<u64>) -> Result<Counts, Unread> {
        let (mut present, mut huge) = (0, 0);
        for step in steps(std::slice::from_ref(range)) {
            self.step(step, Wanted::Present, |region| {
                present += region.len();
                huge += if region.is_huge() { region.len() } else { 0 };
            })?;
        }
        Ok(Counts {
            rss: Bytes(present),
            anon_huge: Bytes(huge),
            ..Counts::default()
        })
    }

    fn step(&mut self, range: Range<u64>, wanted: Wanted, visit: impl FnMut(PageRegion)) -> Result<(), Unread> {
        if self.began.elapsed() >= self.most {
            let (most, done, all) = (self.most, Bytes(self.done), Bytes(self.all));
            let why = format!("stopped after {most:?}: {done} of {all} of its address space was walked");
            return Err(Unread::new(Cause::Timeout, self.path.as_str(), why));
        }
        self.done += range.end - range.start;
        each_region(&self.pagemap, range, wanted, visit).map_err(|error| Unread::of_io(self.path.as_str(), &error))
    }
}

/// Bytes that a process of this machine maps by large entries: PMD-mapped THP and hugetlb together.
pub(super) fn huge_bytes(pid: u32, limits: Limits) -> Result<u64, Unread> {
    let began = Instant::now();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    each_own(pid, |mapping| {
        ranges.push(mapping.range.clone());
        Ok(())
    })?;
    let large = large_since(began, pid, &ranges, limits)?;
    Ok(large.iter().map(|range| range.end - range.start).sum())
}

/// The parts of `ranges` that a process of this machine maps by large entries, in the order of addresses; small gaps between
/// the ranges are looked at, too. Takes Linux 6.7.
///
/// # Errors
/// If the process cannot be looked at, or not within its time.
pub fn large(pid: u32, ranges: &[Range<u64>], limits: Limits) -> Result<Vec<Range<u64>>, Unread> {
    large_since(Instant::now(), pid, ranges, limits)
}

fn large_since(began: Instant, pid: u32, ranges: &[Range<u64>], limits: Limits) -> Result<Vec<Range<u64>>, Unread> {
    let all = ranges.iter().map(|range| range.end - range.start).sum();
    let mut walk = Walk::over(pid, all, began, limits)?;
    let mut large = Vec::new();
    for step in steps(ranges) {
        walk.step(step, Wanted::Huge, |region| large.push(region.range()))?;
    }
    Ok(large)
}

/// Visits the mappings of a process of this machine that has no hugetlb pages, without the kernel's flags.
pub(super) fn each_mapping(
    pid: u32,
    limits: Limits,
    mut visit: impl FnMut(&Mapping<&[u8]>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    let began = Instant::now();
    let mut all = 0;
    each_own(pid, |mapping| {
        all += mapping.size().0;
        Ok(())
    })?;
    let mut walk = Walk::over(pid, all, began, limits)?;
    each_own(pid, |mapping| {
        let counts = walk.counts(&mapping.range)?;
        visit(&Mapping {
            counted: Some(Counted {
                counts,
                ..Counted::default()
            }),
            ..mapping.clone()
        })
    })
}

/// The last half of the address space is the kernel's: the [vsyscall] page is no page of the process.
fn each_own(pid: u32, mut visit: impl FnMut(&Mapping<&[u8]>) -> Result<(), Unread>) -> Result<(), Unread> {
    smaps::each_named(&Source::live(), pid, &mut |mapping| {
        if mapping.range.end <= 1 << 63 {
            visit(mapping)
        } else {
            Ok(())
        }
    })
}

/// Cuts the mapped part of an address space into ranges of at most [`STEP`]; small adjacent ones share one.
fn steps(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut steps: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        let mut start = range.start;
        if let Some(last) = steps.last_mut().filter(|last| start < last.start + STEP) {
            last.end = range.end.min(last.start + STEP);
            start = last.end;
        }
        while start < range.end {
            let end = range.end.min(start + STEP);
            steps.push(start..end);
            start = end;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{STEP, steps};

    #[test]
    fn steps_cover_what_is_mapped_and_are_short() {
        let page = 4096;
        let small = [page..2 * page, 5 * page..6 * page];
        assert_eq!((steps(&small).len(), &steps(&small)[0]), (1, &(page..6 * page)));
        let large = [page..page + 2 * STEP + page, 10 * STEP..10 * STEP + page];
        let wanted = [
            page..page + STEP,
            page + STEP..page + 2 * STEP,
            page + 2 * STEP..2 * page + 2 * STEP,
        ];
        assert_eq!(steps(&large)[..3], wanted);
        assert_eq!(
            (steps(&large).len(), &steps(&large)[3]),
            (4, &(10 * STEP..10 * STEP + page))
        );
        let straddling = [0..page, STEP - page..STEP + page];
        assert_eq!(steps(&straddling), [0..STEP, STEP..STEP + page]);
        assert!(steps(&[]).is_empty());
    }
}
