//! The events: bursts and quanta end, worlds wake up, and CPUs take the next world.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Ns;
use super::accounts::Accounts;
use super::agenda::Agenda;
use super::lanes::Lane;
use super::policy::Policy;
use super::rates::Rates;
use super::reserve::Reservation;
use super::scenario::Scenario;
use super::topology::Topology;
use super::world::{NONE, State, World};

/// Later than anything.
pub(super) const NEVER: Ns = Ns::MAX;
/// A world that waits is preferred by the CPU that it ran on if it is so close behind the one that is due, in virtual time.
const AFFINITY: u64 = 5_000_000;
/// A world that wakes up takes the place of one that is so far ahead of it, in virtual time.
const PREEMPTS: u64 = 4_000_000;
/// A world that slept long is so far ahead of the others at most, in virtual time.
const CREDIT: u64 = 10_000_000;

#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) world: u32,
    /// Its time is accounted for until then.
    pub(super) since: Ns,
    pub(super) began: Ns,
    pub(super) quantum_end: Ns,
    /// When its world may be too far ahead of others of its machine.
    pub(super) check: Ns,
    pub(super) rate: u32,
    pub(super) busy_siblings: u32,
    /// Does it take worlds from queues of others?
    pub(super) is_open: bool,
    pub(super) busy: Ns,
}

#[derive(Debug)]
pub(super) struct Engine<'a> {
    pub(super) scenario: &'a Scenario,
    /// What the policy uses of the host.
    pub(super) topology: Topology,
    pub(super) now: Ns,
    pub(super) events: u64,
    pub(super) agenda: Agenda,
    pub(super) lanes: Vec<Lane>,
    pub(super) idle: BTreeSet<u32>,
    /// By their first CPU: cores of which all is idle.
    pub(super) whole: BTreeSet<u32>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) worlds: Vec<World>,
    pub(super) console: Option<u32>,
    /// By virtual machine; the console's is the last.
    pub(super) machines: Vec<Range<u32>>,
    /// Virtual CPUs placed, by node.
    pub(super) placed: Vec<u32>,
    /// By virtual machine: time it ran or waited until the last look.
    pub(super) wanted_before: Vec<Ns>,
    pub(super) rates: Rates,
    pub(super) accounts: Accounts,
    /// Worlds that wait in queues.
    pub(super) waiting: usize,
    /// Until then queues that differ by one stay so.
    pub(super) uneven_until: Ns,
    /// By virtual machine: virtual CPUs that wait for others.
    pub(super) costopped: Vec<u32>,
    /// Worlds that may go on.
    pub(super) resumed: Vec<u32>,
    pub(super) reservations: Vec<Reservation>,
}

