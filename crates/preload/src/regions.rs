//! Regions that the program does not know yet: mapped on a border, given their kind, or unmapped again.

use core::ffi::c_int;
use core::ops::Range;

use preload_abi::Kind;

use crate::linux::{
    self, Answer, Errno, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MAP_FIXED_NOREPLACE, MAP_HUGETLB, MAP_NORESERVE, Request,
};
use crate::{dead, frames};

/// Maps more than is needed, and cuts both ends off.
pub(crate) fn aligned(plain: &Request, alignment: usize) -> Answer {
    let slack = alignment.saturating_sub(linux::BASE_PAGE);
    let Some(len) = plain.len.checked_add(slack) else {
        return Err(linux::ENOMEM);
    };
    // SAFETY: new memory at no fixed address; what is cut off is a part of it that nothing else knows of.
    unsafe {
        let start = linux::mmap(&Request { len, ..*plain })?;
        let region = linux::round_up(start, alignment);
        let (head, tail) = (region - start, slack - (region - start));
        if head > 0 {
            let _ = linux::munmap(start, head);
        }
        if tail > 0 {
            let _ = linux::munmap(region + plain.len, tail);
        }
        Ok(region)
    }
}

/// Another thread mapped something into this hole before we could.
pub(crate) struct Lost(pub(crate) Range<usize>);

/// Gives memory that the program does not know yet its kind: `all` of it where that is advice, else `range`, its whole pages.
pub(crate) fn change(plain: &Request, all: &Range<usize>, range: &Range<usize>, kind: Kind) -> Result<Answer, Lost> {
    match kind {
        Kind::Base => Ok(advise(all, MADV_NOHUGEPAGE)),
        Kind::Thp => Ok(advise(all, MADV_HUGEPAGE)),
        Kind::Pool2M | Kind::Pool1G => exchange(plain, range, kind),
    }
}

fn advise(range: &Range<usize>, advice: c_int) -> Answer {
    // SAFETY: says which pages are wanted for memory that we have just mapped.
    unsafe { linux::madvise(range.start, range.len(), advice) }
}

/// Unmaps base pages and maps hugetlb pages in their place, or base pages again if that is refused. Never over a mapping:
/// the kernel can leave a hole when a replacement fails, and another thread may have filled it.
fn exchange(plain: &Request, range: &Range<usize>, kind: Kind) -> Result<Answer, Lost> {
    let Some(frames) = frames::tracked(kind) else {
        return Ok(Err(linux::EINVAL));
    };
    let again = Request {
        address: range.start,
        len: range.len(),
        flags: plain.flags | MAP_FIXED_NOREPLACE,
        ..*plain
    };
    // Without a reservation, an empty pool would be met by SIGBUS instead of here.
    let large = Request {
        flags: again.flags & !MAP_NORESERVE | MAP_HUGETLB | linux::size_flag(kind),
        ..again
    };
    // SAFETY: the range is a part of a region that the program does not know yet.
    if let Err(errno) = unsafe { linux::munmap(range.start, range.len()) } {
        return Ok(Err(errno));
    }
    match map_exactly(&large) {
        Ok(_) => {
            dead::forget(range);
            frames.mark(range);
            Ok(Ok(range.start))
        }
        Err(errno) => match map_exactly(&again) {
            Ok(_) => Ok(Err(errno)),
            Err(_) => Err(Lost(range.clone())),
        },
    }
}

/// Maps at an address that must be free. Kernels before 4.17 take the address for a hint.
fn map_exactly(request: &Request) -> Answer {
    const EEXIST: Errno = Errno(17);
    // SAFETY: a new mapping that replaces nothing; what came to lie elsewhere is unmapped, and the program does not know of it.
    unsafe {
        let address = linux::mmap(request)?;
        if address == request.address {
            return Ok(address);
        }
        let _ = linux::munmap(address, request.len);
        Err(EEXIST)
    }
}

/// Unmaps all of a region that the program does not know, except a hole that belongs to another mapping now.
pub(crate) fn abandon(region: &Range<usize>, hole: Option<&Range<usize>>) {
    let hole = hole.cloned().unwrap_or(region.end..region.end);
    for rest in [region.start..hole.start, hole.end..region.end] {
        frames::forget(&rest);
        if !rest.is_empty() {
            // SAFETY: a part of a region that the program does not know.
            let _ = unsafe { linux::munmap(rest.start, rest.len()) };
        }
    }
}
