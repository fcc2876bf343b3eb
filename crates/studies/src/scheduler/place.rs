//! Where a world runs next: the choice of an idle CPU, and what idle CPUs take from busy ones.

use std::collections::BTreeSet;
use std::ops::Range;

use super::engine::Engine;
use super::policy::Policy;
use super::world::NONE;

impl Engine<'_> {
    /// An idle CPU for a world, if there is one where it may run.
    pub(super) fn choose(&mut self, id: u32) -> Option<u32> {
        if let Some(cpu) = self.seen(id) {
            return Some(cpu);
        }
        let lane = self.worlds[id as usize].lane;
        let node = lane.checked_sub(self.cpus.len() as u32);
        match node {
            Some(node) => {
                let size = self.topology.of_node();
                self.near(id, &(node * size..(node + 1) * size))
            }
            None if self.scenario.policy == Policy::LinuxLike && Some(id) != self.console => self.anywhere(id),
            None => (self.cpus[lane as usize].world == NONE).then_some(lane),
        }
    }

    /// Where it was seen, if that core is idle; else where it is.
    fn seen(&mut self, id: u32) -> Option<u32> {
        let world = &mut self.worlds[id as usize];
        let (seen, last) = (world.seen_cpu()?, world.cpu);
        let is_free = |cpu: u32| {
            cpu != NONE && self.idle.contains(&cpu) && self.whole.contains(&self.topology.core_around(cpu).start)
        };
        [seen, last].into_iter().find(|cpu| is_free(*cpu))
    }

    /// The queue moves with the world.
    fn anywhere(&mut self, id: u32) -> Option<u32> {
        let lane = self.worlds[id as usize].lane;
        if self.worlds[id as usize].cpu == NONE && self.idle.contains(&lane) {
            return Some(lane);
        }
        let all = 0..self.cpus.len() as u32;
        let node = self.topology.node_around(lane);
        let cpu = self.near(id, &node).or_else(|| self.near(id, &all))?;
        self.change_lane(id, cpu);
        Some(cpu)
    }

    /// An idle CPU of a range: the last one or its sibling, a whole core nearby, a whole core, any.
    fn near(&mut self, id: u32, range: &Range<u32>) -> Option<u32> {
        let last = self.worlds[id as usize].cpu;
        if last == NONE || !range.contains(&last) {
            return first(&self.whole, range).or_else(|| first(&self.idle, range));
        }
        let (core, socket) = (self.topology.core_around(last), self.topology.socket_around(last));
        let is_idle = self.idle.contains(&last);
        if is_idle && self.whole.contains(&core.start) {
            let policy = self.scenario.policy;
            let hops = policy.is_sibling_free() && core.len() > 1 && {
                let parts = self.scenario.sibling_chance;
                self.worlds[id as usize].chance.is(parts)
            };
            return Some(if hops {
                core.start + (last + 1 - core.start) % core.len() as u32
            } else {
                last
            });
        }
        if is_idle && self.scenario.policy == Policy::LinuxLike {
            return Some(last);
        }
        let whole = first(&self.whole, &socket).or_else(|| first(&self.whole, range));
        let whole = whole.filter(|cpu| range.contains(cpu));
        whole
            .or_else(|| is_idle.then_some(last))
            .or_else(|| first(&self.idle, &core))
            .or_else(|| first(&self.idle, &socket))
            .or_else(|| first(&self.idle, range))
    }

    /// Another queue: virtual time is counted from that queue's now.
    pub(super) fn change_lane(&mut self, id: u32, lane: u32) {
        let world = &mut self.worlds[id as usize];
        if world.lane == lane {
            return;
        }
        let (from, to) = (self.lanes.get(world.lane as usize), &self.lanes[lane as usize]);
        let before = from.map_or(0, |from| from.clock);
        world.vtime = (world.vtime + to.clock).saturating_sub(before);
        world.lane = lane;
    }

    /// An idle CPU takes a world that waits: from the longest queue of its socket, its node, the machine.
    pub(super) fn steal(&mut self, cpu: u32) -> Option<u32> {
        let (socket, node) = (self.topology.socket_around(cpu), self.topology.node_around(cpu));
        for range in [socket, node, 0..self.cpus.len() as u32] {
            let longest = range.max_by_key(|lane| (self.lanes[*lane as usize].len(), std::cmp::Reverse(*lane)))?;
            if let Some(world) = self.pull(longest, cpu) {
                return Some(world);
            }
        }
        None
    }

    /// Takes a world out of a queue for another CPU. The console never waits in one.
    fn pull(&mut self, from: u32, to: u32) -> Option<u32> {
        let world = self.lanes[from as usize].pop_late()?;
        self.waiting -= 1;
        self.change_lane(world, to);
        Some(world)
    }

    /// Evens out the lengths of queues, as the kernel does every few milliseconds. One world too many has no better place; it moves on
    /// after a while, so that all have their turn with a CPU of their own.
    pub(super) fn even_out(&mut self) {
        for _ in 0..self.cpus.len() {
            let all = 0..self.cpus.len() as u32;
            let Some(from) = all.max_by_key(|lane| (self.queued(*lane), std::cmp::Reverse(*lane))) else {
                return;
            };
            let to = self.shortest_after(from);
            let is_over = self.queued(from) >= self.queued(to) + 2;
            if !is_over && !self.is_stuck(from, to) {
                return;
            }
            let Some(world) = self.pull(from, to) else { return };
            self.place(world);
            if !is_over {
                let mean = 2 * self.scenario.quantum_ns;
                let wait = self.worlds[world as usize].chance.exponential(mean);
                self.uneven_until = self.now + wait;
                return;
            }
        }
    }

    /// Worlds of a CPU, with the one that runs.
    fn queued(&self, lane: u32) -> usize {
        self.lanes[lane as usize].len() + usize::from(self.cpus[lane as usize].world != NONE)
    }

    /// Of the shortest queues the next one behind this, so that each has its turn.
    fn shortest_after(&self, from: u32) -> u32 {
        let count = self.cpus.len() as u32;
        let others = (1..count).map(|step| (from + step) % count);
        others.min_by_key(|lane| self.queued(*lane)).unwrap_or(from)
    }

    /// Has a world waited long enough where every other CPU has one less?
    fn is_stuck(&self, from: u32, to: u32) -> bool {
        self.queued(from) > self.queued(to) && self.now >= self.uneven_until
    }
}

/// Puts a number into a set, or takes it out.
pub(super) fn put(set: &mut BTreeSet<u32>, number: u32, is_in: bool) {
    if is_in {
        set.insert(number);
    } else {
        set.remove(&number);
    }
}

/// The smallest number of a range that is in the set.
fn first(set: &BTreeSet<u32>, range: &Range<u32>) -> Option<u32> {
    set.range(range.clone()).next().copied()
}
