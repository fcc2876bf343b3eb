//! CPUID leaves as a value: read from the CPU or from a capture, understood by the same code.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use model::Unread;
use raw_cpuid::CpuIdResult as Registers;

use crate::parse;

/// Registers by leaf and subleaf. Its text has a line `LEAF.SUBLEAF EAX EBX ECX EDX` each, in hex.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaves(BTreeMap<(u32, u32), Registers>);

/// The lowest number of each range; that leaf's EAX names the range's highest.
const BASIC: u32 = 0;
const HYPERVISOR: u32 = 0x4000_0000;
pub(crate) const EXTENDED: u32 = 0x8000_0000;

/// What is recorded: leaves, and the number of their subleaves. Leaf 3 is left out, for it can hold a serial number.
const RECORDED: [(RangeInclusive<u32>, u32); 13] = [
    (BASIC..=0x2, 1),
    (0x4..=0x4, 8),
    (0x6..=0x6, 1),
    (0x7..=0x7, 2),
    (0xa..=0xa, 1),
    (0x15..=0x16, 1),
    (0x18..=0x18, 16),
    (HYPERVISOR..=HYPERVISOR + 1, 1),
    (EXTENDED..=EXTENDED + 8, 1),
    (EXTENDED + 0xa..=EXTENDED + 0xa, 1),
    (EXTENDED + 0x19..=EXTENDED + 0x19, 1),
    (EXTENDED + 0x1d..=EXTENDED + 0x1d, 8),
    (EXTENDED + 0x21..=EXTENDED + 0x21, 1),
];

impl Leaves {
    /// Asks the CPU that this happens to run on.
    pub fn live() -> Self {
        use raw_cpuid::native_cpuid::cpuid_count;

        let has_hypervisor = cpuid_count(1, 0).ecx >> 31 == 1;
        let highest = |leaf: u32| match leaf {
            HYPERVISOR..EXTENDED if !has_hypervisor => 0,
            HYPERVISOR..EXTENDED => cpuid_count(HYPERVISOR, 0).eax.max(HYPERVISOR),
            EXTENDED.. => cpuid_count(EXTENDED, 0).eax,
            _ => cpuid_count(BASIC, 0).eax,
        };
        let exists = |&(leaf, _): &(u32, u32)| leaf <= highest(leaf);
        let leaves = |(leaves, count): (RangeInclusive<u32>, _)| leaves.map(move |leaf| (leaf, count));
        let subleaves = |(leaf, count)| (0..count).map(move |subleaf| (leaf, subleaf));
        let ask = |(leaf, subleaf)| ((leaf, subleaf), cpuid_count(leaf, subleaf));
        let existing = RECORDED.into_iter().flat_map(leaves).filter(exists);
        let all = existing.flat_map(subleaves).map(ask);
        Self(
            all.filter(|((_, subleaf), registers)| *subleaf == 0 || !registers.all_zero())
                .collect(),
        )
    }

    /// Reads the text form; lines that start with `#` are comments.
    ///
    /// # Errors
    /// A line that is not five hex numbers, or whose leaf was given before.
    pub fn parse(path: &str, text: &str) -> Result<Self, Unread> {
        let mut leaves = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let wanted = "`LEAF.SUBLEAF EAX EBX ECX EDX` in hex";
            let (key, registers) = parse_line(line).ok_or_else(|| parse::garbled(path, index, "", wanted, line))?;
            if leaves.insert(key, registers).is_some() {
                return Err(parse::garbled(path, index, "", "a new leaf", line));
            }
        }
        Ok(Self(leaves))
    }

    /// The registers of a leaf, if it was recorded.
    pub fn get(&self, leaf: u32, subleaf: u32) -> Option<Registers> {
        self.0.get(&(leaf, subleaf)).copied()
    }

    /// Does the CPU say that it knows this leaf?
    pub fn covers(&self, leaf: u32) -> bool {
        let range = leaf & 0xf000_0000;
        self.get(range, 0).is_some_and(|registers| leaf <= registers.eax)
    }

    /// The family, as leaf 1 puts it together from base and extended parts.
    pub fn family(&self) -> Option<u32> {
        let eax = self.get(1, 0)?.eax;
        let (base, extended) = (eax >> 8 & 0xf, eax >> 20 & 0xff);
        Some(if base == 0xf { base + extended } else { base })
    }

    /// The vendor's twelve letters, such as `GenuineIntel`.
    pub fn vendor(&self) -> String {
        let registers = self.get(BASIC, 0);
        registers.map_or_else(String::new, |registers| {
            text(&[registers.ebx, registers.edx, registers.ecx])
        })
    }

    /// The hypervisor's twelve letters, such as `KVMKVMKVM`; `None` without a hypervisor bit.
    pub fn hypervisor(&self) -> Option<String> {
        let present = self.get(1, 0).is_some_and(|registers| registers.ecx >> 31 == 1);
        let registers = self.get(HYPERVISOR, 0).filter(|_| present)?;
        Some(text(&[registers.ebx, registers.ecx, registers.edx]))
    }
}

impl fmt::Display for Leaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((leaf, subleaf), r) in &self.0 {
            writeln!(
                f,
                "{leaf:08x}.{subleaf:x} {:08x} {:08x} {:08x} {:08x}",
                r.eax, r.ebx, r.ecx, r.edx
            )?;
        }
        Ok(())
    }
}

fn parse_line(line: &str) -> Option<((u32, u32), Registers)> {
    let (key, registers) = line.split_once(' ')?;
    let (leaf, subleaf) = key.split_once('.')?;
    let hex = |word: &str| u32::from_str_radix(word, 16).ok();
    let words: Option<Vec<u32>> = registers.split_whitespace().map(hex).collect();
    let [eax, ebx, ecx, edx] = words?[..] else {
        return None;
    };
    Some(((hex(leaf)?, hex(subleaf)?), Registers { eax, ebx, ecx, edx }))
}

pub(crate) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn text(words: &[u32]) -> String {
    let bytes = bytes(words);
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned()
}
