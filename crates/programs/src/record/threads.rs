//! The thread part of a capture: threads of processes that are busy, pinned or virtual machines, and what a few looks at them saw.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use model::Bytes;

use super::keep::Kept;
use super::mappings::record_nodes;
use super::recorder::Recorder;
use super::table::whole;
use crate::Program;
use crate::vms;
use host::processes::Stat;
use host::snapshot::topology::node_numbers;
use host::threads::{Look, Seen, THREADS, times};
use host::tree::Node;
use host::{CpuList, Source, Tree, spread};

/// A process that used so much of a CPU is busy.
const BUSY: f64 = 0.25;
/// Clock ticks say nothing about shorter times.
const SHORTEST: Duration = Duration::from_millis(100);
/// Between two looks at the threads, and how often, after the first.
const PERIOD: Duration = Duration::from_millis(80);
const LOOKS: u32 = 3;
/// What a look at more of them costs would be felt beside 3,000 processes.
const MOST_PROCESSES: usize = 200;
const MOST_THREADS: usize = 2000;
const LARGEST_FILE: Bytes = Bytes::mib(1);
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Lines of a thread's status that are kept.
const STATUS: [&str; 4] = ["Name:", "State:", "Cpus_allowed_list:", "Mems_allowed_list:"];

/// CPU time of all processes at one moment, in clock ticks.
pub(super) struct Before {
    ticks: BTreeMap<u32, u64>,
    at: Instant,
}

impl Before {
    /// Of a machine that runs: in a capture nothing moves.
    pub(super) fn read(source: &Source, programs: &[Program]) -> Self {
        let pids: Vec<u32> = programs.iter().map(Program::pid).collect();
        let read = if source.is_live() { pids } else { Vec::new() };
        Self {
            ticks: spread::over(source, &read, |&pid| Some((pid, ticks(source, pid)?)))
                .into_iter()
                .flatten()
                .collect(),
            at: Instant::now(),
        }
    }
}

fn ticks(source: &Source, pid: u32) -> Option<u64> {
    let stat = Stat::of(source, pid).into_result().ok().flatten()?;
    Some(stat.ticks()?.iter().sum())
}

/// Records the threads that `placement check` looks at.
pub(super) fn record(recorder: &mut Recorder<'_>, programs: &[Program], before: &Before) {
    let source = recorder.source;
    recorder.file(ISOLATED, LARGEST_FILE, whole);
    if !source.is_live() {
        recorder.file(THREADS, LARGEST_FILE, whole);
        for program in programs {
            for tid in tasks(source, program.pid()) {
                record_thread(recorder, program.pid(), tid);
            }
        }
        return;
    }
    let pids = chosen(recorder, programs, before);
    let mut threads: Vec<(u32, u32)> = Vec::new();
    for &pid in &pids {
        threads.extend(tasks(source, pid).into_iter().map(|tid| (pid, tid)));
    }
    if threads.len() > MOST_THREADS {
        let what = format!("{} threads of busy or pinned processes", threads.len() - MOST_THREADS);
        recorder.leave_out("/proc", &what);
        threads.truncate(MOST_THREADS);
    }
    recorder.each(&threads, |recorder, &(pid, tid)| record_thread(recorder, pid, tid));
    record_memory(recorder, programs, &pids);
    let looked = looks(source, &threads);
    recorder.tree.insert(THREADS, Node::File(looked.to_text().into_bytes()));
}

/// Virtual machines, then those that used the most time since, then those that are pinned.
fn chosen(recorder: &mut Recorder<'_>, programs: &[Program], before: &Before) -> Vec<u32> {
    let source = recorder.source;
    std::thread::sleep(SHORTEST.saturating_sub(before.at.elapsed()));
    let passed = before.at.elapsed().as_secs_f64() * rustix::param::clock_ticks_per_second() as f64;
    let free = free_cpus(source);
    let machines = virtual_machines(recorder);
    let own = std::process::id();
    let weight = |program: &Program| {
        let pid = program.pid();
        let used = before
            .ticks
            .get(&pid)
            .map_or(0, |old| ticks(source, pid).map_or(0, |new| new.saturating_sub(*old)));
        let share = used as f64 / passed;
        let is_pinned = || is_narrow(&recorder.tree, program, &free);
        let weight = if machines.contains(&pid) {
            f64::INFINITY
        } else if share >= BUSY {
            share
        } else {
            0.0
        };
        (pid != own && (weight > 0.0 || is_pinned())).then_some((weight, pid))
    };
    let mut found: Vec<(f64, u32)> = programs.iter().filter_map(weight).collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    if found.len() > MOST_PROCESSES {
        let what = format!(
            "the threads of {} busy or pinned processes",
            found.len() - MOST_PROCESSES
        );
        recorder.leave_out("/proc", &what);
        found.truncate(MOST_PROCESSES);
    }
    found.into_iter().map(|(_, pid)| pid).collect()
}

