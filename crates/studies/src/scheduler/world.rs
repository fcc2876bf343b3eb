//! A world: one virtual CPU or the console, with what it has to do and what became of its time.

use super::Ns;
use super::chance::Chance;
use super::rates::POINT;
use super::scenario::{Demand, Load};

/// No CPU, no world.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Asleep,
    Ready,
    Running,
    /// It was ahead of the other virtual CPUs of its machine, and waits for them.
    Costopped,
}

/// Time by state, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) run: Ns,
    pub(super) ready: Ns,
    pub(super) asleep: Ns,
    pub(super) costopped: Ns,
    /// Of `run`: until caches were warm.
    pub(super) warming: Ns,
    /// Work done, and work that was to be done by all bursts so far (of `Demand::Work`); nanoseconds at full rate times 65,536.
    pub(super) work: u64,
    pub(super) issued: u64,
    pub(super) moves: [u64; 4],
}

#[derive(Debug)]
pub(super) struct World {
    /// Its machine's place; the console's is behind all of them.
    pub(super) vm: u32,
    pub(super) state: State,
    /// Where it runs, or ran last.
    pub(super) cpu: u32,
    /// The queue it waits in.
    pub(super) lane: u32,
    /// The node that its memory is on.
    pub(super) memory: u32,
    /// Virtual time passes so fast, with 32 bits behind the point: slower for those with more shares.
    pub(super) stride: u64,
    pub(super) vtime: u64,
    /// When its state began.
    pub(super) since: Ns,
    /// How long its CPU had been busy in all when it last ran there.
    pub(super) left_at: Ns,
    /// Time until its caches are warm.
    pub(super) cold: Ns,
    /// What is left of its burst: time, or work.
    pub(super) left: u64,
    pub(super) load: Load,
    pub(super) chance: Chance,
    pub(super) totals: Totals,
    /// Where it was seen, as weights that add up.
    pub(super) seen: Vec<(u32, u64)>,
}

/// Shares of a world whose virtual time passes as fast as time.
const USUAL_SHARES: u64 = 1000;

impl World {
    pub(super) fn new(vm: u32, shares: u64, load: Load, chance: Chance) -> Self {
        let mut world = Self {
            vm,
            state: State::Asleep,
            cpu: NONE,
            lane: NONE,
            memory: 0,
            stride: ((USUAL_SHARES << 32) / shares.max(1)).max(1),
            vtime: 0,
            since: 0,
            left_at: 0,
            cold: 0,
            left: 0,
            load,
            chance,
            totals: Totals::default(),
            seen: Vec::new(),
        };
        world.issue();
        world
    }

    /// Begins the next burst.
    #[inline]
    pub(super) fn issue(&mut self) {
        let burst = self.chance.exponential(self.load.burst_ns);
        self.left = match self.load.demand {
            Demand::Time => burst,
            Demand::Work => burst << POINT,
        };
        self.totals.issued += self.left;
    }

    /// The virtual time that so much time takes.
    #[inline]
    pub(super) fn virtual_time(&self, time: Ns) -> u64 {
        ((u128::from(time) * u128::from(self.stride)) >> 32) as u64
    }

    /// Runs for so long at that rate.
    #[inline]
    pub(super) fn run(&mut self, time: Ns, rate: u32) {
        let warming = time.min(self.cold);
        self.cold -= warming;
        let work = (time - warming) * u64::from(rate);
        self.vtime += self.virtual_time(time);
        let totals = &mut self.totals;
        totals.run += time;
        totals.warming += warming;
        match self.load.demand {
            Demand::Time => {
                self.left = self.left.saturating_sub(time);
                totals.work += work;
            }
            Demand::Work => {
                let work = work.min(self.left);
                self.left -= work;
                totals.work += work;
            }
        }
    }

    /// Time on a CPU of that rate until its burst is over.
    #[inline]
    pub(super) fn needs(&self, rate: u32) -> Ns {
        match self.load.demand {
            Demand::Time => self.left,
            Demand::Work => self.cold + self.left.div_ceil(u64::from(rate.max(1))),
        }
    }

    /// Enters another state.
    #[inline]
    pub(super) fn enter(&mut self, state: State, now: Ns) {
        let time = now - self.since;
        self.since = now;
        match self.state {
            State::Asleep => self.totals.asleep += time,
            State::Ready => self.totals.ready += time,
            State::Costopped => self.totals.costopped += time,
            // Counted as it runs.
            State::Running => {}
        }
        self.state = state;
    }

    /// Time for which it was kept from running.
    pub(super) fn delay(&self, now: Ns) -> Ns {
        let waits = matches!(self.state, State::Ready | State::Costopped);
        let current = if waits { now - self.since } else { 0 };
        self.totals.ready + self.totals.costopped + current
    }

    /// A CPU that it was seen on, by chance; none if nothing was seen.
    pub(super) fn seen_cpu(&mut self) -> Option<u32> {
        let all = self.seen.last()?.1;
        let drawn = ((u128::from(self.chance.bits()) * u128::from(all)) >> 64) as u64;
        self.seen.iter().find(|(_, until)| drawn < *until).map(|(cpu, _)| *cpu)
    }
}
