//! Measured latency surfaces of five CPUs beside what is simulated by the CPU table, every point. Nothing is fitted.
//!
//! `cargo bench -p hugewise-translation --bench surfaces` prints a table.
#![allow(clippy::print_stdout)]

#[path = "../tests/surfaces/main.rs"]
#[allow(unused_imports)]
mod measured;

use measured::surfaces;

/// How far the extra clocks of a walk may be off.
const NEAR: f64 = 0.35;

fn main() {
    println!(
        "| CPU | points | rank correlation, windows | random | mean deviation | extra clocks, measured | simulated | off | pairs |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut off: Vec<f64> = Vec::new();
    for surface in surfaces().expect("geometries") {
        let judged = surface.judge(1);
        let [measured, simulated] = judged.extra;
        off.push(simulated / measured - 1.0);
        println!(
            "| {} | {} | {:.3} | {:.3} | {:.1} % | {measured:.1} | {simulated:.1} | {:+.1} % | {} |",
            surface.machine.name,
            judged.points,
            judged.rank[0].1,
            judged.rank[1].1,
            100.0 * judged.error,
            100.0 * (simulated / measured - 1.0),
            judged.pairs
        );
    }
    off.sort_by(f64::total_cmp);
    let near = off.iter().filter(|off| off.abs() <= NEAR).count();
    println!(
        "\nExtra clocks within {:.0} %: {near} of {}; the middle of the signed errors: {:+.1} %.",
        100.0 * NEAR,
        off.len(),
        100.0 * off[off.len() / 2]
    );
}
