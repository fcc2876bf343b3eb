//! Exact LRU of small sets: a vector of tags in order of use, the latest first, compared and moved all at once.
//!
//! One vector is as wide as the machine has them (AVX-512, AVX2, SSE2, NEON), which is looked up when the program runs.

use std::ops::Range;

use fearless_simd::{Simd, mask32x4, mask32x8, mask32x16, prelude::*, u32x4, u32x8, u32x16};

use crate::tlb::touch::{Touch, TouchSet, TouchSets};

/// One set. The tag 0 stands for an empty place.
pub(crate) trait Order: Copy {
    /// Nothing is held.
    const EMPTY: Self;

    /// Looks a tag up and makes it the latest; was it held?
    fn touch<S: Simd>(&mut self, simd: S, ways: &Places<Self>, tag: u32) -> bool;

    /// The tags, the latest first.
    fn tags(&mut self) -> &mut [u32];
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<O> {
    /// A bit for the place of the least recently used tag of a full set; none beyond 32.
    last: u32,
    /// All bits of each place that there is. Without this operand a compiler makes a masked store of what steps back and what stays; the next
    /// load of the same set would then wait until that store has left the core.
    all: O,
}

impl<O: Order> Places<O> {
    fn new(ways: u32) -> Self {
        let mut all = O::EMPTY;
        all.tags()[..ways as usize].fill(u32::MAX);
        let last = 1_u32.checked_shl(ways - 1).unwrap_or(0);
        Self { last, all }
    }
}

/// Ones in all places up to the first of `places`.
#[inline(always)]
fn up_to_first(places: u32) -> u32 {
    places ^ places.wrapping_sub(1)
}

/// Are vectors of 16 tags those of the machine?
#[inline(always)]
fn has_wide<S: Simd>(_: S) -> bool {
    <S::u32s as SimdBase<S>>::LEN == 16
}

macro_rules! order {
    ($name:ident, $tags:literal, $align:literal, $vector:ident, $mask:ident) => {
        #[doc = concat!("A set of at most ", stringify!($tags), " ways in one vector.")]
        #[derive(Clone, Copy, Debug)]
        #[repr(align($align))]
        pub(crate) struct $name([u32; $tags]);

        impl Order for $name {
            const EMPTY: Self = Self([0; $tags]);

            #[inline(always)]
            fn touch<S: Simd>(&mut self, simd: S, ways: &Places<Self>, tag: u32) -> bool {
                let (old, tag) = ($vector::load_array_ref(simd, &self.0), $vector::splat(simd, tag));
                let all = $vector::load_array_ref(simd, &ways.all.0);
                if has_wide(simd) {
                    // Where a tag can be taken out in one step, that is faster than to find its place.
                    let differ = old.simd_ne(tag);
                    let pushed = tag.slide::<{ $tags - 1 }>(old.compress(differ));
                    (pushed & all).store_array(&mut self.0);
                    return !differ.all_true();
                }
                let held = old.simd_eq(tag).to_bitmask() as u32;
                // What is not held goes in front of all ways, as if it had been in the last one: no branch on the outcome.
                let steps_back = $mask::from_bitmask(simd, up_to_first(held | ways.last).into());
                let pushed = tag.slide::<{ $tags - 1 }>(old);
                steps_back.select(pushed, old & all).store_array(&mut self.0);
                held != 0
            }

            fn tags(&mut self) -> &mut [u32] {
                &mut self.0
            }
        }
    };
}

order!(Four, 4, 16, u32x4, mask32x4);
order!(Eight, 8, 32, u32x8, mask32x8);
order!(Sixteen, 16, 64, u32x16, mask32x16);

/// A row in which what came before the tag has stepped back.
#[inline(always)]
fn stepped_back<S: Simd>(simd: S, held: mask32x16<S>, pushed: u32x16<S>, stays: u32x16<S>) -> u32x16<S> {
    let steps_back = mask32x16::from_bitmask(simd, up_to_first(held.to_bitmask() as u32).into());
    steps_back.select(pushed, stays)
}

/// A set of at most 16 ways in each of its rows.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Rows<const N: usize>([[u32; 16]; N]);

impl<const N: usize> Order for Rows<N> {
    const EMPTY: Self = Self([[0; 16]; N]);

