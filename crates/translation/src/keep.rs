//! The items of a list that are to be kept, without a branch on which they are.

use std::ops::Deref;

/// A list that is filled again and again. Its memory stays as it is.
#[derive(Clone, Debug)]
pub(super) struct Kept<T> {
    room: Vec<T>,
    count: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        let (room, count) = (Vec::new(), 0);
        Self { room, count }
    }
}

impl<T> Deref for Kept<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.room[..self.count]
    }
}

impl<T> AsMut<[T]> for Kept<T> {
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.room[..self.count]
    }
}

impl<T: Copy> Kept<T> {
    pub(super) fn copy(&mut self, items: &[T]) {
        items.clone_into(&mut self.room);
        self.count = items.len();
    }

    /// Becomes these.
    pub(super) fn fill_with(&mut self, items: impl Iterator<Item = T>) {
        self.room.clear();
        self.room.extend(items);
        self.count = self.room.len();
    }

    /// Room for so many items, of which `fill` writes some and says how many.
    #[inline(always)]
    pub(super) fn refill<E>(
        &mut self,
        most: usize,
        any: T,
        fill: impl FnOnce(&mut [T]) -> Result<usize, E>,
    ) -> Result<(), E> {
        self.count = 0;
        if self.room.len() < most {
            self.room.resize(most, any);
        }
        self.count = fill(&mut self.room[..most])?;
        Ok(())
    }
}

/// Makes `kept` those of `items` for which `stays` is true; it is asked once for each, in their order.
#[inline(always)]
pub(super) fn keep<T: Copy>(items: &[T], kept: &mut Kept<T>, mut stays: impl FnMut(T) -> bool) {
    if kept.room.len() < items.len() {
        items.clone_into(&mut kept.room);
    }
    // Each item is written to the next place, and overwritten by the next one if it goes.
    let room = &mut kept.room[..items.len()];
    let mut count = 0;
    for &item in items {
        let is_kept = stays(item);
        room[count] = item;
        count += usize::from(is_kept);
    }
    kept.count = count;
}
