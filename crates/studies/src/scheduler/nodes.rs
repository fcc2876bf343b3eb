//! Home nodes: where a virtual machine is placed first, and when it moves to a node with more room.

use super::Ns;
use super::engine::Engine;
use super::policy::Policy;
use super::world::State;

/// How often homes are looked at. ESX Server does so every two seconds.
const HOMES: Ns = 2_000_000_000;
/// How often queues are evened out under the policy `linux-like`.
const QUEUES: Ns = 20_000_000;
/// A machine moves if nodes differ by more than so many hundredths of a CPU's time.
const UNEVEN: Ns = 10;

impl Engine<'_> {
    /// The node with the fewest virtual CPUs for each open CPU.
    pub(super) fn emptiest_node(&self, vcpus: u32) -> u32 {
        let nodes = 0..self.topology.nodes;
        let load = |node: &u32| {
            let open = self.open_cpus(*node);
            let placed = u64::from(self.placed[*node as usize] + vcpus);
            (open == 0, placed * 1_000_000 / open.max(1))
        };
        nodes.min_by_key(load).unwrap_or(0)
    }

    fn open_cpus(&self, node: u32) -> u64 {
        let size = self.topology.of_node();
        let cpus = &self.cpus[(node * size) as usize..((node + 1) * size) as usize];
        cpus.iter().filter(|cpu| cpu.is_open).count() as u64
    }

    /// Makes a node the home of a machine.
    pub(super) fn move_home(&mut self, vm: usize, node: u32) {
        let lane = self.cpus.len() as u32 + node;
        for id in self.machines[vm].clone() {
            let world = &self.worlds[id as usize];
            let (from, vtime, is_ready) = (world.lane as usize, world.vtime, world.state == State::Ready);
            let waited = is_ready && self.lanes.get_mut(from).is_some_and(|from| from.remove(vtime, id));
            self.change_lane(id, lane);
            if waited {
                self.waiting -= 1;
                self.place(id);
            }
        }
    }

    fn slot(&self) -> usize {
        self.cpus.len() + self.worlds.len()
    }

    pub(super) fn plan_balance(&mut self) {
        let period = match self.scenario.policy {
            Policy::Pinned => return,
            Policy::LinuxLike => QUEUES,
            _ => HOMES,
        };
        let slot = self.slot();
        self.agenda.set(slot, self.now + period);
    }

    pub(super) fn balance(&mut self) {
        self.plan_balance();
        match self.scenario.policy {
            Policy::LinuxLike if self.waiting > 0 => self.even_out(),
            policy if policy.has_home_nodes() && self.topology.nodes > 1 => self.rebalance(),
            _ => {}
        }
    }

    /// Memory of machines that moved has followed by now; then at most one machine moves.
    fn rebalance(&mut self) {
        for cpu in 0..self.cpus.len() as u32 {
            self.settle(cpu);
        }
        self.follow();
        let wanted: Vec<Ns> = (0..self.wanted_before.len()).map(|vm| self.wanted(vm)).collect();
        let period: Vec<Ns> = wanted
            .iter()
            .zip(&self.wanted_before)
            .map(|(now, then)| now - then)
            .collect();
        self.wanted_before = wanted;
        let nodes = self.topology.nodes as usize;
        let mut loads = vec![0; nodes];
        for (vm, time) in period.iter().enumerate() {
            if let Some(node) = self.home(vm) {
                loads[node] += time;
            }
        }
        let per_cpu = |node: &usize| loads[*node] / self.open_cpus(*node as u32).max(1);
        let open = || (0..nodes).filter(|node| self.open_cpus(*node as u32) > 0);
        let (Some(most), Some(least)) = (open().max_by_key(per_cpu), open().min_by_key(per_cpu)) else {
            return;
        };
        if per_cpu(&most) - per_cpu(&least) <= HOMES / 100 * UNEVEN {
            return;
        }
        // What is moved counts twice: it leaves one node, and comes to the other.
        let gap = loads[most].saturating_sub(loads[least]);
        let is_free = |vm: &usize| {
            let vm = &self.scenario.vms[*vm];
            vm.node.is_none() && vm.seen.is_empty()
        };
        let may_move = |vm: &usize| is_free(vm) && self.home(*vm) == Some(most) && (1..gap).contains(&period[*vm]);
        let best = (0..period.len())
            .filter(may_move)
            .min_by_key(|vm| gap.abs_diff(2 * period[*vm]));
        if let Some(vm) = best {
            self.move_home(vm, least as u32);
        }
    }

    fn follow(&mut self) {
        let first = self.cpus.len() as u32;
        for world in &mut self.worlds {
            if let Some(node) = world.lane.checked_sub(first) {
                world.memory = node;
            }
        }
        for cpu in 0..first {
            if self.cpus[cpu as usize].world != super::world::NONE {
                self.refresh(cpu);
            }
        }
    }

    /// Time for which a machine ran or waited so far.
    pub(super) fn wanted(&self, vm: usize) -> Ns {
        let worlds = self.machines[vm].clone().map(|id| &self.worlds[id as usize]);
        worlds.map(|world| world.totals.run + world.delay(self.now)).sum()
    }

    /// Its node, if it has a home.
    fn home(&self, vm: usize) -> Option<usize> {
        let lane = self.worlds.get(self.machines[vm].start as usize)?.lane as usize;
        lane.checked_sub(self.cpus.len())
    }
}
