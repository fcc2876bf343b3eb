//! Lines that fix what is pinned wrongly. Pure.

use host::CpuList;
use model::placement::{Fix, FixWith};

use super::scene::{Cpuset, Proc, Thread};

fn fix(with: FixWith, line: String) -> Fix {
    Fix { with, line }
}

fn list(cpus: &[u32]) -> CpuList {
    cpus.iter().copied().collect()
}

/// Pins one thread now.
pub(super) fn taskset(tid: u32, cpus: &[u32]) -> Fix {
    fix(FixWith::Shell, format!("taskset -cp {} {tid}", list(cpus)))
}

/// One thread to one CPU: a vCPU by its hypervisor's own words, too.
pub(super) fn of_thread(process: &Proc, thread: &Thread, cpu: u32) -> Vec<Fix> {
    let vcpu = process
        .vcpus()
        .find(|(_, vcpu)| vcpu.tid == thread.tid)
        .map(|(number, _)| number);
    let domain = vcpu
        .filter(|_| is_of_libvirt(process))
        .map(|number| vcpupin(number, cpu));
    [taskset(thread.tid, &[cpu])].into_iter().chain(domain).collect()
}

/// All threads of a process: now, and at its next start.
pub(super) fn of_process(process: &Proc, cpus: &[u32]) -> Vec<Fix> {
    let cpus = list(cpus).to_string();
    let now = format!("taskset -acp {cpus} {}", process.pid);
    let placement = format!("cpus={}", cpus.replace(',', "+"));
    let of_unit = (format!("CPUAffinity={cpus}"), placement);
    now_and_next(process, now, of_unit, &format!("--physcpubind={cpus}"))
}

/// A line for now; for the next start those of its unit, and the same written by hugewise, or else numactl with such options.
fn now_and_next(process: &Proc, now: String, (line, placement): (String, String), options: &str) -> Vec<Fix> {
    let mut fixes = vec![fix(FixWith::Shell, now)];
    if let Some(unit) = &process.unit {
        let unit = unit.strip_suffix(".service").unwrap_or(unit);
        let plan = format!("hugewise plan --for placement:{unit},{placement}");
        fixes.extend([fix(FixWith::Systemd, line), fix(FixWith::Plan, plan)]);
    } else {
        let program = process.arguments.first().map_or("PROGRAM", String::as_str);
        fixes.push(fix(FixWith::Start, format!("numactl {options} {program}")));
    }
    fixes
}

pub(super) fn of_vcpus(process: &Proc, cpus: &[u32]) -> Vec<Fix> {
    let pairs = || process.vcpus().zip(cpus);
    if process.vcpus().any(|(_, thread)| thread.name.starts_with("vmx-")) {
        let all: Vec<String> = cpus.iter().map(u32::to_string).collect();
        return vec![fix(FixWith::Vmx, format!("sched.cpu.affinity = \"{}\"", all.join(",")))];
    }
    if is_of_libvirt(process) {
        return pairs().map(|((number, _), &cpu)| vcpupin(number, cpu)).collect();
    }
    pairs().map(|((_, thread), &cpu)| taskset(thread.tid, &[cpu])).collect()
}

/// Memory to the node of the CPUs: now, and at the next start.
pub(super) fn of_memory(process: &Proc, home: u32, away: u32) -> Vec<Fix> {
    let now = format!("migratepages {} {away} {home}", process.pid);
    let of_unit = (format!("NUMAPolicy=bind\nNUMAMask={home}"), format!("memory={home}"));
    now_and_next(process, now, of_unit, &format!("--cpunodebind={home} --membind={home}"))
}

/// What the group gets anyway.
pub(super) fn of_cpuset(cpuset: &Cpuset) -> Vec<Fix> {
    vec![fix(
        FixWith::Cpuset,
        format!("echo {} > {}/cpuset.cpus", cpuset.effective, cpuset.path),
    )]
}

fn vcpupin(number: u32, cpu: u32) -> Fix {
    fix(FixWith::Libvirt, format!("<vcpupin vcpu='{number}' cpuset='{cpu}'/>"))
}

/// libvirt names its guests `guest=NAME,debug-threads=on`.
fn is_of_libvirt(process: &Proc) -> bool {
    process.arguments.iter().any(|argument| argument.starts_with("guest="))
}
