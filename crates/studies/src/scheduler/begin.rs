//! How a simulation begins: worlds, homes, cores of their own, and the first wake-ups.

use std::collections::BTreeSet;
use std::ops::Range;

use super::accounts::Accounts;
use super::agenda::Agenda;
use super::chance::Chance;
use super::engine::{Cpu, Engine, NEVER};
use super::lanes::Lane;
use super::place::put;
use super::policy::Policy;
use super::rates::Rates;
use super::reserve::{Reservation, reservations};
use super::scenario::{Demand, Load, Scenario};
use super::topology::Topology;
use super::world::{NONE, World};

const CONSOLE_SHARES: u64 = 100_000;

fn idle_cpu() -> Cpu {
    Cpu {
        world: NONE,
        since: 0,
        began: 0,
        quantum_end: 0,
        check: NEVER,
        rate: 1,
        busy_siblings: 0,
        is_open: true,
        busy: 0,
    }
}

impl<'a> Engine<'a> {
    /// # Errors
    /// As [`Scenario::check`].
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, String> {
        let topology = scenario.check()?;
        let cpus = topology.cpus();
        let (worlds, machines) = worlds(scenario);
        let console = scenario.console.map(|_| worlds.len() as u32 - 1);
        let mut engine = Self {
            scenario,
            topology,
            now: 0,
            events: 0,
            agenda: Agenda::new(cpus as usize + worlds.len() + 1),
            lanes: vec![Lane::default(); (cpus + topology.nodes) as usize],
            idle: BTreeSet::new(),
            whole: BTreeSet::new(),
            cpus: (0..cpus).map(|_| idle_cpu()).collect(),
            placed: vec![0; scenario.topology.nodes as usize],
            wanted_before: vec![0; scenario.vms.len()],
            rates: Rates::new(&scenario.costs, topology),
            accounts: Accounts::new(scenario.vms.len(), worlds.len(), cpus as usize, scenario.chart_ns),
            waiting: 0,
            uneven_until: 0,
            costopped: vec![0; machines.len()],
            resumed: Vec::new(),
            reservations: Vec::new(),
            worlds,
            console,
            machines,
        };
        let granted = match scenario.policy {
            Policy::LatencySensitive => reservations(scenario, topology),
            _ => Vec::new(),
        };
        engine.settle_in(&granted);
        engine.reservations = granted.into_iter().map(|(_, reservation)| reservation).collect();
        Ok(engine)
    }

    /// The first wake-ups, spread by chance.
    pub(super) fn begin(&mut self) {
        for world in 0..self.worlds.len() {
            let load = self.worlds[world].load;
            let sleep = self.worlds[world].chance.exponential(load.sleep_ns);
            self.agenda.set(self.cpus.len() + world, sleep);
        }
        self.plan_balance();
    }

    /// Gives every world its queue and the node of its memory.
    fn settle_in(&mut self, granted: &[(usize, Reservation)]) {
        let (scenario, topology) = (self.scenario, self.topology);
        // By their first CPU, last ones first: the console is on the first.
        let cores = (0..topology.cores()).rev().map(|core| core * topology.threads_per_core);
        let mut free: Vec<u32> = cores.collect();
        if let Some(console) = self.console {
            self.worlds[console as usize].lane = 0;
        }
        for (vm, reservation) in granted {
            if reservation.denied.is_none() {
                self.own_cores(*vm, &mut free);
            }
        }
        for cpu in 0..self.cpus.len() as u32 {
            let is_open = self.cpus[cpu as usize].is_open;
            put(&mut self.idle, cpu, is_open);
            put(&mut self.whole, topology.core_around(cpu).start, is_open);
        }
        let mut next_cpu = spread(topology);
        for (place, vm) in scenario.vms.iter().enumerate() {
            let is_exclusive = self.worlds[self.machines[place].start as usize].lane != NONE;
            match scenario.policy {
                _ if is_exclusive => {}
                policy if policy.has_home_nodes() => {
                    let node = vm.node.unwrap_or_else(|| self.emptiest_node(vm.vcpus));
                    self.move_home(place, node);
                    self.placed[node as usize] += vm.vcpus;
                }
                _ => {
                    for (vcpu, world) in self.machines[place].clone().enumerate() {
                        let lane = vm.cpus.get(vcpu).copied().unwrap_or_else(|| next_cpu(vm.node));
                        self.worlds[world as usize].lane = lane;
                    }
                }
            }
            let lane = self.worlds[self.machines[place].start as usize].lane;
            let node = lane.checked_sub(self.cpus.len() as u32);
            let node = node.unwrap_or_else(|| topology.node(lane));
            for world in self.machines[place].clone() {
                self.worlds[world as usize].memory = node;
            }
        }
    }

    /// Cores of its own for a machine, of those that belong to none: of one node if it fits.
    fn own_cores(&mut self, vm: usize, free: &mut Vec<u32>) {
        let (topology, count) = (self.topology, self.machines[vm].len());
        let on = |node: u32| -> Vec<u32> {
            let cores = free.iter().copied();
            cores.filter(|cpu| topology.node(*cpu) == node).collect()
        };
        let nodes = (0..topology.nodes).rev().map(on);
        let node = nodes.filter(|cores| cores.len() >= count).min_by_key(Vec::len);
        let mut taken = node.unwrap_or_else(|| free.clone());
        taken.truncate(count);
        free.retain(|cpu| !taken.contains(cpu));
        for (world, core) in self.machines[vm].clone().zip(taken) {
            self.worlds[world as usize].lane = core;
            for cpu in topology.core_around(core) {
                self.cpus[cpu as usize].is_open = false;
            }
        }
    }
}

/// CPUs in turn, of a node if one is given: the first of each core, then the second ones.
fn spread(topology: Topology) -> impl FnMut(Option<u32>) -> u32 {
    let threads = topology.threads_per_core;
    let order = (0..threads).flat_map(|thread| (0..topology.cores()).map(move |core| core * threads + thread));
    let order: Vec<u32> = order.collect();
    let mut next = 0;
    move |node| {
        let places = (next..next + order.len()).map(|at| (at + 1, order[at % order.len()]));
        let mut fitting = places.filter(|&(_, cpu)| node.is_none_or(|node| topology.node(cpu) == node));
        let (after, cpu) = fitting.next().unwrap_or((next, 0));
        next = after;
        cpu
    }
}

/// The virtual CPUs of all machines, then the console.
fn worlds(scenario: &Scenario) -> (Vec<World>, Vec<Range<u32>>) {
    let (mut worlds, mut machines) = (Vec::new(), Vec::new());
    for (place, vm) in scenario.vms.iter().enumerate() {
        let first = worlds.len() as u32;
        for vcpu in 0..vm.vcpus as usize {
            let chance = Chance::new(scenario.seed, worlds.len() as u64);
            let mut world = World::new(place as u32, vm.shares / u64::from(vm.vcpus), vm.load, chance);
            let mut all = 0;
            let seen = vm.seen.get(vcpu).into_iter().flatten();
            world.seen = seen
                .map(|&(cpu, weight)| {
                    all += weight;
                    (cpu, all)
                })
                .collect();
            worlds.push(world);
        }
        machines.push(first..worlds.len() as u32);
    }
    let first = worlds.len() as u32;
    if let Some(console) = scenario.console {
        let chance = Chance::new(scenario.seed, u64::MAX);
        let load = Load {
            demand: Demand::Time,
            ..console
        };
        worlds.push(World::new(scenario.vms.len() as u32, CONSOLE_SHARES, load, chance));
    }
    machines.push(first..worlds.len() as u32);
    (worlds, machines)
}
