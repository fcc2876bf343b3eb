//! What the rules look at: processes with their threads, where these run and may run, and memory by node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use host::processes::Stat;
use host::snapshot::Topology;
use host::threads::{Look, Seen, times};
use host::{CpuList, Membership, Snapshot, Source};
use process::tree;

use crate::poll;

/// From this share of a CPU on a thread is busy.
const BUSY: f64 = 0.5;
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

/// A machine with its processes.
pub(crate) struct Scene {
    pub(crate) topology: Topology,
    pub(crate) isolated: CpuList,
    pub(crate) processes: Vec<Proc>,
    /// CPUs on which a busy thread was seen.
    pub(crate) used: BTreeSet<u32>,
    looked: Instant,
}

pub(crate) struct Proc {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) unit: Option<String>,
    pub(crate) cpuset: Option<Cpuset>,
    pub(crate) threads: Vec<Thread>,
    /// Bytes by node.
    pub(crate) memory: BTreeMap<u32, u64>,
}

/// A control group that names its CPUs.
pub(crate) struct Cpuset {
    pub(crate) path: String,
    pub(crate) wanted: CpuList,
    pub(crate) effective: CpuList,
}

pub(crate) struct Thread {
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) allowed: Option<CpuList>,
    /// Where it was at every look; `None` if it moved.
    pub(crate) cpu: Option<u32>,
    busy: Option<bool>,
    /// Did it run or wait for a CPU at every look? Threads that share a CPU are not busy, each of them.
    pub(crate) is_runnable: bool,
    ran: Option<u64>,
}

impl Scene {
    pub(crate) fn read(source: &Source, snapshot: &Snapshot) -> Self {
        let names = source.list("/proc").into_result().unwrap_or_default();
        let pids = names.iter().filter_map(|name| name.parse::<u32>().ok());
        let others = pids.filter(|&pid| !source.is_live() || pid != std::process::id());
        let mut scene = Self {
            topology: snapshot.topology.clone(),
            isolated: source
                .value(ISOLATED, "a list of CPUs")
                .into_result()
                .unwrap_or_default(),
            processes: others.filter_map(|pid| Proc::read(source, pid)).collect(),
            used: BTreeSet::new(),
            looked: Instant::now(),
        };
        if let Some(look) = Look::read(source) {
            scene.recall(&look);
        }
        scene.note_used(Thread::is_busy);
        scene
    }

    /// What was seen of the threads of a captured machine. Those that were not looked at may have run by chance when they were captured.
    fn recall(&mut self, look: &Look) {
        let seen: BTreeMap<u32, &Seen> = look.threads.iter().map(|seen| (seen.tid, seen)).collect();
        for process in &mut self.processes {
            for thread in &mut process.threads {
                thread.recall(seen.get(&thread.tid).filter(|seen| seen.pid == process.pid).copied());
            }
        }
    }

    /// Is each busy thread still busy, and where?
    pub(crate) fn look_again(&mut self, source: &Source) {
        let passed = self.looked.elapsed().as_nanos() as f64;
        self.looked = Instant::now();
        for process in &mut self.processes {
            for thread in &mut process.threads {
                thread.look_again(source, process.pid, passed);
            }
        }
        self.note_used(Thread::is_busy);
    }

    /// CPUs of such threads are used.
    pub(crate) fn note_used(&mut self, uses: fn(&Thread) -> bool) {
        let threads = self.processes.iter().flat_map(|process| &process.threads);
        let using = threads.filter(|thread| uses(thread));
        self.used.extend(using.filter_map(|thread| thread.cpu));
    }

    /// The memory of those that are pinned, busy, or virtual machines: to read it takes time.
    pub(crate) fn read_memory(&mut self, source: &Source, wanted: Option<&BTreeSet<u32>>) {
        if self.topology.nodes.known().is_none_or(|nodes| nodes.len() < 2) {
            return;
        }
        let is_wanted = |process: &Proc| wanted.is_none_or(|wanted| wanted.contains(&process.pid));
        for process in self.processes.iter_mut().filter(|process| is_wanted(process)) {
            if process.threads.iter().any(Thread::is_busy) || process.vcpus().next().is_some() {
                process.memory = poll::memory(source, process.pid).unwrap_or_default();
            }
        }
    }

    pub(crate) fn core(&self, cpu: u32) -> CpuList {
        let known = self.topology.cpus.iter().find(|known| known.cpu == cpu);
        let siblings = known.and_then(|known| known.twins.known().cloned());
        siblings.unwrap_or_else(|| [cpu].into_iter().collect())
    }

    /// The first CPU of each core without any busy thread that a process may be moved to, isolated ones left out: those on the node of a CPU first.
    pub(crate) fn idle_for(&self, process: &Proc, near: u32) -> impl Iterator<Item = u32> {
        let cores = self.topology.cores();
        let is_idle = |core: &&CpuList| {
            core.iter()
                .all(|cpu| !self.used.contains(&cpu) && !self.isolated.contains(cpu))
        };
        let cpuset = process.cpuset.as_ref().map(|cpuset| &cpuset.effective);
        let first = |core: &CpuList| core.iter().find(|&cpu| cpuset.is_none_or(|own| own.contains(cpu)));
        let mut idle: Vec<u32> = cores.iter().filter(is_idle).filter_map(first).collect();
        idle.sort_by_key(|&cpu| self.topology.node_of(cpu) != self.topology.node_of(near));
        idle.into_iter()
    }

