//! What the preload library costs where no huge page is used: interleaved pairs with and without it, written as a table.
//!
//! `cargo bench -p hugewise-compare --bench preload`, in any profile: the measured program is C. About a minute.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::Command;

use compare::preload::Armed;

/// Nanoseconds a round without and with the library.
type Pair = (f64, f64);

fn main() {
    let program = compiled();
    let layout = "thp".parse().expect("a layout");
    let armed = Armed::new(None, &layout, &|_| None).expect("armed");
    println!(
        "| loop | ns a round without | with | ratio, median of pairs | 95 % interval | pairs |\n|---|---|---|---|---|---|"
    );
    let mallocs: Vec<Pair> = (0..300)
        .map(|pair| of_processes(&program, &armed, pair % 2 == 0))
        .collect();
    row("malloc and free of 16 to 2016 bytes, every 64th of 300000", &mallocs);
    for (what, arguments) in [
        ("mmap and munmap of 64 KiB, untouched", ["64", "0", "300", "1500"]),
        ("the same, all pages touched", ["64", "1", "20", "1500"]),
        ("mmap, touch and munmap of 512 KiB", ["512", "1", "3", "1500"]),
    ] {
        row(what, &in_process(&program, &armed, arguments));
    }
    let report = armed.report().expect("counts");
    assert!(
        report.loaded > 0 && report.served.is_empty(),
        "no huge page was to be used: {report:?}"
    );
}

fn compiled() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/preload.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload-loops");
    let compiled = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-ldl")
        .status();
    assert!(compiled.expect("a C compiler").success());
    program
}

fn row(what: &str, pairs: &[Pair]) {
    let (without, with): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ratios: Vec<f64> = pairs.iter().map(|(without, with)| with / without).collect();
    let median = |values: &[f64]| stats::median(values).expect("pairs");
    let ratio = stats::estimate(&ratios).expect("pairs");
    println!(
        "| {what} | {:.1} | {:.1} | {:.4} | [{:.4}, {:.4}] | {} |",
        median(&without),
        median(&with),
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.samples
    );
}

fn output(command: &mut Command) -> String {
    String::from_utf8(command.output().expect("it starts").stdout).expect("text")
}

/// glibc's malloc reaches no hook, so two processes stand side by side, in turns first.
fn of_processes(program: &Path, armed: &Armed, without_first: bool) -> Pair {
    let run = |is_armed: bool| -> f64 {
        let env = armed.env.iter().filter(|_| is_armed).cloned();
        let text = output(Command::new(program).args(["malloc", "200000"]).envs(env));
        text.trim().parse().expect("a number")
    };
    let first = run(!without_first);
    let second = run(without_first);
    if without_first {
        (first, second)
    } else {
        (second, first)
    }
}

/// One process calls the C library's functions and the hooks in turns.
fn in_process(program: &Path, armed: &Armed, arguments: [&str; 4]) -> Vec<Pair> {
    let text = output(
        Command::new(program)
            .arg("mmap")
            .args(arguments)
            .envs(armed.env.iter().cloned()),
    );
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .map(|(without, with)| (without.parse().expect("a number"), with.parse().expect("a number")))
        .collect()
}
