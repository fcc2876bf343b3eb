//! Calls that cut through a hugetlb page given to the program: the page gives way to base pages, as the program believes it has.

use core::ffi::c_int;
use core::ops::Range;

use preload_abi::at;

use crate::linux::{self, Answer, MAP_FIXED, MREMAP_FIXED, MREMAP_MAYMOVE, PROT_RW, Request};
use crate::orders::Orders;
use crate::{dead, frames, runs};

/// The hugetlb pages of the program that this border cuts through.
fn cut_by(border: usize) -> Option<Range<usize>> {
    frames::around(border).filter(|frame| frame.start != border)
}

/// Lets every page cut by an end of the range give way; false if one cannot.
fn loosen(orders: Orders, range: &Range<usize>) -> bool {
    [range.start, range.end]
        .into_iter()
        .all(|border| cut_by(border).is_none_or(|frame| give_way(orders, &frame)))
}

/// Replaces one hugetlb page by base pages of the same content. A page that is in use is copied, which only a process with one
/// thread can do without losing what another thread writes in that time.
fn give_way(orders: Orders, frame: &Range<usize>) -> bool {
    let mut fresh = Request::anonymous(frame.len());
    let replaced = if linux::is_present(frame.start) {
        linux::is_single_threaded() && copy_over(frame).is_ok()
    } else {
        fresh.address = frame.start;
        fresh.flags |= MAP_FIXED;
        // SAFETY: the page was given to the program by this library, and holds nothing yet.
        unsafe { linux::mmap(&fresh) }.is_ok()
    };
    if replaced {
        frames::forget(frame);
        orders.add(at::DEMOTED, 1);
    }
    replaced
}

/// Copies a page into new memory, and moves that to its place in one step.
fn copy_over(frame: &Range<usize>) -> Answer {
    // SAFETY: the page is readable, since pages whose protection was changed are forgotten; the new memory is as long, and
    // no other thread knows of it. The move replaces the page at once.
    unsafe {
        let copy = linux::mmap(&Request::anonymous(frame.len()))?;
        linux::copy(frame.start, copy, frame.len());
        let flags = MREMAP_MAYMOVE | MREMAP_FIXED;
        linux::mremap(copy, frame.len(), frame.len(), flags, frame.start).inspect_err(|_| {
            let _ = linux::munmap(copy, frame.len());
        })
    }
}

/// `munmap`. A page that is cut but cannot give way stays mapped until the rest of it is unmapped, too.
///
/// # Safety
/// As for `munmap`.
pub(crate) unsafe fn munmap(orders: Orders, address: usize, len: usize) -> Answer {
    let mut range = match linux::pages(address, len) {
        Some(range) if frames::touched(&range) => range,
        // SAFETY: passed on to the caller.
        _ => return unsafe { linux::munmap(address, len) },
    };
    if !loosen(orders, &range) {
        range = between_cuts(orders, &range);
    }
    frames::forget(&range);
    if range.is_empty() {
        return Ok(0);
    }
    // SAFETY: a part of the range that the program unmaps.
    unsafe { linux::munmap(range.start, range.len()) }
}

/// What lies between the pages that are cut; of those, the parts are noted.
fn between_cuts(orders: Orders, range: &Range<usize>) -> Range<usize> {
    let (first, last) = (cut_by(range.start), cut_by(range.end));
    for frame in [first.clone(), last.clone().filter(|_| last != first)]
        .into_iter()
        .flatten()
    {
        keep(orders, &frame, range);
    }
    let start = first.map_or(range.start, |frame| frame.end);
    let end = last.map_or(range.end, |frame| frame.start);
    start..end.max(start)
}

/// Keeps a page that the range cuts, unless nothing of it is left.
fn keep(orders: Orders, frame: &Range<usize>, range: &Range<usize>) {
    let part = range.start.max(frame.start)..range.end.min(frame.end);
    if dead::bury(frame, &part) {
        frames::forget(frame);
        // SAFETY: the program unmapped all of this page, part by part.
        let _ = unsafe { linux::munmap(frame.start, frame.len()) };
    } else {
        orders.add(at::KEPT, 1);
    }
}

/// Makes a range free for a mapping that replaces it. Where a page cannot give way, the kernel will refuse the mapping.
pub(crate) fn make_way(orders: Orders, address: usize, len: usize) {
    let range = linux::pages(address, len);
    if let Some(range) = range.filter(frames::touched)
        && loosen(orders, &range)
    {
        frames::forget(&range);
    }
}

/// `mprotect`. Pages with another protection than they came with are no longer looked after.
///
/// # Safety
/// As for `mprotect`.
pub(crate) unsafe fn mprotect(orders: Orders, address: usize, len: usize, prot: c_int) -> Answer {
    let range = linux::pages(address, len);
    if let Some(range) = range.filter(frames::touched) {
        if !loosen(orders, &range) {
            orders.add(at::REFUSED, 1);
        } else if prot != PROT_RW {
            frames::forget(&range);
        }
    }
    // SAFETY: passed on to the caller.
    unsafe { linux::mprotect(address, len, prot) }
}

/// Copies what is in memory of a range of the program to new, zero memory as long.
///
/// # Safety
/// Both ranges must be the caller's, and apart from each other.
pub(crate) unsafe fn copy(from: &Range<usize>, to: usize) {
    for run in runs::runs(from) {
        if run.frame.is_some_and(|frame| !linux::is_present(frame.start)) {
            continue;
        }
        let to = to.wrapping_add(run.range.start - from.start);
        // SAFETY: passed on to the caller.
        unsafe { linux::copy(run.range.start, to, run.range.len()) };
    }
}
