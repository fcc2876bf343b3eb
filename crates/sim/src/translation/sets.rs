//! The sets of one array, with the fastest exact form for their ways and replacement.

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

/// Sets of any policy and any number of ways.
pub(super) type Listed = Vec<Ways<u32>>;

impl Touch for Listed {
    fn touch(&mut self, set: usize, tag: u32) -> bool {
        self[set].access(tag)
    }
}

/// The forms: LRU in vectors of four tags by the number of vectors, and all others.
#[derive(Clone, Debug)]
pub(super) enum Sets {
    V1(Recency<1>),
    V2(Recency<2>),
    V3(Recency<3>),
    V4(Recency<4>),
    V5(Recency<5>),
    V8(Recency<8>),
    V16(Recency<16>),
    V24(Recency<24>),
    V32(Recency<32>),
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
            $crate::translation::sets::Sets::V8($name) => $body,
            $crate::translation::sets::Sets::V16($name) => $body,
            $crate::translation::sets::Sets::V24($name) => $body,
            $crate::translation::sets::Sets::V32($name) => $body,
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
            (Replacement::Lru, 21..=32) => Self::V8(Recency::new(sets, ways)),
            (Replacement::Lru, 33..=64) => Self::V16(Recency::new(sets, ways)),
            (Replacement::Lru, 65..=96) => Self::V24(Recency::new(sets, ways)),
            (Replacement::Lru, 97..=128) => Self::V32(Recency::new(sets, ways)),
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
            Self::V1(sets) => sets.drop_if(goes),
            Self::V2(sets) => sets.drop_if(goes),
            Self::V3(sets) => sets.drop_if(goes),
            Self::V4(sets) => sets.drop_if(goes),
            Self::V5(sets) => sets.drop_if(goes),
            Self::V8(sets) => sets.drop_if(goes),
            Self::V16(sets) => sets.drop_if(goes),
            Self::V24(sets) => sets.drop_if(goes),
            Self::V32(sets) => sets.drop_if(goes),
        }
    }
}
