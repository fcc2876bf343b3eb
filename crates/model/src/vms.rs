//! Virtual machines that run on a host, and what backs their memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Backing, Bytes, PageKind, Reading};

/// One running virtual machine, known by the process that runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Vm {
    /// Process id.
    pub pid: u32,
    /// The program: `qemu`, `cloud-hypervisor`, `firecracker`, or the name of another process that holds a KVM machine.
    pub program: String,
    /// The virtual machine's name, if its command line has one.
    pub name: Option<String>,
    /// Does it run under KVM (or else by interpretation)?
    pub kvm: Reading<bool>,
    /// What its command line or configuration file asks for.
    pub configured: Reading<Configured>,
    /// Resident bytes of its memory by page kind, from smaps of the mappings that hold it.
    pub backing: Reading<Backing>,
    /// Address space of those mappings.
    pub mapped: Bytes,
    /// How those mappings were identified: `by size` or `largest`.
    pub found: Option<String>,
    /// Pages that KVM maps for the guest right now, by size.
    pub kvm_pages: Reading<KvmPages>,
    /// Where what it has is not what it was configured for, in sentences.
    pub mismatches: Vec<String>,
}

/// What a virtual machine was started with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configured {
    /// The pieces of its memory.
    pub memory: Vec<Region>,
    /// Is all memory brought in at the start?
    pub prealloc: bool,
    /// Can other processes map the memory (vhost-user, live updates)?
    pub shared: bool,
}

/// One piece of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Its size.
    pub size: Bytes,
    /// The page kind asked for; `null` if that is left to the host's THP policy.
    pub kind: Option<PageKind>,
}

/// Pages in KVM's own tables: what the CPU walks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KvmPages {
    /// 4 KiB pages.
    pub pages_4k: u64,
    /// 2 MiB pages.
    pub pages_2m: u64,
    /// 1 GiB pages.
    pub pages_1g: u64,
}

impl KvmPages {
    /// The share of mapped bytes in pages larger than 4 KiB; `None` if nothing is mapped.
    pub fn large_share(&self) -> Option<f64> {
        let large = (self.pages_2m << 21) + (self.pages_1g << 30);
        let all = large + (self.pages_4k << 12);
        (all > 0).then(|| large as f64 / all as f64)
    }
}

impl Configured {
    /// All of its memory.
    pub fn total(&self) -> Bytes {
        Bytes(self.memory.iter().map(|region| region.size.0).sum())
    }
}
