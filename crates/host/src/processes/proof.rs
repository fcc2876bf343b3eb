//! What backs a range of this very process's memory, proved by the kernel.

use std::fs::File;
use std::io;
use std::ops::Range;

use model::{Backing, Bytes, Cause, PageKind, Reading, Unread};
use serde::{Deserialize, Serialize};

use super::mapping::Mapping;
use super::pagemap::PAGEMAP;
use super::scan::each_region;
use super::smaps;
use crate::Source;
use crate::syscall::Wanted;

const SMAPS: &str = "/proc/self/smaps";

/// What backs a range, and which account of the kernel says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Bytes in memory by page kind; less than the range where it was never touched or was swapped out. Pages of
    /// zeros that were only ever read are no memory of the process and are not counted. Smaller transparent sizes count as base:
    /// see [`own_range_mthp`](super::own_range_mthp).
    pub backing: Backing,
    /// The account: `PAGEMAP_SCAN`, or `/proc/self/smaps` before Linux 6.7.
    pub account: String,
}

/// Proves what backs `len` bytes at `start` in this process.
///
/// Exact to the byte by PAGEMAP_SCAN (2 GiB of base pages: 2 to 8 ms). By smaps, a mapping that sticks out of the
/// range must be all of one kind and all in memory, else the backing is not known.
pub fn own_range(start: usize, len: usize) -> Reading<Proof> {
    let range = start as u64..(start as u64).saturating_add(len as u64);
    by_scan(&range)
        .or_else(|scan| by_smaps(&range).map_err(|why| with_scan_error(why, &scan)))
        .into()
}

fn by_scan(range: &Range<u64>) -> Result<Proof, Unread> {
    let pages = scan(range).map_err(|error| Unread::of_io(PAGEMAP, &error))?;
    let mut backing: Backing = [(PageKind::Base, Bytes(pages.base))].into_iter().collect();
    if !pages.huge.is_empty() {
        let text = own_smaps()?;
        backing.extend(huge_by_kind(&pages.huge, &smaps::parse(SMAPS, &text)?).iter());
    }
    let account = "PAGEMAP_SCAN".to_owned();
    Ok(Proof { backing, account })
}

/// Of this process, which has few mappings.
fn own_smaps() -> Result<Vec<u8>, Unread> {
    Source::live().bytes_within(SMAPS, smaps::LARGEST).into_result()
}

/// What a scan found: bytes on base pages, and ranges mapped by large entries.
#[derive(Debug, Default)]
struct Pages {
    base: u64,
    huge: Vec<Range<u64>>,
}

fn scan(range: &Range<u64>) -> io::Result<Pages> {
    let page = rustix::param::page_size() as u64;
    let end = range.end.checked_next_multiple_of(page).unwrap_or(range.end);
    let aligned = range.start - range.start % page..end;
    let pagemap = File::open(PAGEMAP)?;
    let mut pages = Pages::default();
    each_region(&pagemap, aligned, Wanted::Present, |region| {
        let inside = overlap(&region.range(), range);
        if region.is_huge() {
            pages.huge.push(inside);
        } else {
            pages.base += inside.end - inside.start;
        }
    })?;
    Ok(pages)
}

/// Large entries are hugetlb pages inside a hugetlb mapping, and PMD-mapped THP everywhere else.
fn huge_by_kind(huge: &[Range<u64>], mappings: &[Mapping<&[u8]>]) -> Backing {
    let hugetlb: Vec<_> = mappings
        .iter()
        .filter_map(|mapping| Some((&mapping.range, mapping.hugetlb_page()?)))
        .collect();
    let mut backing = Backing::new();
    for range in huge {
        let mut thp = range.end - range.start;
        for (mapping, page) in &hugetlb {
            let inside = overlap(range, mapping);
            let bytes = inside.end - inside.start;
            thp -= bytes;
            backing.add(PageKind::Hugetlb(*page), Bytes(bytes));
        }
        backing.add(PageKind::Thp, Bytes(thp));
    }
    backing
}

/// By smaps, for kernels before 6.7.
fn by_smaps(range: &Range<u64>) -> Result<Proof, Unread> {
    let text = own_smaps()?;
    let backing = clipped(range, &smaps::parse(SMAPS, &text)?)?;
    let account = SMAPS.to_owned();
    Ok(Proof { backing, account })
}

/// The part of the mappings' backing that lies in the range.
fn clipped(range: &Range<u64>, mappings: &[Mapping<&[u8]>]) -> Result<Backing, Unread> {
    let mut backing = Backing::new();
    for mapping in mappings {
        let inside = overlap(range, &mapping.range);
        if inside.is_empty() {
            continue;
        }
        let whole = mapping.backing();
        if inside == mapping.range {
            backing.extend(whole.iter());
        } else if let Some(kind) = only_kind(&whole, mapping.size()) {
            backing.add(kind, Bytes(inside.end - inside.start));
        } else if whole != Backing::new() {
            return Err(sticks_out(mapping, &whole));
        }
    }
    Ok(backing)
}

/// The kind that backs all of a mapping, if one does.
fn only_kind(backing: &Backing, size: Bytes) -> Option<PageKind> {
    backing.iter().find(|&(_, bytes)| bytes == size).map(|(kind, _)| kind)
}

fn sticks_out(mapping: &Mapping<&[u8]>, whole: &Backing) -> Unread {
    let Range { start, end } = mapping.range;
    let why = format!(
        "the mapping {start:x}-{end:x} sticks out of the range and holds {whole} of {}: \
         only Linux 6.7 and later can tell which is where",
        mapping.size()
    );
    Unread::new(Cause::Failed, SMAPS, why)
}

/// The common part of two ranges; empty if there is none.
fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

fn with_scan_error(mut why: Unread, scan: &Unread) -> Unread {
    why.why = format!("{} (PAGEMAP_SCAN: {})", why.why, scan.why);
    why
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
