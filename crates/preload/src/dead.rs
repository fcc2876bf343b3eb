//! Parts of a hugetlb page that the program unmapped while the page could not give way: once all of it is unmapped, the page goes.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::linux::BASE_PAGE;

/// Pages that are partly unmapped at the same time; of those beyond, memory stays taken.
const SLOTS: usize = 256;
/// Bits for the base pages of a 2 MiB page; larger pages stay.
const WORDS: usize = 8;
/// No page begins here.
const FREE: usize = 0;
/// Nor here: a slot that is being emptied.
const BUSY: usize = 1;

struct Slot {
    frame: AtomicUsize,
    dead: [AtomicU64; WORDS],
}

static TABLE: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

impl Slot {
    const fn new() -> Self {
        Self {
            frame: AtomicUsize::new(FREE),
            dead: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    fn is_of(&self, frame: usize) -> bool {
        self.frame.load(Ordering::Acquire) == frame
    }

    fn swap(&self, from: usize, to: usize) -> bool {
        let swapped = self
            .frame
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        swapped.is_ok()
    }

    /// True for the one that empties it.
    fn empty(&self, frame: usize) -> bool {
        let ours = self.swap(frame, BUSY);
        if ours {
            self.dead.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.frame.store(FREE, Ordering::Release);
        }
        ours
    }
}

/// Notes that a part of a page was unmapped; true if that was the last part, and the page is the caller's to unmap.
pub(crate) fn bury(frame: &Range<usize>, part: &Range<usize>) -> bool {
    let number = |address: usize| address.wrapping_sub(frame.start) >> BASE_PAGE.trailing_zeros();
    if number(frame.end) > WORDS * 64 {
        return false;
    }
    let known = TABLE.iter().find(|slot| slot.is_of(frame.start));
    let Some(slot) = known.or_else(|| TABLE.iter().find(|slot| slot.swap(FREE, frame.start))) else {
        return false;
    };
    for page in number(part.start)..number(part.end) {
        if let Some(word) = slot.dead.get(page / 64) {
            word.fetch_or(1 << (page % 64), Ordering::AcqRel);
        }
    }
    let dead: u32 = slot
        .dead
        .iter()
        .map(|word| word.load(Ordering::Acquire).count_ones())
        .sum();
    dead as usize == number(frame.end) && slot.empty(frame.start)
}

/// The pages of this range are new: what was noted of others at their place is void.
pub(crate) fn forget(range: &Range<usize>) {
    for slot in &TABLE {
        let frame = slot.frame.load(Ordering::Acquire);
        if frame > BUSY && range.contains(&frame) {
            slot.empty(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{bury, forget};

    const PAGE: usize = 4096;
    const LARGE: usize = 2 << 20;

    #[test]
    fn a_page_goes_with_its_last_part_and_not_with_the_same_part_twice() {
        let frame = LARGE..2 * LARGE;
        assert!(!bury(&frame, &(LARGE..LARGE + PAGE)));
        assert!(!bury(&frame, &(LARGE + PAGE..2 * LARGE - PAGE)));
        assert!(!bury(&frame, &(LARGE..LARGE + PAGE)));
        assert!(bury(&frame, &(2 * LARGE - PAGE..2 * LARGE)));
        assert!(!bury(&frame, &(LARGE..LARGE + PAGE)), "it begins anew");
        forget(&frame);
    }

    #[test]
    fn a_new_page_at_the_same_place_is_whole() {
        let frame = 10 * LARGE..11 * LARGE;
        assert!(!bury(&frame, &(frame.start..frame.end - PAGE)));
        forget(&(5 * LARGE..20 * LARGE));
        assert!(!bury(&frame, &(frame.end - PAGE..frame.end)));
        forget(&frame);
    }

    #[test]
    fn pages_with_more_parts_than_bits_stay() {
        let frame = 1 << 30..2 << 30;
        assert!(!bury(&frame, &frame));
    }
}
