//! Guests whose memory is pinned for a device of the host (VFIO). Pure.

use model::Bytes;

use super::configured::options;
use super::{cloud_hypervisor, qemu};

/// Does a program of this name start guests that can have devices of the host?
pub(crate) fn assigns(program: &str) -> bool {
    matches!(program, "cloud-hypervisor" | "crosvm") || qemu::is_program(program)
}

/// What of a guest's memory is pinned for devices of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    All,
    /// What a mediated device uses of it.
    Used,
}

/// Is memory of this guest pinned? Behind an IOMMU of Cloud Hypervisor or crosvm only what the guest maps is. QEMU pins all of it at
/// start, as its IOMMU translates nothing before the guest's driver switches it on.
pub fn pins(argv: &[String]) -> Option<Pinned> {
    let devices = options(argv, "device");
    let is_mediated = |text: &str| text.contains("vfio-pci") && text.contains("sysfsdev");
    let is_whole = |text: &str| !text.contains("iommu=on") && !is_mediated(text);
    let is_of_host = |text: &str| text.contains("vfio-pci") || text.contains("path=/sys/");
    let by_crosvm = options(argv, "vfio").iter().any(|text| !text.contains("iommu="));
    let is_all = by_crosvm || devices.iter().any(|text| is_of_host(text) && is_whole(text));
    let is_used = devices.iter().any(|text| is_mediated(text));
    match (is_all, is_used) {
        (true, _) => Some(Pinned::All),
        (false, true) => Some(Pinned::Used),
        (false, false) => None,
    }
}

/// The memory of the guest that a command line starts, if all of it is pinned.
pub(crate) fn memory(argv: &[String]) -> Option<Bytes> {
    size(argv).filter(|_| pins(argv) == Some(Pinned::All))
}

/// The memory of a guest that can have devices of the host.
pub fn size(argv: &[String]) -> Option<Bytes> {
    let program = argv.first()?.rsplit('/').next().unwrap_or_default();
    if !assigns(program) {
        return None;
    }
    let parts = match program {
        "crosvm" => return of_crosvm(argv),
        "cloud-hypervisor" => cloud_hypervisor::asked(argv).memory,
        _ => qemu::parse(argv).memory,
    };
    let sum: Bytes = parts.iter().map(|(size, _)| *size).sum();
    (sum.0 > 0).then_some(sum)
}

/// `--mem 4096` or `--mem size=4096`, in MiB.
fn of_crosvm(argv: &[String]) -> Option<Bytes> {
    let given = options(argv, "mem");
    let first = given.last()?.split(',').next()?;
    let mib: u64 = first.strip_prefix("size=").unwrap_or(first).parse().ok()?;
    Some(Bytes::mib(mib))
}
