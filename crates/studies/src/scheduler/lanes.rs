//! Run queues: worlds that wait, in the order of their virtual time; one queue for each CPU and one for each node.

/// Children of a node of the heap.
const ARITY: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    heap: Vec<(u64, u32)>,
    /// The largest virtual time that left it: the now of its worlds.
    pub(super) clock: u64,
}

impl Lane {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The virtual time of the one that is due.
    #[inline]
    pub(super) fn due(&self) -> Option<u64> {
        self.heap.first().map(|(time, _)| *time)
    }

    #[inline]
    pub(super) fn push(&mut self, time: u64, world: u32) {
        self.heap.push((time, world));
        self.rise(self.heap.len() - 1);
    }

    /// Takes the one that is due; or one of the next few that is close behind it and `fits`.
    #[inline]
    pub(super) fn pop(&mut self, slack: u64, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let latest = self.due()?.saturating_add(slack);
        let few = self.heap.iter().take(1 + ARITY);
        let place = few
            .enumerate()
            .find(|(_, (time, world))| *time <= latest && fits(*world))
            .map_or(0, |(place, _)| place);
        let (time, world) = self.take(place);
        self.clock = self.clock.max(time);
        Some(world)
    }

    /// Takes one that has to wait long: for another queue.
    pub(super) fn pop_late(&mut self) -> Option<u32> {
        self.heap.pop().map(|(_, world)| world)
    }

    /// Takes this world out, if it is there.
    pub(super) fn remove(&mut self, world: u32) -> bool {
        let place = self.heap.iter().position(|(_, waiting)| *waiting == world);
        place.map(|place| self.take(place)).is_some()
    }

    fn take(&mut self, place: usize) -> (u64, u32) {
        let taken = self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.sink(place);
            self.rise(place);
        }
        taken
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= self.heap[place] {
                return;
            }
            self.heap.swap(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let first = ARITY * place + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else {
                return;
            };
            if self.heap[place] <= self.heap[least] {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Lane;

    proptest! {
        #[test]
        fn worlds_leave_in_order_and_none_is_lost(times in proptest::collection::vec(0_u64..100, 1..80), gone in 0_u32..80) {
            let mut lane = Lane::default();
            let mut plain: Vec<(u64, u32)> = times.iter().copied().zip(0..).collect();
            plain.iter().for_each(|(time, world)| lane.push(*time, *world));
            prop_assert_eq!(lane.remove(gone), plain.iter().any(|(_, world)| *world == gone));
            plain.retain(|(_, world)| *world != gone);
            plain.sort_unstable();
            let left: Vec<u32> = std::iter::from_fn(|| lane.pop(0, |_| false)).collect();
            prop_assert_eq!(left, plain.iter().map(|(_, world)| *world).collect::<Vec<_>>());
            prop_assert!(lane.is_empty());
        }
    }

    #[test]
    fn one_that_fits_goes_before_one_that_is_hardly_earlier() {
        let mut lane = Lane::default();
        [(10, 1), (12, 2), (40, 3)]
            .iter()
            .for_each(|(time, world)| lane.push(*time, *world));
        assert_eq!(lane.pop(5, |world| world != 1), Some(2));
        assert_eq!(lane.pop(5, |world| world == 3), Some(1), "30 later is too late");
        assert_eq!(lane.pop_late(), Some(3));
    }
}
