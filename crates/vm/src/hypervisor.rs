//! /dev/kvm: opened, and asked whether it can do what a guest needs.

use std::io::ErrorKind;

use kvm_bindings::{CpuId, KVM_API_VERSION, KVM_CAP_BINARY_STATS_FD, KVM_MAX_CPUID_ENTRIES, kvm_cpuid_entry2};
use kvm_ioctls::{Cap, Kvm};
use model::guest::GuestPage;

use crate::boot::{self, Ring};
use crate::pagetable::Levels;
use crate::{Error, syscall};

/// KVM, found to be usable.
#[derive(Debug)]
pub struct Hypervisor {
    kvm: Kvm,
    cpuid: CpuId,
    levels: Levels,
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
        let has_five = offers_five(&cpuid) && syscall::host_has_five_levels() && takes(&kvm, &cpuid, Levels::Five);
        let levels = if has_five { Levels::Five } else { Levels::Four };
        Ok(Self { kvm, cpuid, levels })
    }

    /// Page sizes that the virtual CPU can map, smallest first.
    pub fn guest_pages(&self) -> Vec<GuestPage> {
        GuestPage::ALL
            .into_iter()
            .filter(|&page| page != GuestPage::Size1G || self.has_1g_pages())
            .collect()
    }

    /// As many levels as the host's own tables have, so that walks are alike, if KVM takes them.
    pub fn levels(&self) -> Levels {
        self.levels
    }

    /// One past the last guest-physical address.
    pub fn physical_end(&self) -> u64 {
        // CPUID 0x80000008.EAX bits 7:0; without that leaf, 36 bits.
        let bits = leaf(&self.cpuid, 0x8000_0008).map_or(36, |leaf| leaf.eax & 0xff);
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
        leaf(&self.cpuid, 0x8000_0001).is_some_and(|leaf| leaf.edx & 1 << 26 != 0)
    }
}

/// The first of the entries for a CPUID leaf.
fn leaf(cpuid: &CpuId, function: u32) -> Option<&kvm_cpuid_entry2> {
    let mut leaves = cpuid.as_slice().iter();
    leaves.find(|leaf| (leaf.function, leaf.index) == (function, 0))
}

/// CPUID 7.ECX bit 16: LA57. KVM offers it wherever the CPU has it.
fn offers_five(cpuid: &CpuId) -> bool {
    leaf(cpuid, 7).is_some_and(|leaf| leaf.ecx & 1 << 16 != 0)
}

/// Some KVMs offer five levels and refuse them, as seen with `kvm_pvm`: a virtual CPU is put into them, and runs nothing.
fn takes(kvm: &Kvm, cpuid: &CpuId, levels: Levels) -> bool {
    let enter = || {
        let vm = kvm.create_vm()?;
        let vcpu = vm.create_vcpu(0)?;
        vcpu.set_cpuid2(cpuid)?;
        let fresh = vcpu.get_sregs()?;
        vcpu.set_sregs(&boot::special(&fresh, Ring::User, 0, levels, false))
    };
    enter().is_ok()
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
    use super::{Hypervisor, refused, takes};
    use crate::Error;
    use crate::pagetable::Levels;

    #[test]
    fn every_way_of_being_refused_has_its_sentence() {
        assert!(matches!(refused(libc::ENOENT), Error::Absent));
        assert!(matches!(refused(libc::ENODEV), Error::Absent));
        assert!(matches!(refused(libc::EACCES), Error::Denied));
        assert!(matches!(refused(libc::EPERM), Error::Denied));
        let busy = refused(libc::EBUSY).to_string();
        assert!(busy.contains("busy"), "{busy}");
    }

    /// Four levels go with every CPU in long mode, five with none whose features lack them.
    #[test]
    fn a_trial_of_levels_says_yes_and_no() {
        let Ok(hypervisor) = Hypervisor::open().map_err(|error| testing::skipped(&error.to_string())) else {
            return;
        };
        let Hypervisor { kvm, mut cpuid, .. } = hypervisor;
        assert!(takes(&kvm, &cpuid, Levels::Four));
        let of_features = cpuid.as_mut_slice().iter_mut().filter(|leaf| leaf.function == 7);
        of_features.for_each(|leaf| leaf.ecx &= !(1 << 16));
        assert!(!takes(&kvm, &cpuid, Levels::Five));
    }
}
