//! A Java heap in use: what lives does not grow with the heap, and a larger heap is collected less often.

use model::Bytes;

use super::zipf;
use crate::access::{Access, Side};
use crate::engine::{BLOCK, Event};
use crate::random::Permutation;

const LINE: u64 = 64;
/// Objects that live: eight warehouses of 28 MiB each, as the recipe `jbb` has on JDK 17. At most a third of the heap.
const LIVE: Bytes = Bytes::mib(8 * 28);
/// Loads of objects that live for each line of new ones. No public source gives it; with 1 huge pages gain up to a point less where heaps are large.
const LOADS: usize = 3;

pub(super) fn heap(size: u64, seed: u64) -> impl FnMut(&mut Vec<Access>) -> Option<Event> {
    let bytes = (LIVE.0.min(size / 3) / 4096).max(1) * 4096;
    // Lines of what lives, at the end of the heap, and of what is new, before it.
    let (lives, new) = (bytes / LINE, (size - bytes) / LINE);
    let (mut popular, order) = (zipf::lines(bytes, seed), Permutation::new(lives, seed));
    let (mut allocated, mut marked) = (0, 0);
    // Marks that are due, in units of one part of `new`: a collection is spread over the time from one to the next.
    let mut due = 0;
    move |block| {
        while block.len() + 1 + LOADS + 2 <= BLOCK {
            block.push(Access::new(allocated * LINE, Side::Store));
            allocated = (allocated + 1) % new;
            let live = new * LINE;
            block.extend((0..LOADS).map(|_| Access::load(live + popular())));
            due += lives;
            if due >= new {
                due -= new;
                let object = live + order.at(marked) * LINE;
                block.extend([Access::load(object), Access::new(object, Side::Store)]);
                marked = (marked + 1) % lives;
            }
        }
        None
    }
}
