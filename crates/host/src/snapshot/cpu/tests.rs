//! CPUID leaves and what they mean; register values are those of the named CPUs.

use model::{Bytes, Cause};
use proptest::prelude::*;

use super::{Leaves, Tlb, TlbArray, TlbHolds, tlb};

const KIB4: Bytes = Bytes::kib(4);
const MIB2: Bytes = Bytes::mib(2);
const GIB1: Bytes = Bytes::gib(1);

const INTEL: &str = "00000000.0 00000020 756e6547 6c65746e 49656e69\n";
const AMD: &str = "00000000.0 00000010 68747541 444d4163 69746e65\n80000000.0 80000021 0 0 0\n";

fn leaves(vendor: &str, rest: &str) -> Leaves {
    Leaves::parse("/hugewise/cpuid", &format!("{vendor}{rest}")).expect("leaves")
}

/// How many pages of this size loads can have translated at this level: the sum of the arrays that hold them.
fn load_entries(tlb: &Tlb, level: u32, page: Bytes) -> Option<u32> {
    let fits = |array: &&TlbArray| array.level == level && array.pages.contains(&page) && array.holds.loads();
    let entries = tlb.arrays.iter().filter(fits).map(|array| array.entries);
    entries.reduce(u32::saturating_add)
}

#[test]
fn golden_cove_tells_by_leaf_18() {
    let leaves = leaves(
        INTEL,
        "00000002.0 00feff01 000000f0 0 0\n\
         00000018.0 8 0 0 0\n\
         00000018.1 0 00080001 20 4022\n\
         00000018.3 0 0010000f 1 4125\n\
         00000018.4 0 00060001 10 4024\n\
         00000018.5 0 00040006 8 4024\n\
         00000018.6 0 00080008 1 4124\n\
         00000018.7 0 00080007 80 4043\n\
         00000018.8 0 00080009 80 4043\n",
    );
    let tlb = tlb::read(&leaves).expect("a TLB");
    assert_eq!(load_entries(&tlb, 1, KIB4), Some(96));
    assert_eq!(load_entries(&tlb, 1, MIB2), Some(32));
    assert_eq!(load_entries(&tlb, 1, GIB1), Some(8));
    assert_eq!(load_entries(&tlb, 2, KIB4), Some(2048));
    assert_eq!(load_entries(&tlb, 2, MIB2), Some(1024));
    assert!(tlb.unread.is_empty());
    let stores = tlb
        .arrays
        .iter()
        .find(|array| array.holds == TlbHolds::Store)
        .expect("stores");
    assert_eq!((stores.entries, stores.ways, stores.pages.len()), (16, 16, 4));
}

#[test]
fn skylake_tells_by_descriptors() {
    let leaves = leaves(INTEL, "00000002.0 76036301 00f0b5ff 00000000 00c30000\n");
    let tlb = tlb::read(&leaves).expect("a TLB");
    assert_eq!(load_entries(&tlb, 1, KIB4), Some(64));
    assert_eq!(load_entries(&tlb, 1, MIB2), Some(32));
    assert_eq!(load_entries(&tlb, 1, GIB1), Some(4));
    assert_eq!(load_entries(&tlb, 2, MIB2), Some(1536));
    assert_eq!(load_entries(&tlb, 2, GIB1), Some(16));
}

#[test]
fn zen_4_tells_by_extended_leaves() {
    let leaves = leaves(
        AMD,
        "80000005.0 ff48ff40 ff48ff40 0 0\n80000006.0 5c002200 6c004200 0 0\n80000019.0 f048f040 60400000 0 0\n",
    );
    let tlb = tlb::read(&leaves).expect("a TLB");
    assert_eq!(load_entries(&tlb, 1, KIB4), Some(72));
    assert_eq!(load_entries(&tlb, 2, KIB4), Some(3072));
    assert_eq!(load_entries(&tlb, 2, MIB2), Some(3072));
    assert_eq!(load_entries(&tlb, 1, GIB1), Some(72));
    assert_eq!(load_entries(&tlb, 2, GIB1), Some(64));
    let stlb = tlb
        .arrays
        .iter()
        .find(|array| array.level == 2 && array.pages == [KIB4])
        .expect("STLB");
    assert_eq!((stlb.ways, stlb.leaf.as_str()), (8, "0x80000006"));
}

