//! Measured latency surfaces of CPUs beside what is simulated by the CPU table, every point. Nothing is fitted.
//!
//! `cargo bench -p hugewise-translation --bench surfaces` prints two tables.
#![allow(clippy::print_stdout)]

#[path = "../tests/surfaces/main.rs"]
#[allow(unused_imports)]
mod measured;

use measured::{Surface, surfaces, unseen};

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
        print!(
            "| {} | {} | {:.3} | {:.3} | {:.1} % ",
            surface.machine.name,
            judged.points,
            judged.rank[0].1,
            judged.rank[1].1,
            100.0 * judged.error
        );
        off.push(walks((judged.extra, judged.pairs)));
    }
    summed(off);
    println!("\nOf CPUs that the model was not made with:\n");
    println!("| CPU | extra clocks, measured | simulated | off | pairs |\n|---|---:|---:|---:|---:|");
    let unseen = unseen().expect("geometries");
    let one = |surface: &Surface| {
        print!("| {} ", surface.machine.name);
        walks(surface.walks())
    };
    summed(unseen.iter().map(one).collect());
}

/// The rest of a row, and how far simulated clocks are off.
fn walks(([measured, simulated], pairs): ([f64; 2], usize)) -> f64 {
    let off = simulated / measured - 1.0;
    println!("| {measured:.1} | {simulated:.1} | {:+.1} % | {pairs} |", 100.0 * off);
    off
}

fn summed(mut off: Vec<f64>) {
    off.sort_by(f64::total_cmp);
    println!(
        "\nExtra clocks within {:.0} %: {} of {}; the middle of the signed errors: {:+.1} %.",
        100.0 * NEAR,
        off.iter().filter(|off| off.abs() <= NEAR).count(),
        off.len(),
        100.0 * f64::midpoint(off[(off.len() - 1) / 2], off[off.len() / 2])
    );
}
