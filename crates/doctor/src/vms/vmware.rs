//! VMware ESX: settings of a virtual machine and of the host.

use model::findings::Severity;
use programs::Evidence;
use programs::config::Vmware;

use crate::rule::answers::{each, parts};
use crate::rule::{Answer, Case, Reason};

/// Machines that do not power on, or not with the pages that they ask for.
pub(super) fn one_g(evidence: &Evidence) -> Answer {
    let files = &evidence.files.vmware;
    let others = files
        .iter()
        .flat_map(|file| [odd_size(file), below_size(file), hot_add(file)]);
    let others = others.flatten().collect();
    parts([each(files, reserved), Ok(others), each(files, latency)])
}

/// The machine by its name, else by its file.
fn name(file: &Vmware) -> String {
    match file.get("displayName").filter(|name| !name.trim().is_empty()) {
        Some(name) => name.to_owned(),
        None => format!("the machine of {}", file.path),
    }
}

const ONE_G: &str = "sched.mem.lpage.enable1GPage";

/// 1 GiB pages back whole GiB.
fn odd_size(file: &Vmware) -> Option<Case> {
    let memory = file.number("memSize").filter(|_| file.is_on(ONE_G) == Some(true))?;
    let whole = memory.div_ceil(1024).saturating_mul(1024);
    (whole != memory).then(|| {
        Case::sure(format!(
            "{} MB of the {memory} MB of {} are in no whole GiB: 1 GiB pages cannot back them",
            memory % 1024,
            name(file)
        ))
        .severity(Severity::Warning)
        .seen(&file.path, ONE_G, "TRUE")
        .seen(&file.path, "memSize", memory)
        .fix(format!("memSize = \"{whole}\""))
    })
}

/// A limit of memory below the machine's size is swapped or ballooned by the host.
fn below_size(file: &Vmware) -> Option<Case> {
    let (memory, most) = (file.number("memSize")?, file.number("sched.mem.max")?);
    (most < memory).then(|| {
        Case::sure(format!(
            "the host gives {} at most {most} of its {memory} MB, and takes the rest by ballooning and swapping, in base pages",
            name(file)
        ))
        .severity(Severity::Warning)
        .seen(&file.path, "memSize", memory)
        .seen(&file.path, "sched.mem.max", most)
        .fix("sched.mem.max = \"unlimited\", or a memSize that is no more")
    })
}

/// With CPUs that may be added at run time the guest sees one NUMA node (vSphere before 8.0).
fn hot_add(file: &Vmware) -> Option<Case> {
    /// From so many virtual CPUs on a machine has nodes of its own.
    const NODES_FROM: u64 = 9;
    let cpus = file.number("numvcpus").filter(|cpus| *cpus >= NODES_FROM)?;
    let switch = "vcpu.hotadd";
    file.is_on(switch).filter(|on| *on)?;
    if file.number("virtualHW.version").is_some_and(|version| version >= 20) {
        return None;
    }
    Some(
        Case::likely(format!(
            "CPUs may be added to {} at run time, so ESX before 8.0 shows it one NUMA node for its {cpus} CPUs: its memory is remote in part",
            name(file)
        ))
        .severity(Severity::Warning)
        .seen(&file.path, switch, "TRUE")
        .seen(&file.path, "numvcpus", cpus)
        .fix("vcpu.hotadd = \"FALSE\"")
        .fix("or hardware version 20 (vSphere 8.0) and later, which keeps the nodes"),
    )
}

/// A reservation of fewer MHz for each virtual CPU is full on no host: two of them share a core at most, and no server's CPU is below 1 GHz.
const LEAST_MHZ: u64 = 500;

/// High latency sensitivity needs all memory and CPU reserved (vSphere Resource Management, latency sensitivity). How much CPU that is the host's
/// frequency decides.
fn latency(file: &Vmware) -> Result<Option<Case>, Reason> {
    let setting = "sched.cpu.latencySensitivity";
    if file
        .get(setting)
        .is_none_or(|value| !value.eq_ignore_ascii_case("high"))
    {
        return Ok(None);
    }
    let (cpu, cpus) = (
        file.number("sched.cpu.min").unwrap_or(0),
        file.number("numvcpus").unwrap_or(1).max(1),
    );
    let memory = file.number("memSize");
    let reserved = file.number("sched.mem.min").unwrap_or(0);
    let is_pinned = file.is_on("sched.mem.pin") == Some(true);
    let lacks_memory = !is_pinned && memory.is_some_and(|memory| reserved < memory);
    let lacks_cpu = cpu / cpus < LEAST_MHZ;
    if !lacks_cpu && !lacks_memory {
        let (path, each) = (&file.path, cpu / cpus);
        let unknown = format!(
            "{path}: whether {each} MHz for each virtual CPU (sched.cpu.min) reserve all CPU depends on the host's frequency: hugewise size esx-cpu"
        );
        return Err(unknown.into());
    }
    let case = Case::sure(format!(
        "{} does not power on: high latency sensitivity needs all of its CPU and memory reserved",
        name(file)
    ))
    .seen(&file.path, setting, "high")
    .seen(&file.path, "sched.cpu.min", cpu)
    .seen(&file.path, "sched.mem.min", reserved);
    let case = case.fix_if(
        lacks_cpu,
        "sched.cpu.min: the number of virtual CPUs times the host's MHz (in the client: reserve all CPU)",
    );
    Ok(Some(case.fix_if(
        lacks_memory,
        "sched.mem.min = memSize and sched.mem.pin = \"TRUE\" (in the client: reserve all guest memory)",
    )))
}

/// A machine that cannot get its 1 GiB pages.
fn reserved(file: &Vmware) -> Result<Option<Case>, Reason> {
    if file.is_on(ONE_G) != Some(true) || file.is_on("sched.mem.pin") == Some(true) {
        return Ok(None);
    }
    let memory = file
        .number("memSize")
        .ok_or_else(|| format!("{}: no memSize in MB", file.path))?;
    let reserved = file.number("sched.mem.min").unwrap_or(0);
    if reserved >= memory {
        return Ok(None);
    }
    let case = Case::sure(format!(
        "{} does not power on: 1 GiB pages need all of its {memory} MB reserved, and {reserved} MB are",
        name(file)
    ))
    .seen(&file.path, ONE_G, "TRUE")
    .seen(&file.path, "memSize", memory)
    .seen(&file.path, "sched.mem.min", reserved);
    Ok(Some(case.fix(format!(
        "sched.mem.min = \"{memory}\" and sched.mem.pin = \"TRUE\" (in the client: reserve all guest memory)"
    ))))
}

/// Settings that keep ESX from backing guests with huge pages.
pub(super) fn disabled(evidence: &Evidence) -> Answer {
    let host = [("Mem.AllocGuestLargePage", "0"), ("LPage.LPageAlwaysTryForNPT", "0")];
    let own = "monitor_control.disable_mmu_largepages";
    each(&evidence.files.vmware, |file| {
        let off = host.into_iter().find(|(name, off)| file.get(name) == Some(off));
        let (case, setting, back) = match off {
            Some((name, _)) => {
                let what = "the host backs guests with small pages, whatever the guests do";
                (Case::sure(what), name, "1")
            }
            None if file.is_on(own) == Some(true) => {
                let what = format!(
                    "the host backs {} with small pages, whatever its guest does",
                    name(file)
                );
                (Case::hint(what), own, "FALSE")
            }
            None => return Ok(None),
        };
        let value = file.get(setting).unwrap_or_default();
        Ok(Some(case.seen(&file.path, setting, value).fix(format!(
            "{setting} = {back}, then power-cycle the machines or migrate them"
        ))))
    })
}
