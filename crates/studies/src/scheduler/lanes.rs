//! Run queues: worlds that wait, in the order of their virtual time; one queue for each CPU and one for each node.

use std::collections::BTreeSet;

/// Of the worlds that are close behind the one that is due, so many are looked at.
const LOOKED_AT: usize = 5;

#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    queue: BTreeSet<(u64, u32)>,
    /// The largest virtual time that left it: the now of its worlds.
    pub(super) clock: u64,
}

impl Lane {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The virtual time of the one that is due.
    pub(super) fn due(&self) -> Option<u64> {
        self.queue.first().map(|(time, _)| *time)
    }

    pub(super) fn push(&mut self, time: u64, world: u32) {
        self.queue.insert((time, world));
    }

    /// Takes the one that is due; or one of the next few that is close behind it and `fits`.
    pub(super) fn pop(&mut self, slack: u64, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let latest = self.due()?.saturating_add(slack);
        let few = self.queue.iter().take(LOOKED_AT);
        let mut close = few.take_while(|(time, _)| *time <= latest);
        let fitting = close.find(|(_, world)| fits(*world));
        let taken = *fitting.or(self.queue.first())?;
        self.queue.remove(&taken);
        self.clock = self.clock.max(taken.0);
        Some(taken.1)
    }

    /// Takes the one that has to wait longest: for another queue.
    pub(super) fn pop_late(&mut self) -> Option<u32> {
        self.queue.pop_last().map(|(_, world)| world)
    }

    /// Takes this world out, if it is there.
    pub(super) fn remove(&mut self, time: u64, world: u32) -> bool {
        self.queue.remove(&(time, world))
    }
}

#[cfg(test)]
mod tests {
    use super::Lane;

    #[test]
    fn worlds_leave_in_the_order_of_their_times() {
        let mut lane = Lane::default();
        [(7, 1), (3, 2), (7, 0), (5, 4)]
            .iter()
            .for_each(|(time, world)| lane.push(*time, *world));
        assert!(lane.remove(5, 4) && !lane.remove(5, 4));
        let left: Vec<u32> = std::iter::from_fn(|| lane.pop(0, |_| false)).collect();
        assert_eq!((left, lane.clock), (vec![2, 0, 1], 7));
        assert!(lane.is_empty());
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
