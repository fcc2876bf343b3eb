//! `/proc/cpuinfo`: the first CPU's fields.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use model::{Cause, Reading, Unread};

use crate::{Source, parse};

const CPUINFO: &str = "/proc/cpuinfo";

/// The CPU flags that have to do with translation, virtualization and clocks.
pub const FLAGS: [&str; 17] = [
    "clwb",
    "constant_tsc",
    "hypervisor",
    "invpcid",
    "la57",
    "nonstop_tsc",
    "nx",
    "pae",
    "pcid",
    "pdpe1gb",
    "pge",
    "pku",
    "pse",
    "rdtscp",
    "sme",
    "svm",
    "vmx",
];

/// Fields of the first CPU with their line numbers, counted from 0.
pub(super) struct CpuInfo(Reading<BTreeMap<String, (usize, String)>>);

/// Server cores by implementer and part number (Arm's `MIDR_EL1`; names as in the kernel's `cputype.h`).
const ARM_PARTS: [(u32, u32, &str); 14] = [
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "Kunpeng-920"),
    (0x50, 0x000, "X-Gene"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

impl CpuInfo {
    pub(super) fn read(source: &Source) -> Self {
        Self(source.text(CPUINFO).map(|text| first_block(&text)))
    }

    pub(super) fn text(&self, name: &str) -> Reading<String> {
        self.field(name).map(|(_, value)| value).into()
    }

    pub(super) fn number(&self, name: &str) -> Reading<u32> {
        self.parsed(name, number).into()
    }

    pub(super) fn vendor(&self) -> Reading<String> {
        self.either("vendor_id", "CPU implementer", Self::text)
    }

    pub(super) fn model(&self) -> Reading<u32> {
        self.either("model", "CPU part", Self::number)
    }

    pub(super) fn stepping(&self) -> Reading<u32> {
        self.either("stepping", "CPU revision", Self::number)
    }

    /// arm64 gives numbers instead of a name.
    pub(super) fn model_name(&self) -> Reading<String> {
        let named = self.text("model name");
        let (implementer, part) = (self.number("CPU implementer"), self.number("CPU part"));
        match (&named, implementer, part) {
            (Reading::Unread(_), Reading::Known(implementer), Reading::Known(part)) => {
                let known = ARM_PARTS.into_iter().find(|row| (row.0, row.1) == (implementer, part));
                let unnamed = || format!("implementer {implementer:#x} part {part:#x}");
                Reading::Known(known.map_or_else(unnamed, |(.., name)| name.to_owned()))
            }
            _ => named,
        }
    }

    /// Those of [`FLAGS`] that the CPU has.
    pub(super) fn flags(&self) -> Reading<Vec<String>> {
        self.text("flags").map(|flags| {
            let ours: BTreeSet<&str> = flags.split(' ').filter(|flag| FLAGS.contains(flag)).collect();
            ours.into_iter().map(str::to_owned).collect()
        })
    }

    /// From a field such as `46 bits physical, 48 bits virtual`.
    pub(super) fn address_bits(&self, kind: &str) -> Reading<u32> {
        let name = "address sizes";
        let bits = self.parsed(name, |text| {
            let part = text.split(',').find(|part| part.trim_end().ends_with(kind))?;
            part.split_whitespace().next()?.parse().ok()
        });
        bits.into()
    }

    fn either<T>(&self, x86: &str, arm: &str, get: fn(&Self, &str) -> Reading<T>) -> Reading<T> {
        let own = get(self, x86);
        match get(self, arm) {
            known @ Reading::Known(_) if own.is_absent() => known,
            _ => own,
        }
    }

    fn field(&self, name: &str) -> Result<(usize, String), Unread> {
        let fields = self.0.as_ref().into_result()?;
        let absent = || Unread::new(Cause::Absent, format!("{CPUINFO}: {name}"), "");
        fields.get(name).cloned().ok_or_else(absent)
    }

    fn parsed<T: FromStr>(&self, name: &str, parser: impl Fn(&str) -> Option<T>) -> Result<T, Unread> {
        let (index, text) = self.field(name)?;
        parser(&text).ok_or_else(|| parse::garbled(CPUINFO, index, name, "of the known form", &text))
    }
}

fn first_block(text: &str) -> BTreeMap<String, (usize, String)> {
    let lines = text.lines().enumerate().take_while(|(_, line)| !line.trim().is_empty());
    lines
        .filter_map(|(index, line)| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), (index, value.trim().to_owned())))
        })
        .collect()
}

/// Decimal, or hex after `0x`.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
