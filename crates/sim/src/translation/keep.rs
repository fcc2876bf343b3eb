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
    /// Becomes a copy.
    pub(super) fn copy(&mut self, items: &[T]) {
        items.clone_into(&mut self.room);
        self.count = items.len();
    }

    /// Becomes empty.
    pub(super) fn clear(&mut self) {
        self.count = 0;
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

/// A list that is filled anew, with room for all that may come.
pub(super) struct Filling<'a, T> {
    room: &'a mut [T],
    count: &'a mut usize,
}

impl<T: Copy> Kept<T> {
    /// Becomes empty, with room for so many items.
    pub(super) fn filling(&mut self, most: usize, any: T) -> Filling<'_, T> {
        // What is written besides what is kept needs a place, too.
        let room = most + 2;
        if self.room.len() < room {
            self.room.resize(room, any);
        }
        self.count = 0;
        Filling {
            room: &mut self.room,
            count: &mut self.count,
        }
    }
}

impl<T> Filling<'_, T> {
    #[inline(always)]
    pub(super) fn push(&mut self, item: T) {
        self.push_if(true, item);
    }

    /// Without a branch on whether it is kept.
    #[inline(always)]
    pub(super) fn push_if(&mut self, is_kept: bool, item: T) {
        self.room[*self.count] = item;
        *self.count += usize::from(is_kept);
    }

    /// The first so many of two, both of which are written.
    #[inline(always)]
    pub(super) fn push_some(&mut self, many: usize, [first, second]: [T; 2]) {
        self.room[*self.count] = first;
        self.room[*self.count + 1] = second;
        *self.count += many;
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
