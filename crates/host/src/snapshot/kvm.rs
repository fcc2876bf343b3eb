//! `/dev/kvm`: may it be used, which module serves it, and how guest addresses are translated.

use model::{Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Source;
use crate::source::DEV_KVM;

/// What this machine offers to run guests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kvm {
    /// May this user open the device? Denied and absent say why not.
    pub device: Reading<bool>,
    /// `kvm_intel`, `kvm_amd` or `kvm_pvm`.
    pub module: Reading<String>,
    /// How guest addresses are translated.
    pub mmu: Reading<Mmu>,
    /// May guests have guests of their own?
    pub nested: Reading<bool>,
    /// Are huge pages that a guest executes from split (the iTLB multihit mitigation)? As the kernel writes it.
    pub nx_huge_pages: Reading<String>,
    /// Is the two-dimensional page table kept by the newer MMU code?
    pub tdp_mmu: Reading<bool>,
    /// May guests be backed by pages of 1M? On s390x alone.
    #[serde(default = "no_hpage")]
    pub hpage: Reading<bool>,
}

const HPAGE: &str = "/sys/module/kvm/parameters/hpage";

fn no_hpage() -> Reading<bool> {
    Reading::absent(HPAGE)
}

model::names! {
    /// How a guest's addresses become the host's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Mmu, "a way to translate guest addresses" {
        /// Two-dimensional walks in Intel hardware.
        Ept = "ept",
        /// Two-dimensional walks in AMD hardware.
        Npt = "npt",
        /// Shadow page tables on Intel hardware.
        ShadowVmx = "shadow-vmx",
        /// Shadow page tables on AMD hardware.
        ShadowSvm = "shadow-svm",
        /// Shadow page tables without hardware support (PVM).
        ShadowPvm = "shadow-pvm",
    }
}

/// The modules that can serve the device: name, parameter of two-dimensional paging, MMU with and without it.
const MODULES: [(&str, Option<&str>, Mmu, Mmu); 3] = [
    ("kvm_intel", Some("ept"), Mmu::Ept, Mmu::ShadowVmx),
    ("kvm_amd", Some("npt"), Mmu::Npt, Mmu::ShadowSvm),
    ("kvm_pvm", None, Mmu::ShadowPvm, Mmu::ShadowPvm),
];

impl Mmu {
    /// Does hardware walk both tables at each miss?
    pub fn is_nested_paging(self) -> bool {
        matches!(self, Self::Ept | Self::Npt)
    }
}

impl Kvm {
    pub(super) fn read(source: &Source) -> Self {
        let loaded = |name: &str| source.list(&format!("/sys/module/{name}")).known().is_some();
        let serving = MODULES.into_iter().find(|(name, ..)| loaded(name));
        let no_module = || Unread::new(model::Cause::Absent, "/sys/module/kvm_*", "no such module is loaded");
        let shared = "/sys/module/kvm/parameters";
        let own = serving.map_or("kvm", |(name, ..)| name);
        Self {
            device: source.line(DEV_KVM).map(|access| access == "rw"),
            module: serving.map(|(name, ..)| name.to_owned()).ok_or_else(no_module).into(),
            mmu: serving.map_or_else(
                || Reading::Unread(no_module()),
                |(name, parameter, with, without)| match parameter {
                    Some(parameter) => source
                        .switch(&format!("/sys/module/{name}/parameters/{parameter}"))
                        .map(|on| if on { with } else { without }),
                    None => Reading::Known(without),
                },
            ),
            nested: source.switch(&format!("/sys/module/{own}/parameters/nested")),
            nx_huge_pages: source.line(&format!("{shared}/nx_huge_pages")),
            tdp_mmu: source.switch(&format!("{shared}/tdp_mmu")),
            hpage: source.switch(HPAGE),
        }
    }
}
