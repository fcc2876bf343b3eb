//! `mremap` of regions with hugetlb pages, which the kernel cannot grow: a new region, a copy, and the old one goes.

use core::ffi::c_int;

use crate::linux::{
    self, Answer, EFAULT, MADV_WILLNEED, MAP_FIXED, MREMAP_DONTUNMAP, MREMAP_FIXED, MREMAP_MAYMOVE, Request,
};
use crate::orders::Orders;
use crate::{edges, frames, serve};

/// What was asked of `mremap`.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub(crate) old: usize,
    pub(crate) old_len: usize,
    pub(crate) len: usize,
    pub(crate) flags: c_int,
    pub(crate) new: usize,
}

/// `mremap`.
///
/// # Safety
/// As for `mremap`.
pub(crate) unsafe fn mremap(orders: Orders, asked: Move) -> Answer {
    let flags = asked.flags;
    let range = linux::pages(asked.old, asked.old_len).filter(frames::touched);
    if range.is_none() || asked.len == 0 || flags & MREMAP_DONTUNMAP != 0 {
        if flags & MREMAP_FIXED != 0 {
            edges::make_way(orders, asked.new, asked.len);
        }
        // SAFETY: passed on to the caller.
        return unsafe {
            match linux::mremap(asked.old, asked.old_len, asked.len, flags, asked.new) {
                Err(EFAULT) if is_cut_by_rules(orders, asked) => move_by_copy(orders, asked),
                answer => answer,
            }
        };
    }
    let stays = flags & MREMAP_FIXED == 0;
    if stays && asked.len <= asked.old_len {
        // SAFETY: the end of the region is the caller's to unmap.
        unsafe { shrink(orders, asked) }
    } else if flags & MREMAP_MAYMOVE == 0 {
        Err(if stays { linux::ENOMEM } else { linux::EINVAL })
    } else {
        // SAFETY: passed on to the caller.
        unsafe { move_by_copy(orders, asked) }
    }
}

/// The kernel refuses to move what is more than one mapping, which a region cut by rules is.
fn is_cut_by_rules(orders: Orders, asked: Move) -> bool {
    let may_move = asked.flags & (MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MREMAP_MAYMOVE;
    // SAFETY: a hint, which fails if the range has a hole.
    let is_mapped = || unsafe { linux::madvise(asked.old, asked.old_len, MADV_WILLNEED) }.is_ok();
    orders.rules().next().is_some() && may_move && asked.old_len > 0 && is_mapped()
}

/// # Safety
/// As for `mremap`.
unsafe fn shrink(orders: Orders, asked: Move) -> Answer {
    let page = linux::BASE_PAGE;
    let kept = linux::round_up(asked.len, page);
    let had = linux::round_up(asked.old_len, page);
    if kept < had {
        // SAFETY: the end of the region is the caller's to unmap.
        unsafe { edges::munmap(orders, asked.old + kept, had - kept) }?;
    }
    Ok(asked.old)
}

/// # Safety
/// As for `mremap`.
unsafe fn move_by_copy(orders: Orders, asked: Move) -> Answer {
    let mut place = Request::anonymous(asked.len);
    if asked.flags & MREMAP_FIXED != 0 {
        place.address = asked.new;
        place.flags |= MAP_FIXED;
    }
    // SAFETY: the old region is the caller's; a fixed place is the caller's to replace, and the kernel demands that both lie apart.
    unsafe {
        let new = serve::mmap(orders, &place)?;
        let copied = asked.old_len.min(asked.len);
        edges::copy(&(asked.old..asked.old + copied), new);
        edges::munmap(orders, asked.old, asked.old_len)?;
        Ok(new)
    }
}
