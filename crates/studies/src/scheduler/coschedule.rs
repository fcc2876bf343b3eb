//! Relaxed co-scheduling: a virtual CPU that runs while another one of its machine waits may be ahead by a limit, and stops there.

use super::Ns;
use super::engine::{Engine, NEVER};
use super::world::State;

impl Engine<'_> {
    /// How far a world is ahead of those of its machine that wait for a CPU; none if none waits, or if it does not matter.
    fn ahead(&self, id: u32) -> Option<(Ns, Ns)> {
        let limit = self.scenario.skew_limit_ns?;
        let world = &self.worlds[id as usize];
        let machine = self.machines[world.vm as usize].clone();
        if machine.len() < 2 {
            return None;
        }
        let own = world.delay(self.now);
        let others = machine.map(|other| &self.worlds[other as usize]);
        let waits = others.filter(|other| other.state == State::Ready);
        let most = waits.map(|other| other.delay(self.now)).max()?;
        Some((most.saturating_sub(own), limit))
    }

    /// A world begins to wait: running ones of its machine are looked at once they may be too far ahead.
    pub(super) fn watch_skew(&mut self, id: u32) {
        let machine = self.machines[self.worlds[id as usize].vm as usize].clone();
        if self.scenario.skew_limit_ns.is_none() || machine.len() < 2 {
            return;
        }
        for other in machine {
            let world = &self.worlds[other as usize];
            if world.state == State::Running {
                let cpu = world.cpu;
                self.settle(cpu);
                self.watch(cpu, other);
                self.arm(cpu);
            }
        }
    }

    /// Sets when a running world may be too far ahead.
    fn watch(&mut self, cpu: u32, id: u32) {
        let check = self
            .ahead(id)
            .map_or(NEVER, |(ahead, limit)| self.now + limit.saturating_sub(ahead) + 1);
        self.cpus[cpu as usize].check = check;
    }

    /// Stops a world that is too far ahead; else it goes on.
    pub(super) fn check_skew(&mut self, cpu: u32) {
        let id = self.cpus[cpu as usize].world;
        if self.ahead(id).is_some_and(|(ahead, limit)| ahead > limit) {
            let world = &mut self.worlds[id as usize];
            world.enter(State::Costopped, self.now);
            self.costopped[world.vm as usize] += 1;
            return self.next(cpu);
        }
        self.watch(cpu, id);
        self.arm(cpu);
    }

    /// A world runs again: those that waited for it may go on.
    pub(super) fn started(&mut self, id: u32) {
        let vm = self.worlds[id as usize].vm as usize;
        if self.costopped[vm] > 0 {
            let stopped = self.machines[vm].clone();
            let stopped = stopped.filter(|other| self.worlds[*other as usize].state == State::Costopped);
            self.resumed.extend(stopped);
        }
        if self.scenario.skew_limit_ns.is_some() && self.machines[vm].len() > 1 {
            let cpu = self.worlds[id as usize].cpu;
            self.watch(cpu, id);
            if self.cpus[cpu as usize].check != NEVER {
                self.arm(cpu);
            }
        }
    }

    /// A stopped world is ready again, unless it is still too far ahead. It takes no CPU from the one it waited for.
    pub(super) fn resume(&mut self, id: u32) {
        let is_ahead = self.ahead(id).is_some_and(|(ahead, limit)| ahead > limit);
        if self.worlds[id as usize].state != State::Costopped || is_ahead {
            return;
        }
        let world = &mut self.worlds[id as usize];
        world.enter(State::Ready, self.now);
        self.costopped[world.vm as usize] -= 1;
        match self.choose(id) {
            Some(cpu) => self.start(cpu, id),
            None => self.wait(id),
        }
    }
}
