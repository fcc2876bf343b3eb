//! Machine memory: whole free blocks of 2 MiB, blocks behind huge pages, and blocks that base pages are taken from.

use super::PAGES;

const BLOCK: u64 = PAGES as u64;

/// Where all of the host's memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    pub(super) blocks: u64,
    /// Blocks that the host itself uses.
    pub(super) kernel: u64,
    pub(super) free_blocks: u64,
    /// Blocks behind huge pages and 1 GiB pages.
    pub(super) large: u64,
    /// Base pages in use.
    pub(super) small: u64,
    /// Free base pages beside those in use.
    pub(super) free_small: u64,
    /// Pages that were moved to make whole blocks.
    pub(super) moved: u64,
}

impl Frames {
    /// All free but what the host uses. A part of the free memory, in 65,536ths, lies in blocks of which one page is in use by the host.
    pub(super) fn new(blocks: u64, kernel: u64, fragmented: u64) -> Self {
        let kernel = kernel.min(blocks);
        let mixed = ((blocks - kernel) * fragmented) >> 16;
        Self {
            blocks,
            kernel,
            free_blocks: blocks - kernel - mixed,
            large: 0,
            small: mixed,
            free_small: mixed * (BLOCK - 1),
            moved: 0,
        }
    }

    /// Free base pages, in whole blocks or not.
    pub(super) fn free(&self) -> u64 {
        self.free_blocks * BLOCK + self.free_small
    }

    /// Blocks with base pages in them.
    fn mixed(&self) -> u64 {
        self.blocks - self.kernel - self.large - self.free_blocks
    }

    /// A huge page, if there is a whole free block.
    pub(super) fn take_block(&mut self) -> bool {
        let is_there = self.free_blocks > 0;
        if is_there {
            self.free_blocks -= 1;
            self.large += 1;
        }
        is_there
    }

    pub(super) fn give_block(&mut self) {
        self.large -= 1;
        self.free_blocks += 1;
    }

    /// Base pages: all, or none if fewer are free.
    pub(super) fn take_small(&mut self, count: u64) -> bool {
        if count > self.free() {
            return false;
        }
        let missing = count.saturating_sub(self.free_small).div_ceil(BLOCK);
        self.free_blocks -= missing;
        self.free_small = self.free_small + missing * BLOCK - count;
        self.small += count;
        true
    }

    pub(super) fn give_small(&mut self, count: u64) {
        self.small -= count;
        self.free_small += count;
        if self.small == 0 {
            self.free_blocks += self.free_small / BLOCK;
            self.free_small = 0;
        }
    }

    /// So many base pages in place of as many before.
    pub(super) fn change_small(&mut self, old: u64, new: u64) {
        if new > old {
            self.take_small(new - old);
        } else {
            self.give_small(old - new);
        }
    }

    /// A huge page is 512 base pages from now on.
    pub(super) fn break_block(&mut self) {
        self.large -= 1;
        self.small += BLOCK;
    }

    /// Moves up to so many pages to make whole blocks; what is left of the budget. The mean block with base pages is emptied.
    pub(super) fn compact(&mut self, mut budget: u64) -> u64 {
        while self.free_small >= BLOCK {
            let cost = BLOCK - (self.free_small / self.mixed().max(1)).min(BLOCK - 1);
            if cost > budget {
                break;
            }
            budget -= cost;
            self.moved += cost;
            self.free_small -= BLOCK;
            self.free_blocks += 1;
        }
        budget
    }

    /// Is every page somewhere, and no page in two places?
    #[cfg(test)]
    pub(super) fn adds_up(&self) -> bool {
        self.mixed() * BLOCK == self.small + self.free_small
    }
}

#[cfg(test)]
mod tests {
    use super::Frames;

    #[test]
    fn pages_come_from_broken_blocks_first_and_blocks_come_back_whole() {
        let mut frames = Frames::new(10, 2, 0);
        assert!(frames.adds_up() && frames.free() == 8 * 512);
        assert!(frames.take_small(1) && frames.free_blocks == 7 && frames.free_small == 511);
        assert!(frames.take_small(511) && frames.free_blocks == 7);
        assert!(frames.take_block() && frames.adds_up());
        frames.break_block();
        assert_eq!((frames.small, frames.large), (1024, 0));
        frames.give_small(1000);
        assert!(frames.adds_up() && frames.free_small == 1000);
        assert_eq!(frames.compact(11), 11, "12 pages are in use in the mean block");
        assert_eq!(frames.compact(12), 0);
        assert!(frames.adds_up() && frames.free_blocks == 7 && frames.moved == 12);
        frames.give_small(24);
        assert!(frames.free_blocks == 8 && frames.free_small == 0 && frames.adds_up());
        assert!(!frames.take_small(8 * 512 + 1));
    }

    #[test]
    fn fragmented_memory_is_free_and_not_whole() {
        let frames = Frames::new(1000, 0, 1 << 15);
        assert!(frames.adds_up());
        assert_eq!((frames.free_blocks, frames.free_small), (500, 500 * 511));
    }
}
