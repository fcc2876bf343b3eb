//! Regions too small for a page of their kind: cut one behind the other from chunks of such pages, as Python's arenas need it.

use core::sync::atomic::{AtomicUsize, Ordering};

use preload_abi::Kind;

use crate::linux::{Request, round_up};
use crate::orders::Orders;
use crate::regions::{self, Lost};

/// Bytes of a chunk, unless a page is larger: what is left at its end, less than one region, is a small part of it.
const CHUNK: usize = 8 << 20;

/// Up to where the open chunk of each kind is given out; chunks begin at multiples of their size, so this is their end, too.
/// At such a multiple there is none, or nothing is left of it.
static OPEN: [AtomicUsize; Kind::ALL.len()] = [const { AtomicUsize::new(0) }; Kind::ALL.len()];

/// Memory of this kind for a region that is smaller than its page, zero as `mmap` gives it; `None` if it is not available. It is
/// never given out twice: what the program unmaps of a chunk is gone.
pub(crate) fn region(orders: Orders, kind: Kind, len: usize) -> Option<usize> {
    let open = OPEN.get(kind as usize)?;
    let chunk = kind.page().max(CHUNK);
    loop {
        let at = open.load(Ordering::Acquire);
        if left(at, chunk) >= len {
            if swap(open, at, at + len) {
                return Some(at);
            }
            continue;
        }
        let fresh = map(orders, kind, chunk)?;
        if swap(open, at, fresh + len) {
            return Some(fresh);
        }
        // Another thread has opened one in between.
        regions::abandon(&(fresh..fresh + chunk), None);
    }
}

/// Bytes of a chunk behind this address.
fn left(at: usize, chunk: usize) -> usize {
    round_up(at, chunk) - at
}

fn swap(open: &AtomicUsize, from: usize, to: usize) -> bool {
    open.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

/// Maps a chunk and gives it its kind.
fn map(orders: Orders, kind: Kind, chunk: usize) -> Option<usize> {
    let plain = Request::anonymous(chunk);
    let start = regions::aligned(&plain, chunk).ok()?;
    let all = start..start + chunk;
    match regions::change(&plain, &all, &all, kind) {
        Ok(Ok(_)) => return Some(start),
        Ok(Err(errno)) => {
            orders.fell_back(errno);
            regions::abandon(&all, None);
        }
        Err(Lost(hole)) => regions::abandon(&all, Some(&hole)),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::left;

    #[test]
    fn a_chunk_ends_at_a_multiple_of_its_size_and_there_is_none_at_first() {
        let chunk = 8 << 20;
        assert_eq!(left(0, chunk), 0);
        assert_eq!(left(3 * chunk + 1, chunk), chunk - 1);
        assert_eq!(left(4 * chunk - 4096, chunk), 4096);
        assert_eq!(left(4 * chunk, chunk), 0);
    }
}
