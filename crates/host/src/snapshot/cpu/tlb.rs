//! TLB geometry from CPUID: Intel's leaves 2 and 0x18, AMD's 0x8000_0005, 0x8000_0006 and 0x8000_0019.

use model::{Bytes, Cause, Unread};
use raw_cpuid::CpuIdResult as Registers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::array::{GIB1, KIB4, MIB2, MIB4, TlbArray, TlbHolds};
use super::descriptors;
use crate::cpuid::{EXTENDED, Leaves, bytes};

/// All translation caches that the CPU reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tlb {
    /// The arrays, from the core outwards.
    pub arrays: Vec<TlbArray>,
    /// Leaves that should describe more and do not.
    pub unread: Vec<Unread>,
}

/// Everything that the vendor's leaves report.
///
/// # Errors
/// Masked when the leaves are there and all of them answer with zeros; absent when there are none.
pub(super) fn read(leaves: &Leaves) -> Result<Tlb, Unread> {
    let told = match leaves.vendor().as_str() {
        "AuthenticAMD" | "HygonGenuine" => amd(leaves),
        _ => intel(leaves),
    };
    let mut tlb = Tlb {
        arrays: Vec::new(),
        unread: Vec::new(),
    };
    for leaf in told {
        match leaf {
            Ok(arrays) => tlb.arrays.extend(arrays),
            Err(why) => tlb.unread.push(why),
        }
    }
    tlb.arrays.sort_by_key(|array| array.level);
    let Some(first) = tlb.unread.first().filter(|_| tlb.arrays.is_empty()) else {
        return Ok(tlb);
    };
    let masked = tlb.unread.iter().find(|why| why.unread == Cause::Masked);
    Err(masked.unwrap_or(first).clone())
}

type Told = Result<Vec<TlbArray>, Unread>;

fn place(leaf: u32) -> String {
    format!("CPUID leaf {leaf:#x}")
}

/// A leaf's registers; zeros where the CPU claims to know the leaf are a mask.
fn ask(leaves: &Leaves, leaf: u32) -> Result<Registers, Unread> {
    let registers = leaves.get(leaf, 0).filter(|_| leaves.covers(leaf));
    match registers {
        None => Err(Unread::new(Cause::Absent, place(leaf), "")),
        Some(registers) if registers.all_zero() => {
            Err(Unread::new(Cause::Masked, place(leaf), "the leaf answers with zeros"))
        }
        Some(registers) => Ok(registers),
    }
}

fn intel(leaves: &Leaves) -> Vec<Told> {
    vec![ask(leaves, 2).and_then(by_descriptor), by_subleaf(leaves)]
}

/// This descriptor sends to leaf 0x18.
const SEE_LEAF_18: u8 = 0xfe;

/// Leaf 2: each byte is a descriptor, but for the lowest of EAX; a register with its highest bit set holds none.
fn by_descriptor(registers: Registers) -> Told {
    let Registers { eax, ebx, ecx, edx } = registers;
    let valid = [eax & !0xff, ebx, ecx, edx].map(|word| if word >> 31 == 0 { word } else { 0 });
    let bytes = bytes(&valid);
    let arrays: Vec<TlbArray> = bytes.iter().copied().flat_map(descriptors::arrays).collect();
    match arrays.is_empty() && !bytes.contains(&SEE_LEAF_18) {
        true => Err(Unread::new(Cause::Masked, place(2), "no descriptor names a TLB")),
        false => Ok(arrays),
    }
}

/// Leaf 0x18: one array per subleaf ("deterministic address translation", Intel SDM volume 2, CPUID).
fn by_subleaf(leaves: &Leaves) -> Told {
    let first = ask(leaves, 0x18)?;
    // EAX of subleaf 0 names the highest subleaf; no CPU has 32.
    let subleaves = (0..=first.eax.min(31)).filter_map(|subleaf| Some((subleaf, leaves.get(0x18, subleaf)?)));
    let arrays: Vec<TlbArray> = subleaves
        .filter_map(|(subleaf, registers)| array(subleaf, registers))
        .collect();
    match arrays.is_empty() {
        true => Err(Unread::new(Cause::Masked, place(0x18), "no subleaf describes a TLB")),
        false => Ok(arrays),
    }
}

fn array(subleaf: u32, Registers { ebx, ecx, edx, .. }: Registers) -> Option<TlbArray> {
    let holds = match edx & 0x1f {
        1 => TlbHolds::Data,
        2 => TlbHolds::Instruction,
        3 => TlbHolds::Unified,
        4 => TlbHolds::Load,
        5 => TlbHolds::Store,
        _ => return None,
    };
    let ways = ebx >> 16;
    let entries = ways.checked_mul(ecx)?;
    let sizes = [KIB4, MIB2, MIB4, GIB1].into_iter().enumerate();
    let pages: Vec<Bytes> = sizes
        .filter(|(bit, _)| ebx >> bit & 1 == 1)
        .map(|(_, size)| size)
        .collect();
    (entries > 0 && !pages.is_empty()).then(|| TlbArray {
        level: edx >> 5 & 7,
        holds,
        pages,
        entries,
        ways: if edx >> 8 & 1 == 1 { entries } else { ways },
        leaf: format!("0x18.{subleaf}"),
    })
}

