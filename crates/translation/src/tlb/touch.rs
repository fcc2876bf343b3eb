//! What every form of a set can do: look a tag up, and bring it in.

use std::ops::Range;

use fearless_simd::Simd;

use crate::tlb::ways::Ways;

/// What every form can do.
pub(crate) trait Touch {
    type Set: TouchSet;

    /// All of them, as a value.
    type Lent<'a>: TouchSets
    where
        Self: 'a;

    /// Lends all sets for many lookups; what they share then stays in registers.
    fn lend(&mut self) -> Self::Lent<'_>;

    /// Lends one set for many lookups.
    fn with_set<R>(&mut self, number: usize, run: impl FnOnce(&mut Self::Set) -> R) -> R;
}

/// What all sets can do.
pub(crate) trait TouchSets: Sized {
    /// Those of a range, numbered from 0. A compiler then sees that a masked number is one of them.
    fn range(self, range: Range<usize>) -> Self;

    /// Looks a tag up in a set and brings it in if it is not there; was it?
    fn touch<S: Simd>(&mut self, simd: S, set: usize, tag: u32) -> bool;
}

impl<T: TouchSet> TouchSets for &mut [T] {
    #[inline(always)]
    fn range(self, range: Range<usize>) -> Self {
        &mut self[range]
    }

    #[inline(always)]
    fn touch<S: Simd>(&mut self, simd: S, set: usize, tag: u32) -> bool {
        self[set].touch(simd, tag)
    }
}

pub(crate) trait TouchSet<T = u32> {
    /// Looks a tag up and brings it in if it is not there; was it?
    fn touch<S: Simd>(&mut self, simd: S, tag: T) -> bool;
}

impl<T: Copy + PartialEq> TouchSet<T> for Ways<T> {
    fn touch<S: Simd>(&mut self, _: S, tag: T) -> bool {
        self.access(tag)
    }
}

impl<T: TouchSet> Touch for Vec<T> {
    type Set = T;
    type Lent<'a>
        = &'a mut [T]
    where
        T: 'a;

    #[inline(always)]
    fn lend(&mut self) -> &mut [T] {
        self
    }

    /// As a value of its own, so that what of it fits stays in registers until then.
    #[inline(always)]
    fn with_set<R>(&mut self, number: usize, run: impl FnOnce(&mut T) -> R) -> R {
        let mut set = self.swap_remove(number);
        let result = run(&mut set);
        self.push(set);
        let last = self.len() - 1;
        self.swap(number, last);
        result
    }
}