    /// A miss has a branch of its own: it moves everything, and need not wait to learn where the tag was.
    #[inline(always)]
    fn touch<S: Simd>(&mut self, simd: S, ways: &Places<Self>, tag: u32) -> bool {
        let tag = u32x16::splat(simd, tag);
        let old = self.0.each_ref().map(|row| u32x16::load_array_ref(simd, row));
        let all = ways.all.0.each_ref().map(|row| u32x16::load_array_ref(simd, row));
        let held = old[0].simd_eq(tag);
        let held = old.iter().fold(held, |held, row| held | row.simd_eq(tag));
        let is_held = held.any_true();
        let mut before = tag;
        for row in 0..N {
            let pushed = before.slide::<15>(old[row]);
            before = old[row];
            if !is_held {
                (pushed & all[row]).store_array(&mut self.0[row]);
                continue;
            }
            let held = old[row].simd_eq(tag);
            stepped_back(simd, held, pushed, old[row] & all[row]).store_array(&mut self.0[row]);
            if held.any_true() {
                break;
            }
        }
        is_held
    }

    fn tags(&mut self) -> &mut [u32] {
        self.0.as_flattened_mut()
    }
}

/// Sets of one form.
#[derive(Clone, Debug)]
pub(crate) struct Recency<O> {
    ways: Places<O>,
    sets: Vec<O>,
}

/// The same while they are lent.
#[derive(Debug)]
pub(crate) struct LentSets<'a, O> {
    ways: Places<O>,
    sets: &'a mut [O],
}

impl<O: Order> TouchSets for LentSets<'_, O> {
    #[inline(always)]
    fn range(self, range: Range<usize>) -> Self {
        let sets = &mut self.sets[range];
        Self { sets, ..self }
    }

    #[inline(always)]
    fn touch<S: Simd>(&mut self, simd: S, set: usize, tag: u32) -> bool {
        self.sets[set].touch(simd, &self.ways, tag)
    }
}

/// One set, with what it needs to know of its ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered<O> {
    ways: Places<O>,
    order: O,
}

impl<O: Order> TouchSet for Ordered<O> {
    #[inline(always)]
    fn touch<S: Simd>(&mut self, simd: S, tag: u32) -> bool {
        self.order.touch(simd, &self.ways, tag)
    }
}

impl<O: Order> Touch for Recency<O> {
    type Set = Ordered<O>;
    type Lent<'a>
        = LentSets<'a, O>
    where
        O: 'a;

    #[inline(always)]
    fn lend(&mut self) -> LentSets<'_, O> {
        LentSets {
            ways: self.ways,
            sets: &mut self.sets,
        }
    }

    /// The set stays in registers until then.
    #[inline(always)]
    fn with_set<R>(&mut self, number: usize, run: impl FnOnce(&mut Ordered<O>) -> R) -> R {
        let (ways, order) = (self.ways, self.sets[number]);
        let mut set = Ordered { ways, order };
        let result = run(&mut set);
        self.sets[number] = set.order;
        result
    }
}

impl<O: Order> Recency<O> {
    pub(crate) fn new(sets: u32, ways: u32) -> Self {
        Self {
            ways: Places::new(ways),
            sets: vec![O::EMPTY; sets as usize],
        }
    }

    /// Drops the tags that are to go; the others keep their order.
    pub(crate) fn drop_if(&mut self, goes: impl Fn(u32) -> bool) {
        let goes = |tag: u32| tag != 0 && goes(tag);
        for set in &mut self.sets {
            let tags = set.tags();
            if !tags.iter().any(|&tag| goes(tag)) {
                continue;
            }
            let mut kept = 0;
            for place in 0..tags.len() {
                if !goes(tags[place]) {
                    tags[kept] = tags[place];
                    kept += 1;
                }
            }
            tags[kept..].fill(0);
        }
    }
}