/// One register's two arrays: their leaf, their level, their pages, and the register.
type AmdRow = (u32, u32, &'static [Bytes], fn(Registers) -> u32);

/// AMD64 Architecture Programmer's Manual volume 3, appendix E.
const AMD: [AmdRow; 6] = [
    (EXTENDED + 5, 1, &[KIB4], |of| of.ebx),
    (EXTENDED + 5, 1, &[MIB2, MIB4], |of| of.eax),
    (EXTENDED + 6, 2, &[KIB4], |of| of.ebx),
    (EXTENDED + 6, 2, &[MIB2, MIB4], |of| of.eax),
    (EXTENDED + 0x19, 1, &[GIB1], |of| of.eax),
    (EXTENDED + 0x19, 2, &[GIB1], |of| of.ebx),
];

/// What the entries of AMD's second level are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Single entries.
    One,
    /// 32 of them: CPUID leaf 0x8000_0021, EAX bit 14, `L2TlbSizeX32` (AMD64 Architecture Programmer's Manual volume 3).
    Told32,
    /// The same, although the hypervisor clears that bit: family and model say so.
    Hidden32,
}

/// The first AMD family whose second level is counted by 32: Zen 5.
const COUNTED_BY_32: u32 = 26;

impl Unit {
    fn of(leaves: &Leaves) -> Self {
        let by_32 = leaves.get(EXTENDED + 0x21, 0).is_some_and(|of| of.eax >> 14 & 1 == 1);
        let family = leaves.family().unwrap_or(0);
        match by_32 {
            true => Self::Told32,
            false if family >= COUNTED_BY_32 => Self::Hidden32,
            false => Self::One,
        }
    }

    /// Entries of so many units. A number that is large already was multiplied by the hypervisor, or is none of units.
    fn entries(self, count: u32) -> (u32, Self) {
        /// No CPU has so many units of 32.
        const MANY: u32 = 1024;
        match self {
            Self::Told32 => (count * 32, self),
            Self::Hidden32 if count < MANY => (count * 32, self),
            _ => (count, Self::One),
        }
    }

    fn note(self) -> &'static str {
        match self {
            Self::Hidden32 => {
                ", counted in units of 32 as this CPU's family does; the hypervisor hides the bit that says so (leaf 0x80000021)"
            }
            Self::One | Self::Told32 => "",
        }
    }
}

fn amd(leaves: &Leaves) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    for row in AMD {
        let (leaf, level, _, register) = row;
        let unit = if level == 2 { Unit::of(leaves) } else { Unit::One };
        let arrays = ask(leaves, leaf).map(|registers| {
            let word = register(registers);
            let halves = [(TlbHolds::Data, word >> 16), (TlbHolds::Instruction, word & 0xffff)];
            let arrays = halves
                .into_iter()
                .filter_map(|(holds, half)| amd_array(row, holds, half, unit));
            arrays.collect()
        });
        // A masked leaf has several rows and is named once.
        if !told.contains(&arrays) || arrays.is_ok() {
            told.push(arrays);
        }
    }
    told
}

/// Leaf 5 has eight bits each for ways and entries; the others four for a code and twelve for entries.
fn amd_array((leaf, level, pages, _): AmdRow, holds: TlbHolds, half: u32, unit: Unit) -> Option<TlbArray> {
    let (counted, unit) = unit.entries(half & 0xfff);
    let (entries, ways) = if leaf == EXTENDED + 5 {
        let entries = half & 0xff;
        (entries, if half >> 8 == 0xff { entries } else { half >> 8 })
    } else {
        (counted, ways_of_code(half >> 12, counted))
    };
    (entries > 0).then(|| TlbArray {
        level,
        holds,
        pages: pages.to_vec(),
        entries,
        ways,
        leaf: format!("{leaf:#x}{}", unit.note()),
    })
}

/// AMD's associativity codes; a code stands for a range of ways from this one up. 0 where it has no meaning.
fn ways_of_code(code: u32, entries: u32) -> u32 {
    match code {
        code @ 1..=4 => code,
        5 => 6,
        6 => 8,
        8 => 16,
        0xa => 32,
        0xb => 48,
        0xc => 64,
        0xd => 96,
        0xe => 128,
        0xf => entries,
        _ => 0,
    }
}
