//! Any CPUID leaves give a TLB geometry or a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
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
        && let Ok(leaves) = host::snapshot::cpu::Leaves::parse("fuzz", text)
    {
        let again = host::snapshot::cpu::Leaves::parse("fuzz", &leaves.to_string());
        assert_eq!(again, Ok(leaves));
    }
});
