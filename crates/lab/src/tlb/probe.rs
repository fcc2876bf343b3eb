//! What can be asked of a machine: the cost of visiting some pages, laid out in some way, over and over.

/// Which pages are visited: blocks of neighbours, the blocks a power of two of pages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    /// Base-2 logarithm of the pages from one block to the next.
    pub stride: u32,
    /// Base-2 logarithm of the pages in a block, at most `stride`.
    pub block: u32,
}

impl Layout {
    /// Neighbouring pages.
    pub const DENSE: Self = Self { stride: 0, block: 0 };

    /// Single pages, 2^`stride` apart.
    pub fn strided(stride: u32) -> Self {
        Self { stride, block: 0 }
    }

    /// The number of the page visited as `index`, counted from the start of the range.
    ///
    /// Blocks end where the next stride begins: some second levels hold page directories too (AMD's do), in the sets of the
    /// pages at their start, where a whole number of strides would lead.
    pub fn page(self, index: u32) -> u64 {
        let within = index & ((1 << self.block) - 1);
        let skipped = (1u64 << self.stride) - (1 << self.block);
        (u64::from(index >> self.block) << self.stride) | skipped | u64::from(within)
    }

    /// Pages from the first to one past the last of `pages` visited ones.
    pub fn span(self, pages: u32) -> u64 {
        pages.checked_sub(1).map_or(0, |last| self.page(last) + 1)
    }
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
    /// Where the pages are.
    pub layout: Layout,
    /// How many.
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
        pages <= self.pages && layout.span(pages) <= self.span
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

impl<O: Oracle + ?Sized> Oracle for &mut O {
    fn limits(&self, sweep: Sweep) -> Limits {
        (**self).limits(sweep)
    }

    fn cost(&mut self, probe: Probe, pass: u32) -> Option<f64> {
        (**self).cost(probe, pass)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn blocks_of_neighbours_stand_a_stride_apart() {
        let layout = Layout { stride: 7, block: 2 };
        let pages: Vec<u64> = (0..9).map(|n| layout.page(n)).collect();
        assert_eq!(pages, [124, 125, 126, 127, 252, 253, 254, 255, 380]);
        assert_eq!(layout.span(9), 381);
        assert_eq!(Layout::DENSE.span(0), 0);
    }
}
