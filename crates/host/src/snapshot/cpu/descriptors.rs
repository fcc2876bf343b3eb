//! The one-byte TLB descriptors of CPUID leaf 2 (Intel SDM volume 2, CPUID, "Encoding of CPUID Leaf 2 Descriptors").

use model::Bytes;

use super::array::{GIB1, KIB4, MIB2, MIB4, TlbArray, TlbHolds};

use TlbHolds::{Data, Instruction, Unified};

type Row = (u8, u32, TlbHolds, &'static [Bytes], u32, u32);

/// Descriptor, level, what it holds, page sizes, entries, ways. Descriptors without stated ways are left out; two rows
/// with one descriptor are two arrays.
const TABLE: [Row; 36] = [
    (0x01, 1, Instruction, &[KIB4], 32, 4),
    (0x02, 1, Instruction, &[MIB4], 2, 2),
    (0x03, 1, Data, &[KIB4], 64, 4),
    (0x04, 1, Data, &[MIB4], 8, 4),
    (0x05, 1, Data, &[MIB4], 32, 4),
    (0x0b, 1, Instruction, &[MIB4], 4, 4),
    (0x55, 1, Instruction, &[MIB2, MIB4], 7, 7),
    (0x56, 1, Data, &[MIB4], 16, 4),
    (0x57, 1, Data, &[KIB4], 16, 4),
    (0x59, 1, Data, &[KIB4], 16, 16),
    (0x5a, 1, Data, &[MIB2, MIB4], 32, 4),
    (0x61, 1, Instruction, &[KIB4], 48, 48),
    (0x63, 1, Data, &[MIB2, MIB4], 32, 4),
    (0x63, 1, Data, &[GIB1], 4, 4),
    (0x64, 1, Data, &[KIB4], 512, 4),
    (0x6a, 1, Data, &[KIB4], 64, 8),
    (0x6b, 1, Data, &[KIB4], 256, 8),
    (0x6c, 1, Data, &[MIB2, MIB4], 128, 8),
    (0x6d, 1, Data, &[GIB1], 16, 16),
    (0x76, 1, Instruction, &[MIB2, MIB4], 8, 8),
    (0xa0, 1, Data, &[KIB4], 32, 32),
    (0xb0, 1, Instruction, &[KIB4], 128, 4),
    (0xb1, 1, Instruction, &[MIB2], 8, 4),
    (0xb2, 1, Instruction, &[KIB4], 64, 4),
    (0xb3, 1, Data, &[KIB4], 128, 4),
    (0xb4, 1, Data, &[KIB4], 256, 4),
    (0xb5, 1, Instruction, &[KIB4], 64, 8),
    (0xb6, 1, Instruction, &[KIB4], 128, 8),
    (0xba, 1, Data, &[KIB4], 64, 4),
    (0xc0, 1, Data, &[KIB4, MIB4], 8, 4),
    (0xc1, 2, Unified, &[KIB4, MIB2], 1024, 8),
    (0xc2, 1, Data, &[KIB4, MIB2], 16, 4),
    (0xc3, 2, Unified, &[KIB4, MIB2], 1536, 6),
    (0xc3, 2, Unified, &[GIB1], 16, 4),
    (0xc4, 1, Data, &[MIB2, MIB4], 32, 4),
    (0xca, 2, Unified, &[KIB4], 512, 4),
    // Descriptors of caches, which sysfs reports better, and 0xfe ("see leaf 0x18") name no TLB.
];

/// The arrays that a descriptor stands for; none for caches and unknown ones.
pub(super) fn arrays(descriptor: u8) -> impl Iterator<Item = TlbArray> {
    let rows = TABLE.iter().filter(move |row| row.0 == descriptor && descriptor != 0);
    rows.map(|&(descriptor, level, holds, pages, entries, ways)| TlbArray {
        level,
        holds,
        pages: pages.to_vec(),
        entries,
        ways,
        leaf: format!("0x2:{descriptor:#04x}"),
    })
}