    pub(crate) fn nodes_of(&self, cpus: impl Iterator<Item = u32>) -> BTreeSet<u32> {
        cpus.filter_map(|cpu| self.topology.node_of(cpu)).collect()
    }

    /// The CPUs of a node that run.
    pub(crate) fn cpus_of(&self, node: u32) -> Vec<u32> {
        let cpus = self.topology.cpus.iter().map(|cpu| cpu.cpu);
        cpus.filter(|&cpu| self.topology.node_of(cpu) == Some(node)).collect()
    }

    pub(crate) fn is_everywhere(&self, allowed: &CpuList) -> bool {
        let rest = |cpu: u32| allowed.contains(cpu) || self.isolated.contains(cpu);
        self.topology.cpus.iter().all(|cpu| rest(cpu.cpu))
    }
}

impl Proc {
    /// `None` of one that has ended, and of threads of the kernel, which have no arguments.
    fn read(source: &Source, pid: u32) -> Option<Self> {
        let arguments = Some(tree::words(source, pid)).filter(|words| !words.is_empty())?;
        let tasks = tree::tasks(source, pid).into_iter();
        let threads: Vec<Thread> = tasks.filter_map(|tid| Thread::read(source, pid, tid)).collect();
        let membership = Membership::read(source, pid).into_result().ok();
        Some(Self {
            pid,
            name: threads.iter().find(|thread| thread.tid == pid)?.name.clone(),
            arguments,
            unit: membership.as_ref().and_then(Membership::service),
            cpuset: membership.and_then(|groups| Cpuset::read(source, &groups.limits)),
            threads,
            memory: BTreeMap::new(),
        })
    }

    pub(crate) fn busy(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| thread.is_busy())
    }

    /// Threads that are CPUs of a guest, with their numbers: as QEMU, Cloud Hypervisor, Firecracker and VMware name them.
    pub(crate) fn vcpus(&self) -> impl Iterator<Item = (u32, &Thread)> {
        let number = |name: &str| {
            let rest = name.strip_prefix("CPU ").map(|rest| rest.trim_end_matches("/KVM"));
            let rest = rest.or_else(|| {
                ["vcpu", "fc_vcpu ", "vmx-vcpu-"]
                    .iter()
                    .find_map(|mark| name.strip_prefix(mark))
            });
            rest?.parse().ok()
        };
        self.threads
            .iter()
            .filter_map(move |thread| Some((number(&thread.name)?, thread)))
    }
}

impl Cpuset {
    /// The innermost group that names its CPUs.
    fn read(source: &Source, group: &str) -> Option<Self> {
        let path = format!("/sys/fs/cgroup{}", group.trim_end_matches('/'));
        let list = |file: &str| -> Option<CpuList> {
            let list = source.value(&format!("{path}/{file}"), "a list of CPUs");
            list.into_result().ok()
        };
        let wanted = list("cpuset.cpus").filter(|list| !list.is_empty())?;
        Some(Self {
            effective: list("cpuset.cpus.effective")?,
            wanted,
            path,
        })
    }
}

impl Thread {
    fn read(source: &Source, pid: u32, tid: u32) -> Option<Self> {
        let stat = Stat::of_thread(source, pid, tid)?;
        let is_runnable = stat.state() == Some('R');
        let status = source
            .text(&format!("/proc/{pid}/task/{tid}/status"))
            .into_result()
            .unwrap_or_default();
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.parse().ok());
        Some(Self {
            tid,
            name: stat.name().to_owned(),
            allowed,
            cpu: stat.processor(),
            is_runnable,
            busy: (!source.is_live()).then_some(is_runnable),
            ran: times(source, pid, tid).map(|[ran, _]| ran),
        })
    }

    fn recall(&mut self, seen: Option<&Seen>) {
        self.busy = Some(seen.and_then(|seen| seen.share).is_some_and(|share| share >= BUSY));
        self.is_runnable = seen.is_some_and(|seen| seen.is_runnable);
        self.cpu = seen.and_then(|seen| seen.cpu);
    }

    fn look_again(&mut self, source: &Source, pid: u32, passed: f64) {
        let ran = times(source, pid, self.tid).map(|[ran, _]| ran);
        let share = ran
            .zip(self.ran)
            .map_or(0.0, |(now, before)| now.saturating_sub(before) as f64 / passed);
        let is_busy = share >= BUSY;
        self.ran = ran;
        self.busy = Some(self.busy.unwrap_or(true) && is_busy);
        if is_busy || self.is_runnable {
            let stat = Stat::of_thread(source, pid, self.tid);
            self.cpu = self.cpu.filter(|_| self.cpu == stat.as_ref().and_then(Stat::processor));
            self.is_runnable &= stat.is_some_and(|stat| stat.state() == Some('R'));
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy == Some(true)
    }

    /// The only CPU that it may use.
    pub(crate) fn pinned(&self) -> Option<u32> {
        self.allowed.as_ref().filter(|allowed| allowed.len() == 1)?.first()
    }

    /// The CPUs that it may use, or else the one that it is on.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let allowed = self.allowed.iter().flat_map(CpuList::iter).collect::<Vec<u32>>();
        if allowed.is_empty() {
            self.cpu.into_iter().collect()
        } else {
            allowed
        }
    }
}
