//! Which hugetlb pages were given to the program: one bit per page of the address space, so no lock and no limit of entries.

use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use preload_abi::Kind;

use crate::linux::{self, MAP_NORESERVE, Request};
use crate::quick;

/// Programs get addresses below this unless they ask for more by a hint (`Documentation/arch/x86/x86_64/5level-paging.rst`).
const ADDRESS_BITS: u32 = 48;

/// The pages of one size. The bits are memory that is zero until it is written: 16 MiB of addresses for 2 MiB pages.
pub(crate) struct Frames {
    /// The binary logarithm of the size.
    shift: u32,
    /// Null where no track is kept of them.
    bits: AtomicPtr<AtomicU64>,
}

static OF_2M: Frames = Frames::new(21);
static OF_1G: Frames = Frames::new(30);

fn of(kind: Kind) -> Option<&'static Frames> {
    match kind {
        Kind::Base | Kind::Thp => None,
        Kind::Pool2M => Some(&OF_2M),
        Kind::Pool1G => Some(&OF_1G),
    }
}

/// Begins to keep track of pages of this kind, if they are of a pool, at the start and by one thread.
pub(crate) fn track(kind: Kind) {
    of(kind).into_iter().for_each(Frames::begin);
}

/// Those of this kind, if track is kept of them: none others may be given to the program.
pub(crate) fn tracked(kind: Kind) -> Option<&'static Frames> {
    of(kind).filter(|frames| frames.are_tracked())
}

fn all() -> impl Iterator<Item = &'static Frames> {
    [&OF_2M, &OF_1G].into_iter().filter(|frames| frames.are_tracked())
}

/// Is any page given to the program in this range?
pub(crate) fn touched(range: &Range<usize>) -> bool {
    all().any(|frames| frames.any(range))
}

/// The page that holds this address, if it was given to the program.
pub(crate) fn around(address: usize) -> Option<Range<usize>> {
    all()
        .find(|frames| frames.holds(address))
        .map(|frames| frames.frame(address))
}

/// Forgets all pages that lie in this range as a whole.
pub(crate) fn forget(range: &Range<usize>) {
    for frames in all() {
        frames.clear(range);
    }
}

/// The first border of a page of any tracked size after this address.
pub(crate) fn next_border(address: usize) -> usize {
    all()
        .map(|frames| frames.frame(address).end)
        .min()
        .unwrap_or(usize::MAX)
}

impl Frames {
    const fn new(shift: u32) -> Self {
        Self {
            shift,
            bits: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    fn are_tracked(&self) -> bool {
        !self.bits.load(Ordering::Acquire).is_null()
    }

    fn begin(&self) {
        if self.are_tracked() {
            return;
        }
        let mut request = Request::anonymous((1_usize << ADDRESS_BITS).wrapping_shr(self.shift) / 8);
        request.flags |= MAP_NORESERVE;
        // SAFETY: new memory, which is never unmapped.
        if let Ok(address) = unsafe { linux::mmap(&request) } {
            self.bits
                .store(core::ptr::with_exposed_provenance_mut(address), Ordering::Release);
        }
    }

    fn size(&self) -> usize {
        1_usize.wrapping_shl(self.shift)
    }

    /// The page around an address.
    fn frame(&self, address: usize) -> Range<usize> {
        let start = address & !(self.size() - 1);
        start..start.saturating_add(self.size())
    }

    /// The word and the bit of the page around an address.
    fn bit(&self, address: usize) -> Option<(&AtomicU64, u64)> {
        if address >> ADDRESS_BITS != 0 {
            return None;
        }
        let number = address.wrapping_shr(self.shift);
        let bits = self.bits.load(Ordering::Acquire);
        if bits.is_null() {
            return None;
        }
        // SAFETY: the map has a bit for every page below the limit that was checked above.
        let word = unsafe { &*bits.add(number / 64) };
        Some((word, 1 << (number % 64)))
    }

    pub(crate) fn holds(&self, address: usize) -> bool {
        self.bit(address)
            .is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    fn any(&self, range: &Range<usize>) -> bool {
        let mut at = range.start;
        while at < range.end && at >> ADDRESS_BITS == 0 {
            let Some((word, bit)) = self.bit(at) else { return false };
            let here = word.load(Ordering::Relaxed);
            if here & bit != 0 {
                return true;
            }
            // A whole word without a bit is 64 pages that need no further look.
            at = if here == 0 {
                self.word_end(at)
            } else {
                self.frame(at).end
            };
        }
        false
    }

    /// Where the pages of one word of bits end.
    fn word_end(&self, address: usize) -> usize {
        let span = self.size().wrapping_mul(64);
        (address & !(span - 1)).saturating_add(span)
    }

    /// Notes that the pages of a range were given to the program.
    pub(crate) fn mark(&self, range: &Range<usize>) {
        quick::give();
        let mut at = range.start;
        while at < range.end {
            let Some((word, bit)) = self.bit(at) else { return };
            word.fetch_or(bit, Ordering::AcqRel);
            at = self.frame(at).end;
        }
    }

    fn clear(&self, range: &Range<usize>) {
        let mut at = range.start.saturating_add(self.size() - 1) & !(self.size() - 1);
        while range.end.saturating_sub(at) >= self.size() {
            let Some((word, bit)) = self.bit(at) else { return };
            if word.load(Ordering::Relaxed) == 0 {
                at = self.word_end(at);
            } else {
                word.fetch_and(!bit, Ordering::AcqRel);
                at = self.frame(at).end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Frames;

    const M: usize = 1 << 20;

    fn frames() -> Frames {
        let frames = Frames::new(21);
        frames.begin();
        frames
    }

    #[test]
    fn a_marked_range_is_held_from_its_first_to_its_last_byte() {
        let frames = frames();
        frames.mark(&(100 * M..106 * M));
        for (address, held) in [
            (100 * M - 1, false),
            (100 * M, true),
            (105 * M, true),
            (106 * M - 1, true),
            (106 * M, false),
        ] {
            assert_eq!(frames.holds(address), held, "{address:#x}");
        }
        assert!(frames.any(&(0..1 << 47)), "found from far away");
        assert!(!frames.any(&(106 * M..1 << 47)));
        assert!(!frames.any(&(0..100 * M)));
    }

    #[test]
    fn only_whole_pages_are_forgotten() {
        let frames = frames();
        frames.mark(&(0..8 * M));
        frames.clear(&(M..7 * M));
        assert!(frames.holds(0) && frames.holds(6 * M));
        assert!(!frames.holds(2 * M) && !frames.holds(4 * M));
        frames.clear(&(0..usize::MAX));
        assert!(!frames.any(&(0..usize::MAX)));
    }

    #[test]
    fn addresses_beyond_the_map_are_nobodys() {
        let frames = frames();
        for address in [1 << 48, usize::MAX - M, usize::MAX] {
            frames.mark(&(address..address.saturating_add(4 * M)));
            assert!(!frames.holds(address));
        }
    }
}
