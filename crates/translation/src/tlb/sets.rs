//! The sets of an associative array under LRU replacement, searched way by way.

/// The way that holds a tag. Eight are compared at a time without a branch, which a compiler makes vectors of.
#[inline]
fn find<T: Copy + PartialEq>(tags: &[T], tag: T) -> Option<usize> {
    let (eights, rest) = tags.as_chunks::<8>();
    let place = |tags: &[T]| tags.iter().position(|&held| held == tag);
    let holds = |eight: &[T; 8]| eight.iter().fold(false, |holds, &held| holds | (held == tag));
    match eights.iter().position(holds) {
        Some(eight) => place(&eights[eight]).map(|way| 8 * eight + way),
        None => place(rest).map(|way| 8 * eights.len() + way),
    }
}

/// Sets of tags. The default tag stands for an empty way.
#[derive(Clone, Debug)]
pub(crate) struct Sets<T> {
    ways: usize,
    /// Those of each set: the one used last is first, and empty ways are last.
    tags: Vec<T>,
}

impl<T: Copy + Default + PartialEq> Sets<T> {
    pub(crate) fn new(sets: u32, ways: u32) -> Self {
        let (count, ways) = (sets as usize, ways as usize);
        Self {
            ways,
            // Written, where `vec!` leaves zeroes to the kernel: a page that is read before it is written is mapped twice.
            tags: std::iter::repeat_n(T::default(), count * ways).collect(),
        }
    }

    /// Looks a tag up in a set and brings it in if it is not there, in place of the one used longest ago; was it?
    #[inline]
    pub(crate) fn touch(&mut self, set: usize, tag: T) -> bool {
        let tags = &mut self.tags[set * self.ways..][..self.ways];
        if tags.first() == Some(&tag) {
            return true;
        }
        let Some(last) = tags.len().checked_sub(1) else {
            return false;
        };
        let held = find(tags, tag);
        tags.copy_within(..held.unwrap_or(last), 1);
        tags[0] = tag;
        held.is_some()
    }

    /// A set's first and last tags.
    #[inline]
    pub(crate) fn ends(&self, set: usize) -> [Option<&T>; 2] {
        let tags = &self.tags[set * self.ways..][..self.ways];
        [tags.first(), tags.last()]
    }

    /// Drops a tag; the others keep their order.
    pub(crate) fn drop(&mut self, set: usize, tag: T) {
        let tags = &mut self.tags[set * self.ways..][..self.ways];
        if let Some(way) = tags.iter().position(|&held| held == tag) {
            tags[way] = T::default();
            tags[way..].rotate_left(1);
        }
    }

    /// Drops all tags.
    pub(crate) fn flush(&mut self) {
        self.tags.fill(T::default());
    }
}
