//! Measured latency surfaces of five CPUs beside simulated ones, every point: what was fitted to half of them, and how well the others come out.
//!
//! `cargo bench -p hugewise-translation --bench surfaces` prints two tables; it takes some minutes. Latencies that are alike, as of the third cache and memory on a CPU with two, are one.
#![allow(clippy::print_stdout)]

#[path = "../tests/surfaces/main.rs"]
#[allow(unused_imports)]
mod measured;

use measured::{Judged, Surface, surfaces};

fn main() {
    let surfaces = surfaces().expect("geometries");
    let judged: Vec<(Surface, Judged)> = surfaces
        .into_iter()
        .map(|surface| {
            let judged = surface.judge(1);
            (surface, judged)
        })
        .collect();
    println!("Fitted to half of the points, in core cycles:\n");
    println!(
        "| CPU | points | L1 | L2 | L3 | memory | L2 TLB hit | walk | page-table read, of a load | last cache | mean deviation |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|");
    for (surface, judged) in &judged {
        let costs = judged.costs;
        let cells = costs.latencies.map(|latency| format!("{latency:.1}"));
        println!(
            "| {} | {} | {} | {:.1} | {:.1} | {:.2} | {:?} | {:.1} % |",
            surface.machine.name,
            judged.fitted,
            cells.join(" | "),
            costs.l2_tlb_hit,
            costs.walk,
            costs.walk_reads,
            judged.replacement,
            100.0 * costs.error
        );
    }
    println!("\nJudged on the other half:\n");
    println!(
        "| CPU | points | rank correlation, windows | random | mean deviation | extra clocks, measured | simulated | off | pairs |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (surface, judged) in &judged {
        let [measured, simulated] = judged.extra;
        println!(
            "| {} | {} | {:.3} | {:.3} | {:.1} % | {measured:.1} | {simulated:.1} | {:+.1} % | {} |",
            surface.machine.name,
            judged.judged,
            judged.rank[0].1,
            judged.rank[1].1,
            100.0 * judged.error,
            100.0 * (simulated / measured - 1.0),
            judged.pairs
        );
    }
}
