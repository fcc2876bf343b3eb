//! VMware ESX: settings of a virtual machine and of the host.

use model::findings::Confidence;
use programs::Evidence;

use crate::facts::each;
use crate::rule::{Answer, Case};

/// Machines that cannot get their 1 GiB pages.
pub(super) fn one_g(evidence: &Evidence) -> Answer {
    each(&evidence.files.vmware, |file| {
        if file.is_on("sched.mem.lpage.enable1GPage") != Some(true) || file.is_on("sched.mem.pin") == Some(true) {
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
            "the machine does not power on: 1 GiB pages need all of its {memory} MB reserved, and {reserved} MB are"
        ))
        .seen(&file.path, "sched.mem.lpage.enable1GPage", "TRUE")
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
    each(&evidence.files.vmware, |file| {
        let off = host.into_iter().find(|(name, off)| file.get(name) == Some(off));
        let own = "monitor_control.disable_mmu_largepages";
        let found = match off {
            Some((name, _)) => Some((name, Confidence::High, "1")),
            None => (file.is_on(own) == Some(true)).then_some((own, Confidence::Low, "FALSE")),
        };
        Ok(found.map(|(name, confidence, back)| {
            Case::new(
                confidence,
                "the host backs guests with small pages, whatever the guests do",
            )
            .seen(&file.path, name, file.get(name).unwrap_or_default())
            .fix(format!(
                "{name} = {back}, then power-cycle the machines or migrate them"
            ))
        }))
    })
}
