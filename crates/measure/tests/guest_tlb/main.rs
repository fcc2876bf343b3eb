//! The host-backing detector of `measure tlb` where the truth is known, inside guests: its logic, and one run on this machine's KVM. What timing
//! names depends on layers below and on contention: it is shown here, and asserted on recorded evidence in `verdict.rs`.
#![allow(clippy::print_stderr)]

mod entries;
mod inside;
mod verdict;
mod walks;

use std::sync::atomic::{AtomicBool, Ordering};

use host::{Snapshot, Source};
use inside::Machine;
use inside::verdict::Outcome;
use model::{Bytes, PageKind};
use vm::Hypervisor;

fn machine() -> Option<Machine> {
    match Hypervisor::open() {
        Ok(hypervisor) => Some(Machine::new(hypervisor, &Snapshot::take(&Source::live()))),
        Err(why) => {
            testing::skipped(&why.to_string());
            None
        }
    }
}

/// What holds on every machine: KVM's counts agree with what the kernel reports, and every kind has figures or a reason.
fn check(machine: &Machine) {
    for kind in [PageKind::Base, PageKind::Thp] {
        match machine.measure(kind) {
            Ok(row) => {
                let leaves = row.leaves.expect("KVM counts its leaves");
                assert!(leaves.large == 0 || kind == PageKind::Thp, "{leaves:?}");
                assert!(
                    leaves.large + leaves.small / 32 >= leaves.visited,
                    "all were visited: {leaves:?}"
                );
                let outcome = Outcome::of(row.truth, row.named.verdict, machine.native.verdict);
                assert_eq!(row.outcome, outcome);
                eprintln!("{kind}: {row:?}, natively {}", machine.native.verdict);
            }
            Err(why) => assert_eq!(kind, PageKind::Thp, "{why}"),
        }
    }
}

#[test]
fn what_is_measured_of_a_guest_is_consistent() {
    machine().iter().for_each(check);
}

#[test]
fn what_is_measured_of_a_guest_is_consistent_beside_spinning_threads() {
    let Some(machine) = machine() else { return };
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
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&machine)));
        done.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn memory_that_is_not_available_gives_a_reason() {
    let Some(machine) = machine() else { return };
    let none = machine.measure(PageKind::Hugetlb(Bytes::mib(8)));
    assert!(!none.expect_err("no such pages").to_string().is_empty());
}
