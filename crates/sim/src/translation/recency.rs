//! Exact LRU: each set is a vector of tags in order of use, the latest first, searched and shifted four tags at a time.

use wide::i32x4;

/// Sets of up to `4 * V` ways. The tag 0 stands for an empty place.
#[derive(Clone, Debug)]
pub(super) struct Recency<const V: usize> {
    ways: u32,
    sets: Vec<[i32x4; V]>,
}

const LANES: [i32x4; 32] = {
    let mut lanes = [i32x4::new([0; 4]); 32];
    let mut at = 0;
    while at < 32 {
        let first = 4 * at as i32;
        lanes[at] = i32x4::new([first, first + 1, first + 2, first + 3]);
        at += 1;
    }
    lanes
};

impl<const V: usize> Recency<V> {
    /// Empty sets; `ways` is 1 to `4 * V`.
    pub(super) fn new(sets: u32, ways: u32) -> Self {
        debug_assert!((1..=4 * V as u32).contains(&ways));
        Self {
            ways,
            sets: vec![[i32x4::ZERO; V]; sets as usize],
        }
    }

    /// Looks a tag up in a set and makes it the latest there; was it held?
    #[inline(always)]
    pub(super) fn touch(&mut self, set: usize, tag: u32) -> bool {
        let (last, place) = (self.ways - 1, &mut self.sets[set]);
        let found = find(place, tag);
        let at = found.unwrap_or(last);
        // Behind the place of the tag nothing moves; in short sets it costs less not to look.
        let parts = if V > 8 { at as usize / 4 + 1 } else { V };
        let at = i32x4::splat(at as i32);
        let mut carried = tag as i32;
        for (part, lane) in place[..parts].iter_mut().zip(LANES) {
            let lanes = part.to_array();
            let shifted = i32x4::new([carried, lanes[0], lanes[1], lanes[2]]);
            carried = lanes[3];
            *part = lane.simd_gt(at).bitselect(*part, shifted);
        }
        found.is_some()
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

/// The first place of a tag.
#[inline(always)]
fn find<const V: usize>(set: &[i32x4; V], tag: u32) -> Option<u32> {
    let tag = i32x4::splat(tag as i32);
    if V > 8 {
        let part = |part: usize| set[part].simd_eq(tag).to_bitmask();
        return (0..V).find_map(|at| (part(at) != 0).then(|| 4 * at as u32 + part(at).trailing_zeros()));
    }
    let mut held = 0;
    for (part, tags) in set.iter().enumerate() {
        held |= tags.simd_eq(tag).to_bitmask() << (4 * part);
    }
    (held != 0).then(|| held.trailing_zeros())
}
