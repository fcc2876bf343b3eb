//! Exact LRU of small sets: a vector of tags in order of use, the latest first, compared and moved four tags at a time.

use wide::i32x4;

/// Sets of `4 * V - 3` to `4 * V` ways. The tag 0 stands for an empty place.
#[derive(Clone, Debug)]
pub(super) struct Recency<const V: usize> {
    /// The place of the least recently used tag of a full set.
    last: usize,
    sets: Vec<[i32x4; V]>,
}

/// The most ways of a set.
pub(super) const MOST: usize = 32;

/// From this many vectors on, a miss has a branch of its own: it moves everything, and need not wait to learn where the tag was.
const LONG: usize = 6;

impl<const V: usize> Recency<V> {
    /// By a place in a set: ones in all lanes behind it.
    const BEHIND: [[i32x4; V]; MOST] = behind();

    /// Empty sets.
    pub(super) fn new(sets: u32, ways: u32) -> Self {
        debug_assert_eq!(ways.div_ceil(4), V as u32);
        Self {
            last: ways as usize - 1,
            sets: vec![[i32x4::ZERO; V]; sets as usize],
        }
    }

    /// Looks a tag up in a set and makes it the latest there; was it held?
    #[inline(always)]
    pub(super) fn touch(&mut self, set: usize, tag: u32) -> bool {
        let (set, tag) = (&mut self.sets[set], i32x4::splat(tag as i32));
        let old = *set;
        if V == 1 {
            // One vector finds the lanes behind the tag by itself, sooner than a table gives them.
            let held = old[0].simd_eq(tag);
            let behind = step(i32x4::ZERO, held);
            let behind = behind | step(i32x4::ZERO, behind);
            let behind = behind | step(i32x4::ZERO, behind);
            *set = moved(&old, tag, &[behind; V]);
            set[0] &= !Self::BEHIND[self.last % MOST][0];
            return held.to_bitmask() != 0;
        }
        if V >= LONG && !is_held(&old, tag) {
            let (pushed, none) = (pushed(&old, tag), &Self::BEHIND[self.last % MOST]);
            for ((part, &lanes), &none) in set.iter_mut().zip(&pushed).zip(none) {
                *part = lanes & !none;
            }
            return false;
        }
        // What is not held goes in front of all ways, as if it had been in the last one: no branch on the outcome.
        let held = lanes(&old, tag);
        let at = (held | 1 << self.last).trailing_zeros() as usize;
        *set = moved(&old, tag, &Self::BEHIND[at % MOST]);
        held != 0
    }

    /// Drops the tags that are to go; the others keep their order.
    pub(super) fn drop_if(&mut self, goes: impl Fn(u32) -> bool) {
        let goes = |tag: i32| tag != 0 && goes(tag as u32);
        for set in &mut self.sets {
            let tags = set.iter().flat_map(|part| part.to_array());
            if !tags.clone().any(goes) {
                continue;
            }
            let mut kept: Vec<i32> = tags.filter(|&tag| !goes(tag)).collect();
            kept.resize(4 * V, 0);
            for (part, tags) in set.iter_mut().zip(kept.chunks_exact(4)) {
                *part = i32x4::new([tags[0], tags[1], tags[2], tags[3]]);
            }
        }
    }
}

const fn behind<const V: usize>() -> [[i32x4; V]; MOST] {
    let mut table = [[i32x4::new([0; 4]); V]; MOST];
    let mut at = 0;
    while at < MOST {
        let mut part = 0;
        while part < V {
            let first = 4 * part;
            table[at][part] = i32x4::new([
                -((first > at) as i32),
                -((first + 1 > at) as i32),
                -((first + 2 > at) as i32),
                -((first + 3 > at) as i32),
            ]);
            part += 1;
        }
        at += 1;
    }
    table
}

/// A bit for each lane that holds the tag.
#[inline(always)]
fn lanes<const V: usize>(set: &[i32x4; V], tag: i32x4) -> u32 {
    let mut held = 0;
    for (part, tags) in set.iter().enumerate() {
        held |= tags.simd_eq(tag).to_bitmask() << (4 * part);
    }
    held
}

#[inline(always)]
fn is_held<const V: usize>(set: &[i32x4; V], tag: i32x4) -> bool {
    let equal = set.iter().fold(i32x4::ZERO, |equal, tags| equal | tags.simd_eq(tag));
    equal.to_bitmask() != 0
}

/// The set with a tag in front, and all others one step back.
#[inline(always)]
fn pushed<const V: usize>(set: &[i32x4; V], tag: i32x4) -> [i32x4; V] {
    let (mut pushed, mut before) = (*set, tag);
    for part in &mut pushed {
        let lanes = *part;
        *part = step(before, lanes);
        before = lanes;
    }
    pushed
}

/// The same, but tags `behind` the old place of that tag stay.
#[inline(always)]
fn moved<const V: usize>(set: &[i32x4; V], tag: i32x4, behind: &[i32x4; V]) -> [i32x4; V] {
    let mut moved = pushed(set, tag);
    for ((part, &lanes), &behind) in moved.iter_mut().zip(set).zip(behind) {
        *part ^= (*part ^ lanes) & behind;
    }
    moved
}

/// The lanes one step back: the last one of the vector before comes first.
#[inline(always)]
fn step(before: i32x4, lanes: i32x4) -> i32x4 {
    let (before, lanes) = (before.to_array(), lanes.to_array());
    i32x4::new([before[3], lanes[0], lanes[1], lanes[2]])
}
