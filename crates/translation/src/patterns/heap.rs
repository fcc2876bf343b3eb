//! A Java heap in use: what lives does not grow with the heap, and a larger heap is collected less often.

use model::Bytes;

use super::zipf::ZipfPages;
use crate::access::{Access, Side};
use crate::engine::BLOCK;
use crate::random::Permutation;

const LINE: u64 = 64;
/// Objects that live: eight warehouses of 28 MiB each, as the recipe `jbb` has on JDK 17. At most a third of the heap.
const LIVE: Bytes = Bytes::mib(8 * 28);
/// Loads of objects that live for each line of new ones. No public source gives it; with 1 huge pages gain up to a point less where heaps are large.
const LOADS: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct Heap {
    popular: ZipfPages,
    /// Lines of what lives, at the end of the heap, and of what is new, before it.
    lives: u64,
    new: u64,
    allocated: u64,
    order: Permutation,
    marked: u64,
    /// Marks that are due, in units of one part of `new`: a collection is spread over the time from one to the next.
    due: u64,
}

impl Heap {
    pub(super) fn new(size: Bytes, seed: u64) -> Self {
        let lives = (LIVE.0.min(size.0 / 3) / 4096).max(1) * 4096;
        Self {
            popular: ZipfPages::new(Bytes(lives), seed),
            lives: lives / LINE,
            new: (size.0 - lives) / LINE,
            allocated: 0,
            order: Permutation::new(lives / LINE, seed),
            marked: 0,
            due: 0,
        }
    }

    pub(super) fn fill(&mut self, block: &mut Vec<Access>) {
        while block.len() + 1 + LOADS + 2 <= BLOCK {
            block.push(Access::new(self.allocated * LINE, Side::Store));
            self.allocated = (self.allocated + 1) % self.new;
            let live = self.new * LINE;
            block.extend((0..LOADS).map(|_| Access::load(live + self.popular.line())));
            self.due += self.lives;
            if self.due >= self.new {
                self.due -= self.new;
                let object = live + self.order.at(self.marked) * LINE;
                block.extend([Access::load(object), Access::new(object, Side::Store)]);
                self.marked = (self.marked + 1) % self.lives;
            }
        }
    }
}
