//! What is asked: a host, a policy, virtual machines and their load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Ns;
use super::policy::Policy;
use super::topology::{MOST_CPUS, Topology};

/// The most virtual CPUs.
pub const MOST_WORLDS: usize = 1 << 19;
/// The longest simulated time: more than 4.8 hours.
const LONGEST: Ns = (1 << 44) - 1;

/// The shortest mean of bursts: a simulation of shorter ones would not end.
const SHORTEST_BURST: Ns = 1000;
/// The longest mean of bursts and of sleeps.
const LONGEST_LOAD: Ns = 1_000_000_000_000;

/// When a burst of work is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Demand {
    /// After its work: a slow CPU takes longer.
    #[default]
    Work,
    /// After its time on a CPU: a slow CPU does less.
    Time,
}

/// Bursts and sleeps in turn, both exponentially distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Mean of a burst on a CPU at full rate, in nanoseconds.
    pub burst_ns: Ns,
    /// Mean of a sleep, in nanoseconds; 0 never sleeps.
    pub sleep_ns: Ns,
    /// When a burst is over.
    pub demand: Demand,
}

impl Load {
    /// The part of a CPU that it uses if nothing delays it.
    pub fn duty(self) -> f64 {
        self.burst_ns as f64 / (self.burst_ns + self.sleep_ns).max(1) as f64
    }
}

/// What an idle SMT sibling does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// It halts, and its sibling has the core.
    #[default]
    Halts,
    /// It spins, and takes as much of the core as a busy one.
    Spins,
}

/// What running in one place or another costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// Time until caches are warm again, by kind of move: sibling, core, socket, node; in nanoseconds.
    pub warm_up_ns: [Ns; 4],
    /// The same on the CPU that it ran on before, if others ran there for a quantum since; in proportion if for less.
    pub displaced_ns: Ns,
    /// The part of its rate that a CPU loses while all its siblings are busy, from 0 to below 1.
    pub sibling_busy: f64,
    /// The part of its rate that a CPU loses while its world's memory is on another node, from 0 to below 1.
    pub remote_memory: f64,
    /// The rate of each node's CPUs; nodes that are not named have 1.
    pub node_rates: Vec<f64>,
    /// What idle siblings do.
    pub idle: Idle,
}

impl Costs {
    /// No cost at all.
    pub fn none() -> Self {
        Self {
            warm_up_ns: [0; 4],
            displaced_ns: 0,
            sibling_busy: 0.0,
            remote_memory: 0.0,
            node_rates: Vec::new(),
            idle: Idle::Halts,
        }
    }
}

impl Default for Costs {
    /// Moves: 30 us to a sibling, whose caches are the same; 1 to 2 ms where a cache of 2 MB is filled again. Busy siblings: each gets 55 to
    /// 65 % of a core (Broadcom KB 326271). Worlds that take turns and remote memory: none, as the programs differ.
    fn default() -> Self {
        Self {
            warm_up_ns: [30_000, 1_000_000, 1_500_000, 2_000_000],
            sibling_busy: 0.4,
            ..Self::none()
        }
    }
}

/// One virtual machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Shares of all its virtual CPUs together.
    pub shares: u64,
    /// What each virtual CPU does.
    pub load: Load,
    /// Its home node, if it is given.
    pub node: Option<u32>,
    /// The logical CPU of each virtual CPU, for the policy `pinned`.
    pub cpus: Vec<u32>,
    /// Is its latency sensitivity high?
    pub is_latency_sensitive: bool,
    /// CPU reservation in MHz; all that it needs if it is not given.
    pub reservation_mhz: Option<u64>,
    /// By virtual CPU: where it was seen, as weights of logical CPUs. Then wake-ups follow these, and not the policy.
    pub seen: Vec<Vec<(u32, u64)>>,
}

impl Vm {
    /// A virtual machine with 1,000 shares for each virtual CPU, placed by the policy.
    pub fn new(name: &str, vcpus: u32, load: Load) -> Self {
        Self {
            name: name.to_owned(),
            vcpus,
            shares: 1000 * u64::from(vcpus),
            load,
            node: None,
            cpus: Vec::new(),
            is_latency_sensitive: false,
            reservation_mhz: None,
            seen: Vec::new(),
        }
    }
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The host, before the policy's limit of logical CPUs.
    pub topology: Topology,
    /// Who decides.
    pub policy: Policy,
    pub costs: Costs,
    /// The virtual machines.
    pub vms: Vec<Vm>,
    /// What the hypervisor's console does, if there is one: it runs on CPU 0, before every virtual CPU.
    pub console: Option<Load>,
    /// Time simulated.
    pub duration_ns: Ns,
    /// How long a world runs before others have their turn.
    pub quantum_ns: Ns,
    /// How far virtual CPUs of one machine may be apart before the leading ones stop; none for any distance.
    pub skew_limit_ns: Option<Ns>,
    /// Of 65,536 wake-ups, those that go to the sibling where that is free.
    pub sibling_chance: u32,
    /// MHz of a core, for reservations.
    pub core_mhz: u64,
    /// MHz that the host keeps for itself.
    pub host_mhz: u64,
    /// Time from which on slices are kept for a chart, and how long; in nanoseconds.
    pub chart_ns: [Ns; 2],
    /// Seed of all chance.
    pub seed: u64,
}

