//! The instructions of a window, in the order in which they ran.

use std::collections::HashMap;
use std::rc::Rc;

/// Which instructions a thread ran.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// An instruction stands here once for each number of accesses that it came with.
    pub known: Vec<Instruction>,
    /// Places in `known`, one for each step.
    pub order: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub at: u64,
    pub bytes: Rc<[u8]>,
    /// Loads and stores that it came with.
    pub accesses: u8,
}

/// Gives instructions their places.
#[derive(Default)]
pub(super) struct Places(HashMap<(u64, u8), u32>);

impl Places {
    pub(super) fn add(&mut self, ran: &mut Ran, step: Instruction) {
        let key = (step.at, step.accesses);
        let known = self.0.get(&key).copied();
        // Code may have been written since.
        let known = known.filter(|&place| ran.known[place as usize].bytes == step.bytes);
        let place = known.unwrap_or_else(|| {
            let place = ran.known.len() as u32;
            self.0.insert(key, place);
            ran.known.push(step);
            place
        });
        ran.order.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::{Instruction, Places, Ran};

    #[test]
    fn an_instruction_has_one_place_until_it_has_other_accesses_or_bytes() {
        let (mut ran, mut places) = (Ran::default(), Places::default());
        let steps: [(u64, &[u8], u8); 6] = [
            (0x10, &[0x90], 0),
            (0x11, &[0xf3, 0xa4], 2),
            (0x11, &[0xf3, 0xa4], 0),
            (0x11, &[0xf3, 0xa4], 2),
            (0x10, &[0xc3], 0),
            (0x10, &[0xc3], 0),
        ];
        for (at, bytes, accesses) in steps {
            let bytes = bytes.into();
            places.add(&mut ran, Instruction { at, bytes, accesses });
        }
        assert_eq!(ran.order, [0, 1, 2, 1, 3, 3]);
        assert_eq!(ran.known.len(), 4);
    }
}
