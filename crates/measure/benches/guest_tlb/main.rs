//! Validates the host-backing detector of `measure tlb` where the truth is known: inside guests whose host pages are chosen.
//!
//! `cargo bench -p hugewise-measure --bench guest_tlb -- [RUNS]` (default 3; about three seconds for a run of a kind). Huge
//! guest pages are backed by base, thp and hugetlb-2M memory in turn. KVM counts the page-table leaves that it makes of them.
#![allow(clippy::print_stdout)]

mod inside;

use std::error::Error;

use chase::thread::Pinned;
use host::{Snapshot, Source};
use inside::Machine;
use model::PageKind;
use vm::Hypervisor;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`.
    let runs = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(3);
    let hypervisor = match Hypervisor::open() {
        Ok(hypervisor) => hypervisor,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(());
        }
    };
    let _pinned = Pinned::to(None)?;
    let machine = Machine::new(hypervisor, &Snapshot::take(&Source::live()))?;
    println!(
        "natively, outside of any guest, timing names {}",
        machine.native.verdict
    );
    println!("| run | asked | KVM's leaves | truth | timing names | confidence | outcome | evidence |");
    println!("|---|---|---|---|---|---|---|---|");
    for run in 1..=runs {
        for kind in [PageKind::Base, PageKind::Thp, PageKind::HUGETLB_2M] {
            match machine.measure(kind) {
                Ok(row) => println!(
                    "| {run} | {kind} | {} | {} | {} | {:.2} | {} | {} |",
                    row.leaves
                        .map_or_else(|| "not counted".to_owned(), |leaves| leaves.to_string()),
                    row.truth,
                    row.named.verdict,
                    row.named.confidence,
                    row.outcome,
                    row.named.evidence.join("; ")
                ),
                Err(why) => println!("| {run} | {kind} | | | | | not measured | {why} |"),
            }
        }
    }
    Ok(())
}
