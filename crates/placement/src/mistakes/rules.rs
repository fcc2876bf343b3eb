//! The rules: what is pinned wrongly in a scene. Pure.

use std::collections::{BTreeMap, BTreeSet};

use host::CpuList;
use model::placement::{Mispinned, Mistake};

use super::fixes;
use super::scene::{Proc, Scene, Thread};

/// Memory of a process below that is not worth moving.
const LEAST_MEMORY: u64 = 64 << 20;

pub(crate) fn mistakes(scene: &Scene) -> Vec<Mispinned> {
    let alone = [
        first_thread_only,
        vcpus_on_siblings,
        vcpus_on_nodes,
        remote_memory,
        cpuset_cut,
        isolated_together,
    ];
    let of_process = |process| alone.iter().filter_map(move |rule| rule(scene, process));
    // An idle CPU is advised once.
    let mut taken = BTreeSet::new();
    let mut found = shared_cores(scene, &mut taken);
    found.extend(shared_cpus(scene, &mut taken));
    found.extend(scene.processes.iter().flat_map(of_process));
    found.sort_by_key(|mistake| (mistake.mistake, mistake.pid, mistake.cpus.clone()));
    found
}

fn found(mistake: Mistake, process: &Proc, threads: &[&Thread], cpus: impl IntoIterator<Item = u32>) -> Mispinned {
    let cpus: BTreeSet<u32> = cpus.into_iter().collect();
    Mispinned {
        mistake,
        pid: process.pid,
        name: process.name.clone(),
        threads: threads.iter().map(|thread| thread.tid).collect(),
        cpus: cpus.into_iter().collect(),
        better: Vec::new(),
        nodes: Vec::new(),
        percent: None,
        fixes: Vec::new(),
    }
}

/// All CPUs that some of these threads may run on.
fn cpus_of<'a>(threads: impl IntoIterator<Item = &'a &'a Thread>) -> BTreeSet<u32> {
    threads.into_iter().flat_map(|thread| thread.cpus()).collect()
}

/// Busy threads, of whichever processes, that stay on the siblings of one core, while a core is idle.
fn shared_cores(scene: &Scene, taken: &mut BTreeSet<u32>) -> Vec<Mispinned> {
    let mut by_core: BTreeMap<CpuList, Vec<(&Proc, &Thread, u32)>> = BTreeMap::new();
    for process in &scene.processes {
        for thread in process.busy() {
            if let Some(cpu) = thread.cpu.filter(|&cpu| scene.core(cpu).len() > 1) {
                by_core.entry(scene.core(cpu)).or_default().push((process, thread, cpu));
            }
        }
    }
    let are_several = |busy: &Vec<(_, _, u32)>| busy.iter().any(|(.., cpu)| *cpu != busy[0].2);
    let shared = by_core.into_values().filter(are_several);
    let told = shared.filter_map(|busy| {
        let &(process, moved, cpu) = busy.last()?;
        let better = scene.idle_for(process, cpu).find(|&cpu| taken.insert(cpu))?;
        let threads: Vec<&Thread> = busy.iter().map(|(_, thread, _)| *thread).collect();
        let cpus = busy.iter().map(|(.., cpu)| *cpu);
        Some(Mispinned {
            better: vec![better],
            fixes: fixes::of_thread(process, moved, better),
            ..found(Mistake::SharedCore, process, &threads, cpus)
        })
    });
    told.collect()
}

/// Busy threads, of whichever processes, that may use the same CPU only, while cores are idle: the last ones move.
fn shared_cpus(scene: &Scene, taken: &mut BTreeSet<u32>) -> Vec<Mispinned> {
    let mut by_cpu: BTreeMap<u32, Vec<(&Proc, &Thread)>> = BTreeMap::new();
    for process in &scene.processes {
        for thread in process.threads.iter().filter(|thread| thread.is_runnable) {
            if let Some(cpu) = thread.pinned() {
                by_cpu.entry(cpu).or_default().push((process, thread));
            }
        }
    }
    let told = by_cpu.into_iter().filter_map(|(cpu, sharing)| {
        let moves: Vec<(&Proc, &Thread, u32)> = sharing[1..]
            .iter()
            .rev()
            .filter_map(|&(process, thread)| {
                let idle = scene.idle_for(process, cpu).find(|&cpu| taken.insert(cpu))?;
                Some((process, thread, idle))
            })
            .collect();
        let &(process, ..) = moves.first()?;
        let threads: Vec<&Thread> = sharing.iter().map(|(_, thread)| *thread).collect();
        let mut better: Vec<u32> = [cpu].into_iter().chain(moves.iter().map(|(.., cpu)| *cpu)).collect();
        better.sort_unstable();
        let are_its_own = sharing.iter().all(|(sharer, _)| sharer.pid == process.pid);
        let fixes = match are_its_own && process.threads.iter().all(|thread| thread.pinned() == Some(cpu)) {
            true => fixes::of_process(process, &better),
            false => moves
                .iter()
                .flat_map(|&(process, thread, cpu)| fixes::of_thread(process, thread, cpu))
                .collect(),
        };
        Some(Mispinned {
            better,
            fixes,
            ..found(Mistake::SharedCpu, process, &threads, [cpu])
        })
    });
    told.collect()
}

/// `taskset -p PID` without `-a` pins the first thread, and those that it starts from then on.
fn first_thread_only(scene: &Scene, process: &Proc) -> Option<Mispinned> {
    let first = process.threads.iter().find(|thread| thread.tid == process.pid)?;
    let own = first.allowed.as_ref().filter(|allowed| !scene.is_everywhere(allowed))?;
    let others: Vec<&Thread> = process.busy().filter(|thread| thread.tid != process.pid).collect();
    let is_free = |thread: &&Thread| thread.allowed.as_ref().is_some_and(|all| scene.is_everywhere(all));
    let better: Vec<u32> = own.iter().collect();
    (!others.is_empty() && others.iter().all(is_free)).then(|| Mispinned {
        fixes: fixes::of_process(process, &better),
        better,
        ..found(Mistake::FirstThreadOnly, process, &others, cpus_of(&others))
    })
}

