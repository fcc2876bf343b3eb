//! What can be asked of a machine: the cost of visiting some pages, laid out in some way, over and over.

/// Which pages are visited: blocks of adjacent pages, the blocks a power of two of pages apart; or pages drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    /// Base-2 logarithm of the pages from one block to the next.
    pub stride: u32,
    /// Base-2 logarithm of the pages in a block, at most `stride`.
    pub block: u32,
    /// Which random draw; 0 is none. The pages are drawn from 2^`stride` then. Whatever chooses the set, it cannot spread such
    /// pages evenly: only an array of a single set holds any of them that are no more than its entries.
    pub draw: u32,
}

impl Layout {
    /// Neighbouring pages.
    pub const DENSE: Self = Self::strided(0);

    /// Single pages, 2^`stride` apart.
    pub const fn strided(stride: u32) -> Self {
        Self {
            stride,
            block: 0,
            draw: 0,
        }
    }

    /// Pages drawn at random from 2^`range`, all different; each `draw` (from 1 on) gives others.
    pub fn drawn(range: u32, draw: u32) -> Self {
        Self {
            stride: range,
            block: 0,
            draw,
        }
    }

    /// Are the pages drawn at random?
    pub fn is_drawn(self) -> bool {
        self.draw > 0
    }

    /// The number of the page visited as `index`, counted from the start of the range.
    ///
    /// Blocks end where the next stride begins: some second levels hold page directories too (AMD's do), in the sets of the
    /// pages at their start, where a whole number of strides would lead.
    pub fn page(self, index: u32) -> u64 {
        if self.is_drawn() {
            return permuted(index.into(), self.stride, self.draw.into());
        }
        let within = index & ((1 << self.block) - 1);
        let skipped = (1u64 << self.stride) - (1 << self.block);
        (u64::from(index >> self.block) << self.stride) | skipped | u64::from(within)
    }

    /// Pages from the first to one past the last of `pages` visited ones.
    pub fn span(self, pages: u32) -> u64 {
        if self.is_drawn() {
            return 1 << self.stride;
        }
        pages.checked_sub(1).map_or(0, |last| self.page(last) + 1)
    }
}

/// A number of so many bits as another one, each as one only: odd factors and shifted copies of the upper bits can be undone.
fn permuted(number: u64, bits: u32, seed: u64) -> u64 {
    let mask = (1u64 << bits) - 1;
    (1..=4).fold(number & mask, |number, round| {
        let key = (seed * 4 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = number.wrapping_mul((key >> 16) | 1).wrapping_add(key >> 40) & mask;
        mixed ^ (mixed >> bits.div_ceil(2).max(1))
    })
}

/// How the visited pages may lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sweep {
    /// Few pages; costs must be free of any constant that depends on aliasing.
    Near,
    /// Many pages; a constant that is the same for all of them does no harm.
    Far,
}

/// One question: the cost of an access when these pages are visited in turn for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probe {
    /// Which memory may be used.
    pub sweep: Sweep,
    pub layout: Layout,
    pub pages: u32,
}

/// How far an oracle can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most pages visited.
    pub pages: u32,
    /// Most pages from the first to the last.
    pub span: u64,
}

impl Limits {
    /// Can it be asked that?
    pub fn allow(self, layout: Layout, pages: u32) -> bool {
        // Of nearly all pages of a range no draw is random.
        let random = !layout.is_drawn() || u64::from(pages) <= layout.span(pages) / 4 * 3;
        pages <= self.pages && layout.span(pages) <= self.span && random
    }
}

/// A machine, or a model of one, for pages of one kind.
pub trait Oracle {
    /// How far a sweep can go.
    fn limits(&self, sweep: Sweep) -> Limits;

    /// Core cycles of one access, data always near, in an order of visits that depends on `pass`; `None` if this attempt was
    /// disturbed in a way that was noticed.
    fn cost(&mut self, probe: Probe, pass: u32) -> Option<f64>;
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn blocks_of_neighbours_stand_a_stride_apart() {
        let layout = Layout {
            block: 2,
            ..Layout::strided(7)
        };
        let pages: Vec<u64> = (0..9).map(|n| layout.page(n)).collect();
        assert_eq!(pages, [124, 125, 126, 127, 252, 253, 254, 255, 380]);
        assert_eq!(layout.span(9), 381);
        assert_eq!(Layout::DENSE.span(0), 0);
    }

    #[test]
    fn drawn_pages_are_different_pages_of_their_range_and_spread_as_at_random() {
        for (range, draw) in [(7, 1), (14, 1), (14, 2), (15, 9)] {
            let layout = Layout::drawn(range, draw);
            let mut pages: Vec<u64> = (0..1 << range).map(|n| layout.page(n)).collect();
            let few: Vec<u64> = pages[..80].to_vec();
            pages.sort_unstable();
            assert!(pages.into_iter().eq(0..1 << range), "each once: {layout:?}");
            // Eighty pages over eight sets by any three bits: twelve or more in one of them at times, never twenty.
            for shift in 0..range - 2 {
                let fullest = (0..8).map(|set| few.iter().filter(|&&page| page >> shift & 7 == set).count());
                assert!((11..=20).contains(&fullest.max().unwrap_or(0)), "{layout:?} {shift}");
            }
        }
        assert_ne!(Layout::drawn(14, 1).page(3), Layout::drawn(14, 2).page(3));
    }
}
