//! The sets of one array, with the fastest exact form for their ways and replacement.

use super::linked::{self, Linked};
use super::recency::Recency;
use crate::ways::{Replacement, Ways};

/// What every form can do.
pub(super) trait Touch {
    /// Looks a tag up in a set and brings it in if it is not there; was it?
    fn touch(&mut self, set: usize, tag: u32) -> bool;
}

impl<const V: usize> Touch for Recency<V> {
    #[inline(always)]
    fn touch(&mut self, set: usize, tag: u32) -> bool {
        Self::touch(self, set, tag)
    }
}

impl Touch for Vec<Linked> {
    #[inline(always)]
    fn touch(&mut self, set: usize, tag: u32) -> bool {
        self[set].touch(tag)
    }
}

/// Sets of any policy and any number of ways.
pub(super) type Listed = Vec<Ways<u32>>;

impl Touch for Listed {
    fn touch(&mut self, set: usize, tag: u32) -> bool {
        self[set].access(tag)
    }
}

/// The forms: LRU in vectors of four tags by the number of vectors, LRU of many ways, and all others.
#[derive(Clone, Debug)]
pub(super) enum Sets {
    V1(Recency<1>),
    V2(Recency<2>),
    V3(Recency<3>),
    V4(Recency<4>),
    V5(Recency<5>),
    V6(Recency<6>),
    V7(Recency<7>),
    V8(Recency<8>),
    Linked(Vec<Linked>),
    Listed(Listed),
}

/// Runs an expression with the form at hand.
macro_rules! with_sets {
    ($sets:expr, $name:ident => $body:expr) => {
        match $sets {
            $crate::translation::sets::Sets::V1($name) => $body,
            $crate::translation::sets::Sets::V2($name) => $body,
            $crate::translation::sets::Sets::V3($name) => $body,
            $crate::translation::sets::Sets::V4($name) => $body,
            $crate::translation::sets::Sets::V5($name) => $body,
            $crate::translation::sets::Sets::V6($name) => $body,
            $crate::translation::sets::Sets::V7($name) => $body,
            $crate::translation::sets::Sets::V8($name) => $body,
            $crate::translation::sets::Sets::Linked($name) => $body,
            $crate::translation::sets::Sets::Listed($name) => $body,
        }
    };
}
pub(super) use with_sets;

impl Sets {
    /// Empty sets.
    pub(super) fn new(sets: u32, ways: u32, replacement: Replacement) -> Self {
        match (replacement, ways) {
            (Replacement::Lru, 1..=4) => Self::V1(Recency::new(sets, ways)),
            (Replacement::Lru, 5..=8) => Self::V2(Recency::new(sets, ways)),
            (Replacement::Lru, 9..=12) => Self::V3(Recency::new(sets, ways)),
            (Replacement::Lru, 13..=16) => Self::V4(Recency::new(sets, ways)),
            (Replacement::Lru, 17..=20) => Self::V5(Recency::new(sets, ways)),
            (Replacement::Lru, 21..=24) => Self::V6(Recency::new(sets, ways)),
            (Replacement::Lru, 25..=28) => Self::V7(Recency::new(sets, ways)),
            (Replacement::Lru, 29..=32) => Self::V8(Recency::new(sets, ways)),
            (Replacement::Lru, 33..=linked::MOST) => Self::Linked((0..sets).map(|_| Linked::new(ways)).collect()),
            _ => {
                let set = |number| Ways::new(ways, replacement, u64::from(number));
                Self::Listed((0..sets).map(set).collect())
            }
        }
    }

    /// Looks a tag up in a set and brings it in if it is not there; was it?
    #[inline]
    pub(super) fn touch(&mut self, set: usize, tag: u32) -> bool {
        with_sets!(self, sets => Touch::touch(sets, set, tag))
    }

    /// Drops the tags that are to go.
    pub(super) fn drop_if(&mut self, goes: impl Fn(u32) -> bool) {
        match self {
            Self::Listed(sets) => sets.iter_mut().for_each(|set| set.drop_if(&goes)),
            Self::Linked(sets) => sets.iter_mut().for_each(|set| set.drop_if(&goes)),
            Self::V1(sets) => sets.drop_if(goes),
            Self::V2(sets) => sets.drop_if(goes),
            Self::V3(sets) => sets.drop_if(goes),
            Self::V4(sets) => sets.drop_if(goes),
            Self::V5(sets) => sets.drop_if(goes),
            Self::V6(sets) => sets.drop_if(goes),
            Self::V7(sets) => sets.drop_if(goes),
            Self::V8(sets) => sets.drop_if(goes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Sets;
    use crate::ways::{Replacement, Ways};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn every_form_of_lru_holds_what_a_list_holds(
            ways in prop_oneof![1_u32..=40, Just(64), Just(129), Just(1000)],
            tags in prop::collection::vec((1_u32..1500, 1_u32..1500, any::<bool>()), 1..6000),
            range in prop_oneof![Just(2_u32), 3_u32..60, 60_u32..1500],
        ) {
            let mut sets = Sets::new(3, ways, Replacement::Lru);
            let mut lists: Vec<Ways<u32>> = (0..3).map(|number| Ways::new(ways, Replacement::Lru, number)).collect();
            for (number, (tag, other, is_far)) in tags.into_iter().enumerate() {
                let tag = if is_far { tag | 0x8000_0000 } else { tag % range + 1 };
                let set = other as usize % 3;
                prop_assert_eq!(sets.touch(set, tag), lists[set].access(tag), "{}", number);
                if number % 500 == 499 {
                    let goes = |held: u32| held % 7 == other % 7;
                    sets.drop_if(goes);
                    lists.iter_mut().for_each(|list| list.drop_if(goes));
                }
            }
        }
    }
}
