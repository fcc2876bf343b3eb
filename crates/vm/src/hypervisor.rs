//! /dev/kvm: opened, and asked whether it can do what a guest needs.

use std::io::ErrorKind;

use kvm_bindings::{CpuId, KVM_API_VERSION, KVM_CAP_BINARY_STATS_FD, KVM_MAX_CPUID_ENTRIES};
use kvm_ioctls::{Cap, Kvm};
use model::guest::GuestPage;

use crate::Error;
use crate::pagetable::Levels;

/// KVM, found to be usable.
#[derive(Debug)]
pub struct Hypervisor {
    kvm: Kvm,
    cpuid: CpuId,
}

impl Hypervisor {
    /// Opens `/dev/kvm`.
    pub fn open() -> Result<Self, Error> {
        let kvm = Kvm::new().map_err(|error| refused(error.errno()))?;
        match kvm.get_api_version() {
            version if version == KVM_API_VERSION as i32 => {}
            other => return Err(Error::Api(other)),
        }
        for (cap, name) in [
            (Cap::UserMemory, "KVM_CAP_USER_MEMORY"),
            (Cap::ExtCpuid, "KVM_CAP_EXT_CPUID"),
        ] {
            if !kvm.check_extension(cap) {
                return Err(Error::Capability(name));
            }
        }
        if kvm.check_extension_raw(KVM_CAP_BINARY_STATS_FD.into()) <= 0 {
            return Err(Error::Capability("KVM_CAP_BINARY_STATS_FD (Linux 5.14)"));
        }
        let cpuid = kvm
            .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
            .map_err(Error::call("read the virtual CPU's features"))?;
        Ok(Self { kvm, cpuid })
    }

    /// Page sizes that the virtual CPU can map, smallest first.
    pub fn guest_pages(&self) -> Vec<GuestPage> {
        GuestPage::ALL
            .into_iter()
            .filter(|&page| page != GuestPage::Size1G || self.has_1g_pages())
            .collect()
    }

    /// As many levels as the host's own tables have, so that walks are alike.
    pub fn levels(&self) -> Levels {
        // CPUID 7.ECX bit 16: LA57. KVM offers it when the host runs with it.
        match self.leaf(7, 0).is_some_and(|leaf| leaf.ecx & 1 << 16 != 0) {
            true => Levels::Five,
            false => Levels::Four,
        }
    }

    /// One past the last guest-physical address.
    pub fn physical_end(&self) -> u64 {
        // CPUID 0x80000008.EAX bits 7:0; without that leaf, 36 bits.
        let bits = self.leaf(0x8000_0008, 0).map_or(36, |leaf| leaf.eax & 0xff);
        1 << bits.clamp(32, 52)
    }

    pub(crate) fn kvm(&self) -> &Kvm {
        &self.kvm
    }

    pub(crate) fn cpuid(&self) -> &CpuId {
        &self.cpuid
    }

    fn has_1g_pages(&self) -> bool {
        // CPUID 0x80000001.EDX bit 26.
        self.leaf(0x8000_0001, 0).is_some_and(|leaf| leaf.edx & 1 << 26 != 0)
    }

    fn leaf(&self, function: u32, index: u32) -> Option<&kvm_bindings::kvm_cpuid_entry2> {
        self.cpuid
            .as_slice()
            .iter()
            .find(|leaf| leaf.function == function && leaf.index == index)
    }
}

fn refused(errno: i32) -> Error {
    let error = std::io::Error::from_raw_os_error(errno);
    match error.kind() {
        ErrorKind::NotFound => Error::Absent,
        ErrorKind::PermissionDenied => Error::Denied,
        // A device node without a driver behind it.
        _ if errno == libc::ENODEV || errno == libc::ENXIO => Error::Absent,
        _ => Error::Open(error),
    }
}

#[cfg(test)]
mod tests {
    use super::refused;
    use crate::Error;

    #[test]
    fn every_way_of_being_refused_has_its_sentence() {
        assert!(matches!(refused(libc::ENOENT), Error::Absent));
        assert!(matches!(refused(libc::ENODEV), Error::Absent));
        assert!(matches!(refused(libc::EACCES), Error::Denied));
        assert!(matches!(refused(libc::EPERM), Error::Denied));
        let busy = refused(libc::EBUSY).to_string();
        assert!(busy.contains("busy"), "{busy}");
    }
}
