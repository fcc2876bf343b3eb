//! The sets of one array, with the fastest exact form for their ways and replacement.

use fearless_simd::Simd;

use crate::tlb::recency::{Eight, Four, Recency, Rows, Sixteen};
use crate::tlb::recent::{self, Recent};
use crate::tlb::touch::{Touch, TouchSets};
use crate::tlb::ways::{Replacement, Ways};

/// The forms: LRU in vectors by the number of tags, LRU of many ways, and all others.
#[derive(Clone, Debug)]
pub(crate) enum Sets {
    Four(Recency<Four>),
    Eight(Recency<Eight>),
    Sixteen(Recency<Sixteen>),
    TwoRows(Recency<Rows<2>>),
    Recent(Vec<Recent<u32>>),
    Listed(Vec<Ways<u32>>),
}

/// Runs an expression with the form at hand.
macro_rules! with_sets {
    ($sets:expr, $name:ident => $body:expr) => {
        match $sets {
            $crate::tlb::sets::Sets::Four($name) => $body,
            $crate::tlb::sets::Sets::Eight($name) => $body,
            $crate::tlb::sets::Sets::Sixteen($name) => $body,
            $crate::tlb::sets::Sets::TwoRows($name) => $body,
            $crate::tlb::sets::Sets::Recent($name) => $body,
            $crate::tlb::sets::Sets::Listed($name) => $body,
        }
    };
}
pub(crate) use with_sets;

impl Sets {
    pub(crate) fn new(sets: u32, ways: u32, replacement: Replacement) -> Self {
        match (replacement, ways) {
            (Replacement::Lru, 1..=4) => Self::Four(Recency::new(sets, ways)),
            (Replacement::Lru, 5..=8) => Self::Eight(Recency::new(sets, ways)),
            (Replacement::Lru, 9..=16) => Self::Sixteen(Recency::new(sets, ways)),
            (Replacement::Lru, 17..=32) => Self::TwoRows(Recency::new(sets, ways)),
            (Replacement::Lru, 33..=recent::MOST) => Self::Recent((0..sets).map(|_| Recent::new(ways)).collect()),
            _ => {
                let set = |number| Ways::new(ways, replacement, u64::from(number));
                Self::Listed((0..sets).map(set).collect())
            }
        }
    }

    /// Looks a tag up in a set and brings it in if it is not there; was it?
    #[inline(always)]
    pub(crate) fn touch<S: Simd>(&mut self, simd: S, set: usize, tag: u32) -> bool {
        with_sets!(self, sets => sets.lend().touch(simd, set, tag))
    }

    /// Drops the tags that are to go.
    pub(crate) fn drop_if(&mut self, goes: impl Fn(u32) -> bool) {
        match self {
            Self::Listed(sets) => sets.iter_mut().for_each(|set| set.drop_if(&goes)),
            Self::Recent(sets) => sets.iter_mut().for_each(|set| set.drop_if(&goes)),
            Self::Four(sets) => sets.drop_if(goes),
            Self::Eight(sets) => sets.drop_if(goes),
            Self::Sixteen(sets) => sets.drop_if(goes),
            Self::TwoRows(sets) => sets.drop_if(goes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use fearless_simd::{Level, dispatch};

    use super::Sets;
    use crate::tlb::touch::TouchSet;
    use crate::tlb::ways::{Replacement, Ways};

    /// The first of some sets.
    #[derive(Debug)]
    struct First(Sets);

    impl TouchSet for First {
        fn touch<S: fearless_simd::Simd>(&mut self, simd: S, tag: u32) -> bool {
            self.0.touch(simd, 0, tag)
        }
    }

    /// One lookup with the widest vectors that a number allows.
    #[cfg(target_arch = "x86_64")]
    fn touch(most: u32, set: &mut impl TouchSet, tag: u32) -> Option<bool> {
        use fearless_simd::Simd;
        let level = Level::new();
        match most {
            128 => level.as_sse2().map(|simd| simd.vectorize(|| set.touch(simd, tag))),
            256 => level.as_avx2().map(|simd| simd.vectorize(|| set.touch(simd, tag))),
            _ => level.as_avx512().map(|simd| simd.vectorize(|| set.touch(simd, tag))),
        }
    }

    /// What a list holds, in a set of so many ways with vectors of every width.
    #[cfg(target_arch = "x86_64")]
    fn assert_same<T: TouchSet>(ways: u32, new: impl Fn() -> T) {
        for most in [128, 256, 512] {
            let mut set = new();
            let mut list: Ways<u32> = Ways::new(ways, Replacement::Lru, 0);
            let mut chance = crate::random::Chance::new(u64::from(ways));
            for _ in 0..20_000 {
                let tag = 1 + chance.below(u64::from(ways) * 2) as u32;
                let Some(is_held) = touch(most, &mut set, tag) else {
                    break;
                };
                assert_eq!(is_held, list.access(tag), "{ways} ways, {most} bits");
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn vectors_of_every_width_hold_the_same() {
        for ways in [1, 4, 7, 12, 16, 20, 32] {
            assert_same(ways, || First(Sets::new(1, ways, Replacement::Lru)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn every_form_of_lru_holds_what_a_list_holds(
            ways in prop_oneof![1_u32..=140, Just(1000)],
            count in prop_oneof![Just(1_u32), Just(3)],
            tags in prop::collection::vec((1_u32..1500, 1_u32..1500, any::<bool>()), 1..6000),
            range in prop_oneof![Just(2_u32), 3_u32..60, 60_u32..1500],
        ) {
            let mut sets = Sets::new(count, ways, Replacement::Lru);
            let mut lists: Vec<Ways<u32>> = (0..count.into()).map(|number| Ways::new(ways, Replacement::Lru, number)).collect();
            for (number, (tag, other, is_far)) in tags.into_iter().enumerate() {
                let tag = if is_far { tag | 0x8000_0000 } else { tag % range + 1 };
                let set = (other % count) as usize;
                let is_held = dispatch!(Level::new(), simd => sets.touch(simd, set, tag));
                prop_assert_eq!(is_held, lists[set].access(tag), "{}", number);
                if number % 500 == 499 {
                    let goes = |held: u32| held % 7 == other % 7;
                    sets.drop_if(goes);
                    lists.iter_mut().for_each(|list| list.drop_if(goes));
                }
            }
        }
    }
}
