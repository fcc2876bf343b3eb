//! `madvise` on hugetlb pages given to the program: what it would do to base pages.

use core::ffi::c_int;

use crate::frames;
use crate::linux::{
    self, Answer, MADV_COLD, MADV_COLLAPSE, MADV_DODUMP, MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_FREE,
    MADV_MERGEABLE, MADV_NORMAL, MADV_PAGEOUT, MADV_WILLNEED,
};
use crate::runs::{Run, runs};

/// `madvise`.
///
/// # Safety
/// As for `madvise`.
pub(crate) unsafe fn madvise(address: usize, len: usize, advice: c_int) -> Answer {
    let range = linux::pages(address, len);
    let touched = range.filter(|range| address.is_multiple_of(linux::BASE_PAGE) && frames::touched(range));
    let (true, Some(range)) = (is_hint(advice) || empties(advice), touched) else {
        // SAFETY: passed on to the caller.
        return unsafe { linux::madvise(address, len, advice) };
    };
    for run in runs(&range) {
        match run.frame {
            // SAFETY: passed on to the caller.
            None => _ = unsafe { linux::madvise(run.range.start, run.range.len(), advice) }?,
            // SAFETY: the program says that it needs the content no more, and finds zeros in its place.
            Some(_) if empties(advice) => unsafe { empty(&run, advice) },
            // Hugetlb pages know none of the others; nothing that a program can see depends on a hint.
            Some(_) => {}
        }
    }
    Ok(0)
}

fn empties(advice: c_int) -> bool {
    matches!(advice, MADV_DONTNEED | MADV_DONTNEED_LOCKED)
}

/// Advice without effect on what the program finds in its memory. MADV_FREE is one: the kernel may keep the content, too.
fn is_hint(advice: c_int) -> bool {
    matches!(advice, MADV_NORMAL..=MADV_WILLNEED | MADV_FREE | MADV_MERGEABLE..=MADV_DODUMP | MADV_COLD | MADV_PAGEOUT | MADV_COLLAPSE)
}

/// Whole pages go back to the pool (Linux 5.18 and later); parts are filled with zeros, unless the page is empty anyway.
///
/// # Safety
/// The content must be needed no more.
unsafe fn empty(run: &Run, advice: c_int) {
    let Some(frame) = &run.frame else { return };
    // SAFETY: passed on to the caller.
    if run.is_whole() && unsafe { linux::madvise(frame.start, frame.len(), advice) }.is_ok() {
        return;
    }
    if linux::is_present(frame.start) {
        // SAFETY: readable and writable, since pages whose protection was changed are forgotten.
        unsafe {
            core::ptr::write_bytes::<u8>(
                core::ptr::with_exposed_provenance_mut(run.range.start),
                0,
                run.range.len(),
            );
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{empties, is_hint};

    #[test]
    fn hints_are_those_that_change_no_content_and_no_inheritance() {
        // asm-generic/mman-common.h: REMOVE 9, DONTFORK 10, DOFORK 11, WIPEONFORK 18, KEEPONFORK 19, POPULATE 22 and 23.
        let hints: Vec<i32> = (0..30).filter(|&advice| is_hint(advice)).collect();
        assert_eq!(hints, [0, 1, 2, 3, 8, 12, 13, 14, 15, 16, 17, 20, 21, 25]);
        assert_eq!((0..30).filter(|&advice| empties(advice)).collect::<Vec<i32>>(), [4, 24]);
    }
}