impl Engine<'_> {
    pub(super) fn run(&mut self, until: Ns) {
        let (cpus, worlds) = (self.cpus.len(), self.worlds.len());
        self.begin();
        while let Some((at, slot)) = self.agenda.first().filter(|(at, _)| *at < until) {
            self.now = at;
            self.events += 1;
            match slot {
                slot if slot < cpus => self.expired(slot as u32),
                slot if slot < cpus + worlds => self.woke((slot - cpus) as u32),
                _ => self.balance(),
            }
            while let Some(world) = self.resumed.pop() {
                self.resume(world);
            }
        }
        self.now = until;
        self.close();
    }

    fn close(&mut self) {
        for cpu in 0..self.cpus.len() as u32 {
            self.settle(cpu);
            self.cut(cpu);
        }
        for world in &mut self.worlds {
            world.enter(world.state, self.now);
        }
    }

    /// A burst or a quantum is over, or a world may be too far ahead.
    fn expired(&mut self, cpu: u32) {
        self.settle(cpu);
        let (now, place) = (self.now, cpu as usize);
        let id = self.cpus[place].world;
        let world = &mut self.worlds[id as usize];
        if world.left == 0 {
            world.issue();
            let sleep = world.chance.exponential(world.load.sleep_ns);
            if sleep > 0 {
                world.enter(State::Asleep, now);
                self.agenda.set(self.cpus.len() + id as usize, now + sleep);
                return self.next(cpu);
            }
        }
        if now >= self.cpus[place].quantum_end {
            return self.turn(cpu);
        }
        if now >= self.cpus[place].check {
            return self.check_skew(cpu);
        }
        self.arm(cpu);
    }

    fn woke(&mut self, id: u32) {
        self.agenda.clear(self.cpus.len() + id as usize);
        let world = &mut self.worlds[id as usize];
        world.enter(State::Ready, self.now);
        let clock = self.lanes[world.lane as usize].clock;
        world.vtime = world.vtime.max(clock.saturating_sub(CREDIT));
        self.place(id);
    }

    /// A quantum is over: the world that is due has its turn.
    fn turn(&mut self, cpu: u32) {
        let (place, now) = (cpu as usize, self.now);
        self.cpus[place].quantum_end = now + self.scenario.quantum_ns;
        let id = self.cpus[place].world;
        if Some(id) == self.console {
            return self.arm(cpu);
        }
        let world = &self.worlds[id as usize];
        if !self.belongs(id, cpu) {
            self.worlds[id as usize].enter(State::Ready, now);
            self.next(cpu);
            return self.place(id);
        }
        let own = &self.lanes[place];
        let shared = self.shared_lane(cpu);
        let is_due = |lane: &Lane| lane.due().is_some_and(|due| due <= world.vtime);
        let is_over = if world.lane == cpu {
            is_due(own)
        } else {
            !own.is_empty() || is_due(&self.lanes[shared])
        };
        let other = if is_over { self.take(cpu) } else { None };
        let Some(other) = other else {
            return self.check_skew(cpu);
        };
        self.worlds[id as usize].enter(State::Ready, now);
        self.wait(id);
        self.start(cpu, other);
    }

    /// Is it where it may be?
    fn belongs(&self, id: u32, cpu: u32) -> bool {
        let lane = self.worlds[id as usize].lane;
        lane == cpu || lane as usize == self.shared_lane(cpu)
    }

    /// The queue of a CPU's node.
    pub(super) fn shared_lane(&self, cpu: u32) -> usize {
        self.cpus.len() + self.topology.node(cpu) as usize
    }

    /// Finds a CPU for a world that is ready, or lets it wait.
    pub(super) fn place(&mut self, id: u32) {
        if let Some(cpu) = self.choose(id) {
            return self.start(cpu, id);
        }
        match self.preempted_by(id) {
            Some(cpu) => self.displace(cpu, id),
            None => self.wait(id),
        }
    }

    /// A CPU whose world is behind in turn, of the queue's own or where the world ran last.
    fn preempted_by(&self, id: u32) -> Option<u32> {
        let world = &self.worlds[id as usize];
        let is_own = (world.lane as usize) < self.cpus.len();
        let cpu = if is_own { world.lane } else { world.cpu };
        let there = self.cpus.get(cpu as usize)?;
        let running = self.worlds.get(there.world as usize)?;
        if Some(there.world) == self.console || !there.is_open && !is_own {
            return None;
        }
        if Some(id) == self.console {
            return Some(cpu);
        }
        let at = running.vtime + running.virtual_time(self.now - there.since);
        (running.lane == world.lane && at > world.vtime + PREEMPTS).then_some(cpu)
    }

    fn displace(&mut self, cpu: u32, id: u32) {
        self.settle(cpu);
        let other = self.cpus[cpu as usize].world;
        self.worlds[other as usize].enter(State::Ready, self.now);
        self.start(cpu, id);
        match self.choose(other) {
            Some(cpu) => self.start(cpu, other),
            None => self.wait(other),
        }
    }

    pub(super) fn wait(&mut self, id: u32) {
        let world = &self.worlds[id as usize];
        self.lanes[world.lane as usize].push(world.vtime, id);
        self.waiting += 1;
        self.watch_skew(id);
    }

    /// A CPU's world has left it: the next one, or none.
    pub(super) fn next(&mut self, cpu: u32) {
        match self.take(cpu) {
            Some(next) => self.start(cpu, next),
            None => {
                self.cut(cpu);
                self.cpus[cpu as usize].world = NONE;
                self.agenda.clear(cpu as usize);
                self.turn_idle(cpu, true);
            }
        }
    }

    /// The world that a CPU runs next: of its own queue, then of its node's, then of others'.
    fn take(&mut self, cpu: u32) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let shared = self.shared_lane(cpu);
        let worlds = &self.worlds;
        let taken = match self.lanes[cpu as usize].pop(0, |_| false) {
            Some(world) => Some(world),
            None if !self.cpus[cpu as usize].is_open => None,
            None => match self.scenario.policy {
                Policy::LinuxLike => return self.steal(cpu),
                Policy::Pinned => None,
                _ => self.lanes[shared].pop(AFFINITY, |world| worlds[world as usize].cpu == cpu),
            },
        };
        self.waiting -= usize::from(taken.is_some());
        taken
    }
}