/// vCPUs that are pinned to both siblings of a core, and a guest that takes them for cores.
fn vcpus_on_siblings(scene: &Scene, process: &Proc) -> Option<Mispinned> {
    let mut arguments = process.arguments.iter().flat_map(|argument| argument.split(','));
    let knows = arguments.any(|part| part == "threads=2");
    let pinned = process
        .vcpus()
        .filter_map(|(_, thread)| Some((thread, thread.pinned()?)));
    let (threads, cpus): (Vec<&Thread>, Vec<u32>) = pinned.unzip();
    let cores: BTreeSet<CpuList> = cpus.iter().map(|&cpu| scene.core(cpu)).collect();
    let node = scene.nodes_of(cpus.iter().copied()).into_iter().next();
    let on_node: Vec<u32> = node.map_or_else(Vec::new, |node| scene.cpus_of(node));
    let firsts: BTreeSet<u32> = on_node.iter().filter_map(|&cpu| scene.core(cpu).first()).collect();
    let wrong = !knows && cores.len() < cpus.len() && firsts.len() >= cpus.len();
    let better: Vec<u32> = firsts.into_iter().take(cpus.len()).collect();
    wrong.then(|| Mispinned {
        fixes: fixes::of_vcpus(process, &better),
        better,
        ..found(Mistake::VcpusOnSiblings, process, &threads, cpus)
    })
}

/// vCPUs pinned to several nodes, though one has CPUs for all of them.
fn vcpus_on_nodes(scene: &Scene, process: &Proc) -> Option<Mispinned> {
    let vcpus: Vec<&Thread> = process.vcpus().map(|(_, thread)| thread).collect();
    let is_bound = |thread: &&&Thread| thread.allowed.as_ref().is_some_and(|own| !scene.is_everywhere(own));
    let cpus = cpus_of(vcpus.iter().filter(is_bound));
    let nodes = scene.nodes_of(cpus.iter().copied());
    let most_memory = process.memory.iter().max_by_key(|(_, bytes)| **bytes);
    let home = *most_memory.map(|(node, _)| node).or(nodes.first())?;
    let better: Vec<u32> = scene.cpus_of(home).into_iter().take(vcpus.len()).collect();
    let is_topology = |argument: &String| argument.starts_with("node,") && argument.contains("cpus=");
    let knows = process.arguments.iter().any(is_topology);
    (nodes.len() > 1 && !knows && better.len() == vcpus.len()).then(|| Mispinned {
        nodes: nodes.into_iter().collect(),
        fixes: fixes::of_vcpus(process, &better),
        better,
        ..found(Mistake::VcpusOnNodes, process, &vcpus, cpus)
    })
}

/// All busy threads may run on one node only, and most memory is on another.
fn remote_memory(scene: &Scene, process: &Proc) -> Option<Mispinned> {
    let busy: Vec<&Thread> = process.busy().collect();
    let cpus = cpus_of(&busy);
    let nodes = scene.nodes_of(cpus.iter().copied());
    let (Some(&home), 1) = (nodes.first(), nodes.len()) else {
        return None;
    };
    let all: u64 = process.memory.values().sum();
    let elsewhere = process.memory.iter().filter(|(node, _)| **node != home);
    let (&away, &bytes) = elsewhere.max_by_key(|(_, bytes)| **bytes)?;
    (all >= LEAST_MEMORY && bytes * 2 > all).then(|| Mispinned {
        nodes: vec![home, away],
        percent: Some(bytes as f64 / all as f64 * 100.0),
        fixes: fixes::of_memory(process, home, away),
        ..found(Mistake::RemoteMemory, process, &busy, cpus)
    })
}

/// The CPUs that the group above does not have are left out without a word.
fn cpuset_cut(_: &Scene, process: &Proc) -> Option<Mispinned> {
    let cpuset = process.cpuset.as_ref()?;
    let is_leader = process.threads.iter().any(|thread| thread.is_busy()) || process.threads.len() > 1;
    (is_leader && cpuset.wanted != cpuset.effective).then(|| Mispinned {
        fixes: fixes::of_cpuset(cpuset),
        better: cpuset.effective.iter().collect(),
        ..found(Mistake::CpusetCut, process, &[], cpuset.wanted.iter())
    })
}

/// Threads on isolated CPUs stay where they start.
fn isolated_together(scene: &Scene, process: &Proc) -> Option<Mispinned> {
    let is_inside = |allowed: &CpuList| allowed.len() > 1 && allowed.iter().all(|cpu| scene.isolated.contains(cpu));
    let is_one = |thread: &&Thread| thread.is_runnable && thread.allowed.as_ref().is_some_and(is_inside);
    let inside: Vec<&Thread> = process.threads.iter().filter(is_one).collect();
    let on: BTreeSet<u32> = inside.iter().filter_map(|thread| thread.cpu).collect();
    let better: Vec<u32> = cpus_of(&inside).into_iter().collect();
    let fix = |(thread, &cpu): (&&Thread, &u32)| fixes::taskset(thread.tid, &[cpu]);
    (inside.len() > 1 && on.len() < inside.len().min(better.len())).then(|| Mispinned {
        fixes: inside.iter().zip(&better).map(fix).collect(),
        better,
        ..found(Mistake::IsolatedTogether, process, &inside, on)
    })
}
