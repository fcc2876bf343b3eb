//! One CPU: a world begins on it, its time is accounted for, and its siblings become slower or faster.

use super::Ns;
use super::engine::{Engine, NEVER};
use super::place::put;
use super::world::{NONE, State};

impl Engine<'_> {
    /// A world begins to run on a CPU that is idle, or whose world has left.
    pub(super) fn start(&mut self, cpu: u32, id: u32) {
        self.cut(cpu);
        let (now, scenario) = (self.now, self.scenario);
        let (costs, quantum) = (&scenario.costs, scenario.quantum_ns);
        let world = &mut self.worlds[id as usize];
        self.accounts.waited(world.vm, now - world.since);
        world.enter(State::Running, now);
        if world.cpu != cpu && world.cpu != NONE {
            let kind = self.topology.kind(world.cpu, cpu) as usize;
            world.totals.moves[kind] += 1;
            world.cold = world.cold.max(costs.warm_up_ns[kind]);
        } else if world.cpu == cpu && costs.displaced_ns > 0 {
            let others = (self.cpus[cpu as usize].busy - world.left_at).min(quantum);
            let part = u128::from(costs.displaced_ns) * u128::from(others) / u128::from(quantum);
            world.cold = world.cold.max(part as Ns);
        }
        world.cpu = cpu;
        // Also if it leaves again at this very moment.
        world.left_at = self.cpus[cpu as usize].busy;
        let lane = &mut self.lanes[world.lane as usize];
        lane.clock = lane.clock.max(world.vtime);
        let there = &mut self.cpus[cpu as usize];
        let was_idle = there.world == NONE;
        (there.world, there.since, there.began) = (id, now, now);
        (there.quantum_end, there.check) = (now + quantum, NEVER);
        if was_idle {
            self.turn_idle(cpu, false);
        }
        self.refresh(cpu);
        self.started(id);
    }

    /// Sets how fast a CPU works now, and when it is next looked at.
    pub(super) fn refresh(&mut self, cpu: u32) {
        let there = &self.cpus[cpu as usize];
        let node = self.topology.node(cpu);
        let is_remote = self.worlds[there.world as usize].memory != node;
        let rate = self.rates.of(node, is_remote, there.busy_siblings);
        self.cpus[cpu as usize].rate = rate;
        self.arm(cpu);
    }

    /// Its time has to be accounted for before.
    pub(super) fn arm(&mut self, cpu: u32) {
        let there = &self.cpus[cpu as usize];
        let needs = self.worlds[there.world as usize].needs(there.rate);
        let at = (self.now + needs).min(there.quantum_end).min(there.check);
        self.agenda.set(cpu as usize, at);
    }

    /// Accounts for a CPU's time until now.
    pub(super) fn settle(&mut self, cpu: u32) {
        let there = &mut self.cpus[cpu as usize];
        let time = self.now - there.since;
        if there.world == NONE || time == 0 {
            return;
        }
        there.since = self.now;
        there.busy += time;
        let world = &mut self.worlds[there.world as usize];
        world.left_at = there.busy;
        world.run(time, there.rate);
        self.accounts.ran(there.world, cpu, time);
    }

    /// Ends a slice of the chart.
    pub(super) fn cut(&mut self, cpu: u32) {
        let there = &self.cpus[cpu as usize];
        if there.world != NONE {
            self.accounts.slice(cpu, there.world, there.began, self.now);
        }
    }

    /// A CPU becomes idle or busy: its siblings are slower or faster now.
    pub(super) fn turn_idle(&mut self, cpu: u32, is_idle: bool) {
        let core = self.topology.core_around(cpu);
        let there = &self.cpus[cpu as usize];
        if there.is_open {
            put(&mut self.idle, cpu, is_idle);
            put(&mut self.whole, core.start, is_idle && there.busy_siblings == 0);
        }
        let sees = self.rates.see_siblings();
        for sibling in core.filter(|sibling| *sibling != cpu) {
            let there = &mut self.cpus[sibling as usize];
            there.busy_siblings = if is_idle {
                there.busy_siblings - 1
            } else {
                there.busy_siblings + 1
            };
            if sees && there.world != NONE {
                self.settle(sibling);
                self.refresh(sibling);
            }
        }
    }
}
