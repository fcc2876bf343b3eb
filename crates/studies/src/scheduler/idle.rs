//! Which CPUs and whole cores are idle, as sets of bits.

use std::ops::Range;

/// Numbers below a limit.
#[derive(Clone, Debug)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn new(limit: u32) -> Self {
        Self(vec![0; limit.div_ceil(64) as usize])
    }

    #[inline]
    pub(super) fn set(&mut self, number: u32, is_in: bool) {
        let (word, bit) = (&mut self.0[(number / 64) as usize], 1_u64 << (number % 64));
        if is_in {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    #[inline]
    pub(super) fn has(&self, number: u32) -> bool {
        self.0[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    /// The smallest number of a range.
    #[inline]
    pub(super) fn first(&self, range: &Range<u32>) -> Option<u32> {
        let mut at = range.start;
        while at < range.end {
            let word = self.0[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros();
                return (found < range.end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Set;

    proptest! {
        #[test]
        fn the_first_of_a_range_is_found(numbers in proptest::collection::btree_set(0_u32..200, 0..40), from in 0_u32..200, length in 0_u32..200) {
            let mut set = Set::new(200);
            numbers.iter().for_each(|number| set.set(*number, true));
            let range = from..(from + length).min(200);
            prop_assert_eq!(set.first(&range), numbers.iter().copied().find(|number| range.contains(number)));
            prop_assert!(numbers.iter().all(|number| set.has(*number)));
        }
    }
}
