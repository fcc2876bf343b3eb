//! Real guests on this machine's KVM, whatever it is: independent evidence goes together; recorded evidence is replayed in
//! `verdict_tests.rs`, which is where verdicts are held against what is true.
#![allow(clippy::print_stderr)]

use std::sync::atomic::{AtomicBool, Ordering};

use host::snapshot::Mmu;
use host::{Snapshot, Source};
use model::PageKind;
use model::tlb::Verdict;
use model::{Bytes, Reading};

use super::{Spec, run};
use crate::guest::Error;

fn spec() -> Option<Spec> {
    if let Err(why) = vm::Hypervisor::open() {
        testing::skipped(&why.to_string());
        return None;
    }
    Some(Spec {
        kinds: vec![PageKind::Base, PageKind::Thp],
        levels: false,
        cpu: None,
        node: None,
        base_page: Bytes::kib(4),
        pmd_page: Bytes::mib(2),
        mmu: mmu(),
    })
}

fn mmu() -> Reading<Mmu> {
    Snapshot::take(&Source::live()).kvm.mmu
}

/// Runs it, and checks what holds on every machine: what KVM counts goes together with what the kernel says, and every kind has
/// figures or a reason. What timing makes of them depends on layers below and on neighbors, so it is shown and not asserted.
fn goes_together(spec: &Spec) {
    let (guest, warnings) = run(spec, &mut (), &|| false).expect("measures");
    assert_eq!(guest.behind.len(), 2);
    for behind in &guest.behind {
        let Some(why) = &behind.not_measured else {
            let leaves = behind.kvm.expect("KVM counts its leaves");
            assert!(leaves.large == 0 || behind.kind == PageKind::Thp, "{leaves}");
            assert!(
                leaves.large + leaves.small / 32 >= leaves.visited,
                "all were visited: {leaves}"
            );
            assert_eq!(behind.consistent, behind.is_consistent(guest.native.verdict));
            eprintln!(
                "{}: leaves {}, timing says {}, natively {} ({:?})",
                behind.kind, behind.leaf, behind.verdict.verdict, guest.native.verdict, behind.verdict.evidence
            );
            continue;
        };
        assert_eq!(
            (behind.kind, behind.verdict.verdict),
            (PageKind::Thp, Verdict::Unknown),
            "{why}"
        );
    }
    let contradicted = guest.behind.iter().any(|behind| behind.consistent == Some(false));
    assert_eq!(
        contradicted,
        warnings.iter().any(|warning| warning.code == "wrong-backing")
    );
}

#[test]
fn what_is_measured_of_a_guest_goes_together() {
    spec().iter().for_each(goes_together);
}

#[test]
fn what_is_measured_of_a_guest_goes_together_beside_spinning_threads() {
    let Some(spec) = spec() else { return };
    let done = AtomicBool::new(false);
    let memory = vec![1u64; 4 << 20];
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (done, memory) = (&done, &memory);
            scope.spawn(move || {
                // Through caches and TLBs, not just the pipeline.
                let mut at = seed;
                while !done.load(Ordering::Relaxed) {
                    at = (at * 25_214_903_917 + memory[at] as usize) % memory.len();
                }
            });
        }
        let checked = std::panic::catch_unwind(|| goes_together(&spec));
        done.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_contradiction_a_missing_name_and_a_layer_below_are_warnings() {
    let Some(spec) = spec() else { return };
    let none = Spec {
        kinds: vec![PageKind::Hugetlb(Bytes::mib(8))],
        ..spec
    };
    let (mut guest, warnings) = run(&none, &mut (), &|| false).expect("tells what it could not measure");
    assert!(warnings.is_empty(), "the reason stands with the kind: {warnings:?}");
    let behind = &mut guest.behind[0];
    behind.not_measured = None;
    assert_eq!(super::warnings(&guest)[0].code, "backing-unknown");
    guest.behind[0].consistent = Some(false);
    assert_eq!(super::warnings(&guest)[0].code, "wrong-backing");
    let behind = &mut guest.behind[0];
    (behind.leaf, behind.verdict.verdict, behind.consistent) = (Verdict::None, Verdict::Small, None);
    assert_eq!(super::warnings(&guest)[0].code, "splintered-below");
}

#[test]
fn memory_that_cannot_be_had_gives_a_reason_and_a_stop_is_heeded() {
    let Some(spec) = spec() else { return };
    let none = Spec {
        kinds: vec![PageKind::Hugetlb(Bytes::mib(8))],
        ..spec.clone()
    };
    let (guest, _) = run(&none, &mut (), &|| false).expect("tells what it could not measure");
    assert!(guest.behind[0].not_measured.is_some() && guest.behind[0].consistent.is_none());
    assert!(matches!(run(&spec, &mut (), &|| true), Err(Error::Interrupted)));
    let nothing = Spec {
        kinds: Vec::new(),
        ..spec
    };
    assert!(matches!(run(&nothing, &mut (), &|| false), Err(Error::Spec(_))));
}
