//! What the kernel and the CPU say: CPUID leaves, accounts of processes, statistics of KVM.

use host::processes::{smaps, status};

/// Any leaves give a TLB geometry without empty arrays, or a reason; leaves that are read come back from their text.
pub(crate) fn cpuid(bytes: &[u8]) {
    let machine = host::Tree::new().file(host::source::CPUID, bytes);
    let snapshot = host::Snapshot::take(&host::Source::from_tree("fuzz", machine));
    if let Some(tlb) = snapshot.cpu.tlb.known() {
        assert!(
            tlb.arrays
                .iter()
                .all(|array| array.entries > 0 && !array.pages.is_empty())
        );
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(leaves) = host::cpuid::Leaves::parse("fuzz", text)
    {
        let again = host::cpuid::Leaves::parse("fuzz", &leaves.to_string());
        assert_eq!(again, Ok(leaves));
    }
}

/// Any bytes as the accounts of a process: mappings, sums and status, or an error.
pub(crate) fn smaps(bytes: &[u8]) {
    if let Ok(mappings) = smaps::parse("/proc/1/smaps", bytes) {
        for mapping in &mappings {
            let _ = (mapping.size(), mapping.backing(), mapping.to_pages());
        }
    }
    if let Ok(counts) = smaps::parse_rollup("/proc/1/smaps_rollup", bytes) {
        let _ = (counts.thp(), counts.hugetlb, counts.transparent());
    }
    let _ = host::processes::areas::parse_maps("/proc/1/maps", bytes);
    let _ = status::Status::parse("/proc/1/status", bytes).has_memory();
    let line = String::from_utf8_lossy(bytes);
    let _ = host::processes::Stat::parse(&line);
    let _ = line.parse::<host::CpuList>();
}

/// Statistics of KVM, in the kernel's binary form: numbers or an error.
pub(crate) fn kvm_stats(bytes: &[u8]) {
    let _ = vm::stats::parse(bytes);
}

/// One number, called `pages_2m`: a header of six words, a descriptor with its name, the value.
pub(crate) fn statistics() -> Vec<Vec<u8>> {
    let words = [0_u32, 16, 1, 24, 24, 56].map(u32::to_ne_bytes).concat();
    let descriptor = [&[0; 6][..], &1_u16.to_ne_bytes(), &[0; 8], b"pages_2m\0\0\0\0\0\0\0\0"].concat();
    let whole = [words, descriptor, 7_u64.to_ne_bytes().to_vec()].concat();
    assert!(vm::stats::parse(&whole).is_ok());
    vec![whole]
}
