//! `mmap`: gives large anonymous regions the ordered kinds, or leaves a request alone.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::linux::{
    self, Answer, Errno, MADV_POPULATE_WRITE, MAP_32BIT, MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_GROWSDOWN,
    MAP_HUGETLB, MAP_LOCKED, MAP_POPULATE, MAP_SHARED, MAP_STACK, PROT_RW, Request,
};
use crate::orders::Orders;
use crate::regions::{Lost, abandon, aligned, change};
use crate::segments::{Segment, segments};
use crate::{carve, edges};

/// Is it a large region that the program may be given on other pages? Not:
/// - files, small regions, and hugetlb pages that the program asks for itself;
/// - address space without access, to be used later: JVM, Go and V8 begin so;
/// - an address that the program names, often that of a piece of such a reservation;
/// - memory shared between processes, code, and what the program may only read;
/// - a stack, locked memory, or an address below 4 GiB.
///
/// One for reading and writing with MAP_NORESERVE is: jemalloc and mimalloc map all of theirs so.
fn is_ours(request: &Request, minimum: usize) -> bool {
    let not =
        MAP_HUGETLB | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_SHARED | MAP_GROWSDOWN | MAP_STACK | MAP_LOCKED | MAP_32BIT;
    let is_meant = request.flags & (MAP_ANONYMOUS | not) == MAP_ANONYMOUS;
    is_meant && request.prot == PROT_RW && request.len >= minimum
}

/// `mmap`.
///
/// # Safety
/// As for `mmap`.
pub(crate) unsafe fn mmap(orders: Orders, request: &Request) -> Answer {
    if request.flags & MAP_FIXED != 0 {
        edges::make_way(orders, request.address, request.len);
    }
    if is_ours(request, orders.minimum()) {
        return serve(orders, request);
    }
    // SAFETY: passed on to the caller.
    unsafe { linux::mmap(request) }
}

/// How far this process's growth has come: layout rules count from its beginning.
static GROWTH: AtomicU64 = AtomicU64::new(0);

/// Maps a region of base pages on a border of its largest page, then changes stretch by stretch.
fn serve(orders: Orders, request: &Request) -> Answer {
    let len = linux::pages(0, request.len).ok_or(linux::ENOMEM)?.end;
    let origin = GROWTH.fetch_add(len as u64, Ordering::Relaxed);
    let stretches = segments(origin, len, orders.kind(), orders.rules());
    if let Some(region) = carved(orders, request, len, stretches.clone()) {
        populate(request, region, len);
        return Ok(region);
    }
    let alignment = alignment(stretches.clone());
    // Whatever is brought in now would be brought in as base pages.
    let plain = Request {
        len,
        flags: request.flags & !MAP_POPULATE,
        ..*request
    };
    let region = match aligned(&plain, alignment) {
        Ok(region) => region,
        Err(errno) => {
            orders.fell_back(errno);
            // SAFETY: the program's own request, at no fixed address.
            return unsafe { linux::mmap(request) };
        }
    };
    for stretch in stretches {
        if let Err(Lost(hole)) = give(orders, &plain, region, &stretch) {
            const EAGAIN: Errno = Errno(11);
            orders.fell_back(EAGAIN);
            abandon(&(region..region + len), Some(&hole));
            // SAFETY: the program's own request.
            return unsafe { linux::mmap(request) };
        }
    }
    populate(request, region, len);
    Ok(region)
}

/// Brings pages in where the program asked for that; best effort, as in `mmap`.
fn populate(request: &Request, region: usize, len: usize) {
    if request.flags & MAP_POPULATE != 0 {
        // SAFETY: brings pages in, and changes nothing else.
        let _ = unsafe { linux::madvise(region, len, MADV_POPULATE_WRITE) };
    }
}

/// A region of one kind that none of its pages fits into comes from a chunk, unless the program says where it wants it.
fn carved(
    orders: Orders,
    request: &Request,
    len: usize,
    mut stretches: impl Iterator<Item = Segment>,
) -> Option<usize> {
    let stretch = stretches.next()?;
    let is_small = stretch.range.len() == len && len < stretch.kind.page();
    if !is_small || request.address != 0 {
        return None;
    }
    let region = carve::region(orders, stretch.kind, len)?;
    orders.served(stretch.kind, len);
    Some(region)
}

/// The largest page that fits into any of the stretches.
fn alignment(stretches: impl Iterator<Item = Segment>) -> usize {
    let fitting = stretches
        .map(|stretch| (stretch.kind.page(), stretch))
        .filter(|(page, stretch)| stretch.range.len() >= *page)
        .map(|(page, _)| page);
    fitting.fold(linux::BASE_PAGE, usize::max)
}

/// Gives one stretch of a region its kind, as far as whole pages go; counts what was given or refused.
fn give(orders: Orders, plain: &Request, region: usize, stretch: &Segment) -> Result<(), Lost> {
    let whole = stretch.whole_pages(stretch.kind.page());
    let range = region + whole.start..region + whole.end;
    if range.is_empty() {
        return Ok(());
    }
    // Advice goes to all of the stretch: a region that is one mapping stays one, and can be remapped as one.
    let all = stretch.whole_pages(linux::BASE_PAGE);
    let all = region + all.start..region + all.end;
    let answer = change(plain, &all, &range, stretch.kind)?;
    orders.tried(stretch.kind, range.len(), answer);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_ours;
    use crate::linux::{
        MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_HUGETLB, MAP_LOCKED, MAP_NORESERVE, MAP_POPULATE,
        MAP_PRIVATE, MAP_SHARED, MAP_STACK, PROT_RW, Request,
    };

    const LEAST: usize = 2 << 20;
    const ANONYMOUS: i32 = MAP_PRIVATE | MAP_ANONYMOUS;

    fn is_served(flags: i32, prot: i32, len: usize) -> bool {
        let request = Request {
            flags,
            prot,
            ..Request::anonymous(len)
        };
        is_ours(&request, LEAST)
    }

    #[test]
    fn large_private_memory_is_served_whether_it_is_reserved_or_populated() {
        for flags in [0, MAP_NORESERVE, MAP_POPULATE] {
            assert!(is_served(ANONYMOUS | flags, PROT_RW, LEAST));
        }
    }

    #[test]
    fn small_regions_files_and_own_hugetlb_pages_are_not_looked_at() {
        assert!(!is_served(ANONYMOUS, PROT_RW, LEAST - 1));
        assert!(!is_served(MAP_PRIVATE, PROT_RW, LEAST));
        assert!(!is_served(ANONYMOUS | MAP_HUGETLB, PROT_RW, LEAST));
    }

    #[test]
    fn whatever_could_break_a_program_is_left_alone() {
        for (flags, prot) in [
            (ANONYMOUS | MAP_NORESERVE, 0),
            (ANONYMOUS | MAP_FIXED, PROT_RW),
            (ANONYMOUS | MAP_FIXED_NOREPLACE, PROT_RW),
            (MAP_SHARED | MAP_ANONYMOUS, PROT_RW),
            (ANONYMOUS, 7),
            (ANONYMOUS, 1),
            (ANONYMOUS | MAP_STACK, PROT_RW),
            (ANONYMOUS | MAP_LOCKED, PROT_RW),
        ] {
            assert!(!is_served(flags, prot, LEAST), "{flags:#x} {prot}");
        }
    }
}
