//! Real guests on this machine's KVM: the verdict is right or missing, in quiet and beside spinning threads.
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

/// Runs it, and checks that no backing got a wrong name and that what was measured agrees with KVM.
fn never_wrong(spec: &Spec) {
    let (guest, doubts) = run(spec, &mut (), &|| false).expect("measures");
    assert_eq!(guest.behind.len(), 2);
    for behind in &guest.behind {
        assert_ne!(behind.right, Some(false), "{behind:#?}");
        let Some(why) = &behind.not_measured else {
            let leaves = behind.kvm.expect("KVM counts its leaves");
            assert!(leaves.large == 0 || behind.kind == PageKind::Thp, "{leaves}");
            assert!(
                leaves.large + leaves.small / 32 >= leaves.visited,
                "all were visited: {leaves}"
            );
            eprintln!(
                "{}: {} ({:?})",
                behind.kind, behind.verdict.verdict, behind.verdict.evidence
            );
            continue;
        };
        assert_eq!(
            (behind.kind, behind.verdict.verdict),
            (PageKind::Thp, Verdict::Unknown),
            "{why}"
        );
    }
    assert!(doubts.iter().all(|doubt| doubt.code != "wrong-backing"));
}

#[test]
fn no_backing_gets_a_wrong_name() {
    spec().iter().for_each(never_wrong);
}

#[test]
fn no_backing_gets_a_wrong_name_beside_spinning_threads() {
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
        let checked = std::panic::catch_unwind(|| never_wrong(&spec));
        done.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_wrong_name_and_a_missing_one_are_doubts() {
    let Some(spec) = spec() else { return };
    let none = Spec {
        kinds: vec![PageKind::Hugetlb(Bytes::mib(8))],
        ..spec
    };
    let (mut guest, doubts) = run(&none, &mut (), &|| false).expect("tells what it could not measure");
    assert!(doubts.is_empty(), "the reason stands with the kind: {doubts:?}");
    let behind = &mut guest.behind[0];
    behind.not_measured = None;
    assert_eq!(super::doubts(&guest)[0].code, "backing-unknown");
    guest.behind[0].right = Some(false);
    assert_eq!(super::doubts(&guest)[0].code, "wrong-backing");
}

#[test]
fn memory_that_cannot_be_had_gives_a_reason_and_a_stop_is_heeded() {
    let Some(spec) = spec() else { return };
    let none = Spec {
        kinds: vec![PageKind::Hugetlb(Bytes::mib(8))],
        ..spec.clone()
    };
    let (guest, _) = run(&none, &mut (), &|| false).expect("tells what it could not measure");
    assert!(guest.behind[0].not_measured.is_some() && guest.behind[0].right.is_none());
    assert!(matches!(run(&spec, &mut (), &|| true), Err(Error::Interrupted)));
    let nothing = Spec {
        kinds: Vec::new(),
        ..spec
    };
    assert!(matches!(run(&nothing, &mut (), &|| false), Err(Error::Spec(_))));
}