/// CPUs that a process without any pinning may use.
fn free_cpus(source: &Source) -> CpuList {
    let list = |path| -> CpuList {
        let list = source.value(path, "a list of CPUs").into_result();
        list.unwrap_or_default()
    };
    let isolated = list(ISOLATED);
    list(ONLINE).iter().filter(|&cpu| !isolated.contains(cpu)).collect()
}

/// May its first thread use less than all of them? Its status is in the capture already.
fn is_narrow(tree: &Tree, program: &Program, free: &CpuList) -> bool {
    let status = tree.bytes(&program.file("status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.trim().parse::<CpuList>().ok());
    allowed.is_some_and(|allowed| free.iter().any(|cpu| !allowed.contains(cpu)))
}

/// Processes whose machines of KVM are in the capture already.
fn virtual_machines(recorder: &Recorder<'_>) -> BTreeSet<u32> {
    let pid = |path: &str| path.strip_prefix("/proc/")?.split_once("/fd/")?.0.parse().ok();
    let links = recorder
        .tree
        .iter()
        .filter(|(_, node)| matches!(node, Node::Link(to) if to == vms::KVM));
    links.filter_map(|(path, _)| pid(path)).collect()
}

fn tasks(source: &Source, pid: u32) -> Vec<u32> {
    let names = source
        .list(&format!("/proc/{pid}/task"))
        .into_result()
        .unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

fn record_thread(recorder: &mut Recorder<'_>, pid: u32, tid: u32) {
    let folder = format!("/proc/{pid}/task/{tid}");
    recorder.file(&format!("{folder}/stat"), LARGEST_FILE, whole);
    recorder.file(&format!("{folder}/status"), LARGEST_FILE, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let lines = text
            .lines()
            .filter(|line| STATUS.iter().any(|name| line.starts_with(name)));
        let kept: String = lines.map(|line| format!("{line}\n")).collect();
        Kept::whole(kept.as_bytes())
    });
}

/// Memory by node, where there are several.
fn record_memory(recorder: &mut Recorder<'_>, programs: &[Program], pids: &[u32]) {
    let nodes = node_numbers(recorder.source).into_result().unwrap_or_default();
    if nodes.len() < 2 {
        return;
    }
    for program in programs.iter().filter(|program| pids.contains(&program.pid())) {
        record_nodes(recorder, program);
    }
}

/// Looks at them several times.
fn looks(source: &Source, threads: &[(u32, u32)]) -> Look {
    let began = Instant::now();
    let mut found: Vec<(Seen, Option<u64>)> = threads
        .iter()
        .filter_map(|&(pid, tid)| first(source, pid, tid))
        .collect();
    for _ in 0..LOOKS {
        std::thread::sleep(PERIOD);
        for (seen, _) in &mut found {
            again(source, seen);
        }
    }
    let passed = began.elapsed();
    let share = |(mut seen, ran): (Seen, Option<u64>)| {
        let now = run_time(source, seen.pid, seen.tid);
        seen.share = now
            .zip(ran)
            .map(|(now, ran)| now.saturating_sub(ran) as f64 / passed.as_nanos().max(1) as f64);
        seen
    };
    Look {
        seconds: passed.as_secs_f64(),
        threads: found.into_iter().map(share).collect(),
    }
}

fn state(source: &Source, pid: u32, tid: u32) -> Option<(bool, u32)> {
    let stat = Stat::of_thread(source, pid, tid)?;
    Some((stat.state()? == 'R', stat.processor()?))
}

fn first(source: &Source, pid: u32, tid: u32) -> Option<(Seen, Option<u64>)> {
    let (is_runnable, cpu) = state(source, pid, tid)?;
    let seen = Seen {
        pid,
        tid,
        share: None,
        is_runnable,
        cpu: Some(cpu),
    };
    Some((seen, run_time(source, pid, tid)))
}

fn again(source: &Source, seen: &mut Seen) {
    let now = state(source, seen.pid, seen.tid);
    seen.is_runnable &= now.is_some_and(|(is_runnable, _)| is_runnable);
    seen.cpu = seen.cpu.filter(|&cpu| now.is_some_and(|(_, on)| on == cpu));
}

/// Nanoseconds on a CPU; without CONFIG_SCHED_INFO from clock ticks.
fn run_time(source: &Source, pid: u32, tid: u32) -> Option<u64> {
    if let Some([ran, _]) = times(source, pid, tid) {
        return Some(ran);
    }
    let ticks: u64 = Stat::of_thread(source, pid, tid)?.ticks()?.iter().sum();
    Some(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}
