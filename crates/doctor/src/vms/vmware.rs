//! VMware ESX: settings of a virtual machine and of the host.

use model::findings::Severity;
use programs::Evidence;
use programs::config::Vmware;

use crate::rule::answers::each;
use crate::rule::{Answer, Case};

/// Machines that do not power on, or not with the pages that they ask for.
pub(super) fn one_g(evidence: &Evidence) -> Answer {
    let mut cases = reserved(evidence)?;
    for file in &evidence.files.vmware {
        cases.extend(odd_size(file));
        cases.extend(below_size(file));
        cases.extend(latency(file));
        cases.extend(hot_add(file));
    }
    Ok(cases)
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

/// High latency sensitivity needs all memory and CPU reserved (vSphere Resource Management, latency sensitivity).
fn latency(file: &Vmware) -> Option<Case> {
    let setting = "sched.cpu.latencySensitivity";
    file.get(setting).filter(|value| value.eq_ignore_ascii_case("high"))?;
    let cpu = file.number("sched.cpu.min").unwrap_or(0);
    let memory = file.number("memSize");
    let reserved = file.number("sched.mem.min").unwrap_or(0);
    let is_pinned = file.is_on("sched.mem.pin") == Some(true);
    let lacks_memory = !is_pinned && memory.is_some_and(|memory| reserved < memory);
    (cpu == 0 || lacks_memory).then(|| {
        let case = Case::sure(format!(
            "{} does not power on: high latency sensitivity needs all of its CPU and memory reserved",
            name(file)
        ))
        .seen(&file.path, setting, "high")
        .seen(&file.path, "sched.cpu.min", cpu)
        .seen(&file.path, "sched.mem.min", reserved);
        case.fix_if(
            cpu == 0,
            "sched.cpu.min: the number of virtual CPUs times the host's MHz (in the client: reserve all CPU)",
        )
        .fix_if(
            lacks_memory,
            "sched.mem.min = memSize and sched.mem.pin = \"TRUE\" (in the client: reserve all guest memory)",
        )
    })
}

/// Machines that cannot get their 1 GiB pages.
fn reserved(evidence: &Evidence) -> Answer {
    each(&evidence.files.vmware, |file| {
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
        .seen(&file.path, "sched.mem.min", reserved)
        .fix(format!(
            "sched.mem.min = \"{memory}\" and sched.mem.pin = \"TRUE\" (in the client: reserve all guest memory)"
        ));
        Ok(Some(case))
    })
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
