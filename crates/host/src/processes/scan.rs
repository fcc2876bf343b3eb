//! Walks by PAGEMAP_SCAN: a range of one's own, or the large pages of another process in short steps.

use std::fs::File;
use std::io;
use std::ops::Range;

use model::{Cause, Unread};

use super::smaps::{self, smaps_text};
use crate::Source;
use crate::syscall::{PageRegion, Wanted, scan_pages};

/// The most that one call walks of another process, which cannot map, unmap or fault meanwhile: 1 GiB of base pages
/// takes 1 to 4 ms.
const STEP: u64 = 1 << 30;

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
            return Err(io::Error::other("PAGEMAP_SCAN made no way"));
        }
        at = scanned.reached;
    }
    Ok(())
}

/// Bytes that a process of this machine maps by large entries: PMD-mapped transparent pages and hugetlb together.
pub(super) fn huge_bytes(pid: u32) -> Result<u64, Unread> {
    let maps = format!("/proc/{pid}/maps");
    let ranges = smaps::parse_ranges(&maps, &smaps_text(&Source::live(), &maps)?)?;
    let path = format!("/proc/{pid}/pagemap");
    let pagemap = File::open(&path).map_err(|error| unread(&path, &error))?;
    let mut huge = 0;
    for step in steps(&ranges) {
        each_region(&pagemap, step, Wanted::Huge, |region| huge += region.len())
            .map_err(|error| unread(&path, &error))?;
    }
    Ok(huge)
}

/// Cuts the mapped part of an address space into ranges of at most [`STEP`]; small neighbours share one.
fn steps(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut steps: Vec<Range<u64>> = Vec::new();
    // The last half of the address space is the kernel's: the [vsyscall] page is no page of the process.
    for range in ranges.iter().filter(|range| range.end <= 1 << 63) {
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

/// Why an own file could not be opened or asked.
pub(super) fn unread(path: &str, error: &io::Error) -> Unread {
    let cause = match error.kind() {
        io::ErrorKind::NotFound => Cause::Absent,
        io::ErrorKind::PermissionDenied => Cause::Denied,
        _ => Cause::Failed,
    };
    Unread::new(cause, path, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{STEP, steps};

    #[test]
    fn steps_cover_what_is_mapped_and_are_short() {
        let page = 4096;
        let small = [page..2 * page, 5 * page..6 * page];
        assert_eq!((steps(&small).len(), &steps(&small)[0]), (1, &(page..6 * page)));
        let large = [
            page..page + 2 * STEP + page,
            10 * STEP..10 * STEP + page,
            u64::MAX - page..u64::MAX,
        ];
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
