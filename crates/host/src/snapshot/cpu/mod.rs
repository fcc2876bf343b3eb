//! The CPU: who it says it is, its caches and TLBs, and the hypervisor under it.

mod array;
mod cache;
mod cpuinfo;
mod descriptors;
mod hypervisor;
mod tlb;

#[cfg(test)]
mod tests;

use model::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Source;
use crate::cpuid::Leaves;
use crate::source::CPUID;
use cpuinfo::CpuInfo;

pub use array::{TlbArray, TlbHolds};
pub use cache::{Cache, CacheHolds};
pub use cpuinfo::FLAGS;
pub use tlb::Tlb;

/// One CPU stands for all: on a machine with different cores this is the first, or the one the program ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// `GenuineIntel`, `AuthenticAMD`, ...; on arm64 the implementer's code, such as `0x41`.
    pub vendor: Reading<String>,
    /// The name it gives itself; on arm64 the name that belongs to its part number.
    pub model_name: Reading<String>,
    /// Family (x86 only).
    pub family: Reading<u32>,
    /// Model (x86), or part number (arm64).
    pub model: Reading<u32>,
    /// Stepping (x86), or revision (arm64).
    pub stepping: Reading<u32>,
    /// Those of its flags that matter here: see [`FLAGS`].
    pub flags: Reading<Vec<String>>,
    /// Bits of a physical address (x86).
    pub physical_bits: Reading<u32>,
    /// Bits of a virtual address (x86).
    pub virtual_bits: Reading<u32>,
    /// Its caches, from the core outwards.
    pub caches: Reading<Vec<Cache>>,
    /// Its TLBs as CPUID reports them; masked if the hypervisor answers with zeros.
    pub tlb: Reading<Tlb>,
    /// The hypervisor's vendor, `none` on bare metal.
    pub hypervisor: Reading<String>,
}

impl Cpu {
    pub(super) fn read(source: &Source) -> Self {
        let info = CpuInfo::read(source);
        let leaves = source.text(CPUID).and_then(|text| Leaves::parse(CPUID, &text));
        Self {
            vendor: info.vendor(),
            model_name: info.model_name(),
            family: info.number("cpu family"),
            model: info.model(),
            stepping: info.stepping(),
            flags: info.flags(),
            physical_bits: info.address_bits("physical"),
            virtual_bits: info.address_bits("virtual"),
            caches: cache::read(source),
            tlb: leaves.as_ref().and_then(tlb::read),
            hypervisor: hypervisor::read(source, &info, &leaves),
        }
    }

    /// Does it have this flag of [`FLAGS`]? Unread where the CPU has no flags of that kind (arm64).
    pub fn has(&self, flag: &str) -> Reading<bool> {
        self.flags.as_ref().map(|flags| flags.iter().any(|has| has == flag))
    }

    /// The hypervisor of a virtual machine, where it is known to be one.
    pub fn guest_of(&self) -> Option<&str> {
        self.hypervisor
            .known()
            .map(String::as_str)
            .filter(|name| *name != "none")
    }

    /// The cache that holds data at this level.
    pub fn data_cache(&self, level: u32) -> Option<&Cache> {
        let caches = self.caches.known()?;
        caches
            .iter()
            .find(|cache| cache.level == level && cache.holds != CacheHolds::Instruction)
    }
}