/// Zen 5 (family 26, model 2) counts its second level by 32 and says so by bit 14 of leaf 0x80000021's EAX. Hypervisors that do
/// not know the bit clear it: EAX 0x204 was seen.
#[test]
fn zen_5_counts_its_second_level_by_32_whether_or_not_a_hypervisor_hides_the_unit() {
    let told = |family: &str, bits: &str| {
        let rest = format!(
            "00000001.0 {family} 0 0 0\n80000005.0 ff60ff40 ff60ff40 0 0\n80000006.0 50805040 60806040 0 0\n80000021.0 {bits} 0 0 0\n"
        );
        tlb::read(&leaves(AMD, &rest)).expect("a TLB")
    };
    let leaf = |tlb: &super::Tlb| {
        tlb.arrays
            .iter()
            .find(|array| array.level == 2)
            .map(|array| array.leaf.clone())
    };
    let (plain, masked, before) = (
        told("00b00f21", "4204"),
        told("00b00f21", "204"),
        told("00a00f11", "204"),
    );
    assert_eq!(load_entries(&plain, 2, KIB4), Some(4096));
    assert_eq!(leaf(&plain).as_deref(), Some("0x80000006"));
    assert_eq!(load_entries(&masked, 2, KIB4), Some(4096));
    assert!(leaf(&masked).is_some_and(|leaf| leaf.contains("hypervisor hides")));
    assert_eq!(load_entries(&masked, 1, KIB4), Some(96));
    assert_eq!(load_entries(&before, 2, KIB4), Some(128), "Zen 3 counts single entries");
}

#[test]
fn a_family_is_put_together_from_its_parts() {
    let of = |eax: &str| leaves(AMD, &format!("00000001.0 {eax} 0 0 0\n")).family();
    assert_eq!(of("00a00f11"), Some(25));
    assert_eq!(of("00b00f21"), Some(26));
    assert_eq!(of("000806f8"), Some(6));
    assert_eq!(leaves(AMD, "").family(), None);
}

#[test]
fn zeros_are_a_mask_and_not_a_size() {
    let one = leaves(AMD, "80000005.0 ff48ff40 ff48ff40 0 0\n80000019.0 0 0 0 0\n");
    let one = tlb::read(&one).expect("a TLB");
    let reasons: Vec<(Cause, &str)> = one.unread.iter().map(|why| (why.unread, why.place.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (Cause::Absent, "CPUID leaf 0x80000006"),
            (Cause::Masked, "CPUID leaf 0x80000019")
        ]
    );

    let all = leaves(INTEL, "00000002.0 1 0 0 002c307d\n00000018.0 0 0 0 0\n");
    assert_eq!(tlb::read(&all).map_err(|why| why.unread), Err(Cause::Masked));
    assert_eq!(
        tlb::read(&Leaves::default()).map_err(|why| why.unread),
        Err(Cause::Absent)
    );
}

#[test]
fn a_garbled_line_is_named() {
    for line in [
        "00000000 0 0 0 0",
        "0.0 0 0 0",
        "0.0 0 0 0 0 0",
        "x.0 0 0 0 0",
        "0.0 0 0 0 100000000",
    ] {
        let error = Leaves::parse("/hugewise/cpuid", &format!("# leaves\n{line}\n")).expect_err(line);
        assert_eq!(
            (error.unread, error.place.as_str()),
            (Cause::Garbled, "/hugewise/cpuid:2")
        );
    }
    assert!(Leaves::parse("x", "0.0 0 0 0 0\n0.0 0 0 0 0\n").is_err());
}

#[test]
fn the_running_cpu_reads_back_as_written() {
    let live = Leaves::live();
    assert!(!live.vendor().is_empty());
    assert_eq!(Leaves::parse("x", &live.to_string()), Ok(live));
}

proptest! {
    #[test]
    fn any_registers_give_a_tlb_or_a_reason(
        intel in any::<bool>(),
        rows in prop::collection::vec((0_usize..7, 0_u32..4, any::<[u32; 4]>()), 0..12),
    ) {
        let numbers = [2, 0x18, 0x8000_0000_u32, 0x8000_0005, 0x8000_0006, 0x8000_0019, 1];
        let mut text = String::new();
        let mut seen = std::collections::BTreeSet::new();
        for (which, subleaf, [a, b, c, d]) in rows {
            if seen.insert((which, subleaf)) {
                text += &format!("{:x}.{subleaf:x} {a:x} {b:x} {c:x} {d:x}\n", numbers[which]);
            }
        }
        let leaves = leaves(if intel { INTEL } else { "00000000.0 10 68747541 444d4163 69746e65\n" }, &text);
        if let Ok(tlb) = tlb::read(&leaves) {
            prop_assert!(tlb.arrays.iter().all(|array| array.entries > 0 && !array.pages.is_empty()));
        }
    }
}