impl Scenario {
    /// A scenario with usual times: 50 ms quantum, 3 ms skew, 10 s.
    pub fn new(topology: Topology, policy: Policy, vms: Vec<Vm>, seed: u64) -> Self {
        Self {
            topology,
            policy,
            costs: Costs::default(),
            vms,
            console: None,
            duration_ns: 10_000_000_000,
            quantum_ns: 50_000_000,
            skew_limit_ns: policy.has_home_nodes().then_some(3_000_000),
            sibling_chance: 1 << 15,
            core_mhz: 3000,
            host_mhz: 0,
            chart_ns: [5_000_000_000, 400_000_000],
            seed,
        }
    }

    /// The topology that the policy uses.
    ///
    /// # Errors
    /// What is wrong, with what is expected.
    pub fn used(&self) -> Result<Topology, String> {
        self.topology.check()?;
        let limit = self.policy.cpu_limit().unwrap_or(MOST_CPUS);
        self.topology
            .within(limit)
            .map_err(|error| format!("{}: {error}", self.policy.name()))
    }

    /// The topology that the policy uses, if everything else fits it, too.
    ///
    /// # Errors
    /// What is wrong, with what is expected.
    pub fn check(&self) -> Result<Topology, String> {
        let used = self.used()?;
        let worlds: u64 = self.vms.iter().map(|vm| u64::from(vm.vcpus)).sum();
        if !(1..=MOST_WORLDS as u64).contains(&worlds) {
            return Err(format!("{worlds} virtual CPUs: expected 1 to {MOST_WORLDS}"));
        }
        if !(1..=LONGEST).contains(&self.duration_ns) || !(1000..=LONGEST).contains(&self.quantum_ns) {
            return Err("expected a duration of at most 4.8 hours, and a quantum of at least 1 us".to_owned());
        }
        self.vms.iter().try_for_each(|vm| check_vm(vm, used))?;
        if self.policy.has_home_nodes() {
            self.vms.iter().try_for_each(|vm| self.powers_on(vm, used))?;
        }
        check_costs(&self.costs)?;
        Ok(used)
    }

    /// ESX starts no machine with more virtual CPUs than the host has, or with a reservation above the host's.
    fn powers_on(&self, vm: &Vm, used: Topology) -> Result<(), String> {
        if vm.vcpus > used.cpus() {
            let (name, vcpus, most) = (&vm.name, vm.vcpus, used.cpus());
            return Err(format!(
                "virtual machine {name}: {vcpus} virtual CPUs on a host of {most}, which ESX refuses: expected at most {most}"
            ));
        }
        let most = (u64::from(used.cores()) * self.core_mhz).saturating_sub(self.host_mhz);
        match vm.reservation_mhz {
            Some(mhz) if mhz > most => Err(format!(
                "virtual machine {}: reservation_mhz {mhz} on a host that has {most} left, which ESX refuses",
                vm.name
            )),
            _ => Ok(()),
        }
    }
}

pub(super) fn check_vm(vm: &Vm, used: Topology) -> Result<(), String> {
    let fail = |what: String| Err(format!("virtual machine {}: {what}", vm.name));
    if vm.vcpus == 0 || vm.shares < u64::from(vm.vcpus) || vm.shares > 1_000_000_000 {
        return fail(format!(
            "{} virtual CPUs with {} shares: expected at least 1 share for each, and at most 1000000000",
            vm.vcpus, vm.shares
        ));
    }
    if !(SHORTEST_BURST..=LONGEST_LOAD).contains(&vm.load.burst_ns) || vm.load.sleep_ns > LONGEST_LOAD {
        return fail("expected bursts of 1 us to 1000 s, and sleeps of at most 1000 s".to_owned());
    }
    if let Some(node) = vm.node.filter(|node| *node >= used.nodes) {
        return fail(format!("node {node}: expected one below {}", used.nodes));
    }
    let cpus = vm.cpus.iter().chain(vm.seen.iter().flatten().map(|(cpu, _)| cpu));
    if let Some(cpu) = cpus.copied().find(|cpu| *cpu >= used.cpus()) {
        return fail(format!("CPU {cpu}: expected one below {}", used.cpus()));
    }
    for (what, given) in [("cpus", vm.cpus.len()), ("seen", vm.seen.len())] {
        if given != 0 && given != vm.vcpus as usize {
            return fail(format!(
                "{what} has {given} entries: expected {}, one for each virtual CPU",
                vm.vcpus
            ));
        }
    }
    Ok(())
}

pub(super) fn check_costs(costs: &Costs) -> Result<(), String> {
    for (name, part) in [
        ("sibling_busy", costs.sibling_busy),
        ("remote_memory", costs.remote_memory),
    ] {
        if !(0.0..1.0).contains(&part) {
            return Err(format!("{name} is {part}: expected 0 to below 1"));
        }
    }
    let rate = costs.node_rates.iter().find(|rate| !(**rate > 0.0 && **rate <= 1.0));
    rate.map_or(Ok(()), |rate| {
        Err(format!("node_rates has {rate}: expected rates above 0, and at most 1"))
    })
}
