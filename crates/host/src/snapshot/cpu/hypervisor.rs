//! Which hypervisor runs this machine, from CPUID, sysfs or the firmware's tables.

use model::{Cause, Reading, Unread};

use super::cpuinfo::CpuInfo;
use crate::Source;
use crate::cpuid::Leaves;

/// The twelve letters at CPUID leaf 0x4000_0000 and what they stand for.
const SIGNATURES: [(&str, &str); 10] = [
    ("KVMKVMKVM", "KVM"),
    ("Linux KVM Hv", "KVM"),
    ("Microsoft Hv", "Hyper-V"),
    ("VMwareVMware", "VMware"),
    ("XenVMMXenVMM", "Xen"),
    ("TCGTCGTCGTCG", "QEMU TCG"),
    ("bhyve bhyve", "bhyve"),
    ("ACRNACRNACRN", "ACRN"),
    ("lrpepyh  vr", "Parallels"),
    ("VBoxVBoxVBox", "VirtualBox"),
];

/// Words in the firmware's vendor and product names that only virtual machines have.
const FIRMWARE: [(&str, &str); 9] = [
    ("KVM", "KVM"),
    ("QEMU", "QEMU"),
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "KVM"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("Bochs", "Bochs"),
    ("OpenStack", "OpenStack"),
    ("Virtual Machine", "Hyper-V"),
];

/// The vendor, or `none` on bare metal. Where nothing gives a hint either way it is absent.
pub(super) fn read(source: &Source, info: &CpuInfo, leaves: &Reading<Leaves>) -> Reading<String> {
    let by_cpuid = leaves
        .known()
        .and_then(Leaves::hypervisor)
        .filter(|letters| !letters.is_empty());
    let flags = info.flags();
    let flagged = flags.known().map(|flags| flags.iter().any(|flag| flag == "hypervisor"));
    match (by_cpuid, flagged) {
        (Some(letters), _) => Reading::Known(named(&letters)),
        // x86 hypervisors set that flag; without it there is none that wants to be seen.
        (None, Some(false)) => Reading::Known("none".to_owned()),
        (None, flagged) => by_files(source).map_or_else(|| Reading::Unread(unknown(flagged)), Reading::Known),
    }
}

fn named(letters: &str) -> String {
    let known = SIGNATURES.into_iter().find(|(signature, _)| *signature == letters);
    known.map_or(letters, |(_, name)| name).to_owned()
}

fn by_files(source: &Source) -> Option<String> {
    let xen = source.line("/sys/hypervisor/type");
    if let Reading::Known(kind) = xen {
        return Some(if kind == "xen" { "Xen".to_owned() } else { kind });
    }
    let device_tree = source.line("/sys/firmware/devicetree/base/hypervisor/compatible");
    if let Some(compatible) = device_tree.known() {
        return Some(compatible.split('\0').next().unwrap_or_default().to_owned());
    }
    let firmware: Vec<String> = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| source.line(&format!("/sys/class/dmi/id/{name}")).known().cloned())
        .collect();
    let says = |word: &str| firmware.iter().any(|text| text.contains(word));
    let (_, name) = FIRMWARE.into_iter().find(|(word, _)| says(word))?;
    Some(name.to_owned())
}

fn unknown(flagged: Option<bool>) -> Unread {
    let (cause, place, why) = match flagged {
        Some(_) => (
            Cause::Masked,
            "CPUID leaf 0x40000000",
            "there is one, but it does not say which",
        ),
        None => (
            Cause::Absent,
            "/sys/class/dmi/id",
            "nothing shows whether there is a hypervisor",
        ),
    };
    Unread::new(cause, place, why)
}
