//! How many accesses a second the simulator takes, by pattern and by what is simulated, on one core.
//!
//! `cargo bench -p hugewise-translation` prints a table: millions of accesses a second, the best of three passes over 20 million accesses that are
//! in memory before. The TLBs are 64 x 4 and 1536 x 12 entries of base pages over 1 GiB, as in the figures of DynamoRIO beside which
//! they are published. Then whole curves of miss ratios.
//!
//! `cargo bench -p hugewise-translation --bench translation -- long` instead runs 1,000 million accesses that are nowhere in memory, and prints what an access
//! costs and how much memory the program has had after 1, 10, 100 and 1,000 million. `-- only WORD` runs the rows whose names contain it.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use model::Bytes;
use translation::patterns::Pattern;
use translation::study::Setting;
use translation::{
    Access, Accesses, Array, BLOCK, Cache, Counts, Engine, Mode, Shards, Shared, WalkCaches, WalkerSpec,
};

const ACCESSES: usize = 20_000_000;
const PASSES: usize = 3;
const BASE: Bytes = Bytes::kib(4);
const PATTERNS: [Pattern; 4] = [Pattern::Random, Pattern::Chase, Pattern::Zipf, Pattern::Stream];

/// What is simulated: a name, the mode, and the walker if there is one.
fn kinds() -> [(&'static str, Mode, Option<WalkerSpec>); 4] {
    let walker = WalkerSpec {
        levels: 4,
        host_levels: 4,
        caches: WalkCaches([32, 4, 2, 0]),
        nested_tlb: 128,
        scatter: None,
        data_caches: Vec::new(),
        shared: Shared::InOrder,
        fetches_ahead: false,
    };
    let caches = WalkerSpec {
        data_caches: vec![Cache::new(64, 12), Cache::new(2048, 16)],
        ..walker.clone()
    };
    [
        ("L1 and L2, exact LRU", Mode::Native, None),
        ("and native walks with page-walk caches", Mode::Native, Some(walker)),
        ("and all lines through two caches", Mode::Native, Some(caches.clone())),
        ("nested walks, with all of that", Mode::Nested, Some(caches)),
    ]
}

fn main() {
    if std::env::args().any(|word| word == "long") {
        return print_long();
    }
    println!("| simulated | {} |", PATTERNS.map(Pattern::name).join(" | "));
    println!("|---|{}", "---|".repeat(PATTERNS.len()));
    let traces = PATTERNS.map(trace);
    let wanted = std::env::args().skip_while(|word| word != "only").nth(1);
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    for (name, mode, walker) in kinds().into_iter().filter(|(name, ..)| is_wanted(name)) {
        let cells = traces.each_ref().map(|trace| {
            let passes: Vec<(f64, Counts)> = (0..PASSES).map(|_| pass(trace, mode, walker.as_ref())).collect();
            let best = passes.iter().map(|(speed, _)| *speed).fold(0.0, f64::max);
            let counts = &passes[0].1;
            let references = counts.walkers.first().map_or(0, |walker| walker.references());
            let each = references as f64 / ACCESSES as f64;
            format!(
                "{best:.1} ({} / {}; {each:.2})",
                counts.levels[0].misses, counts.levels[1].misses
            )
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!("\nMillions of accesses a second (misses of L1 / L2; references per access).\n");
    if wanted.is_none() {
        print_curves(&traces);
    }
}

/// Curves for each number of entries at once, and how far they are from the exact one.
fn print_curves(traces: &[Vec<Access>]) {
    println!("| curve of miss ratios | {} |", PATTERNS.map(Pattern::name).join(" | "));
    println!("|---|{}", "---|".repeat(PATTERNS.len()));
    let new = [
        ("exact (Mattson)", 1, usize::MAX),
        ("of 2,048 pages at most", PASSES, 2048),
    ];
    let sizes: Vec<u64> = (7..18).map(|power| 1 << power).collect();
    let mut exact: Vec<Vec<f64>> = Vec::new();
    for (name, passes, most) in new {
        let mut cells = Vec::new();
        for (number, trace) in traces.iter().enumerate() {
            let (mut best, mut curve) = (0.0_f64, Shards::new(BASE, most));
            for _ in 0..passes {
                curve = Shards::new(BASE, most);
                let begun = Instant::now();
                trace.chunks(BLOCK).for_each(|block| curve.block(block));
                best = best.max(speed(begun));
            }
            let ratios: Vec<f64> = sizes.iter().map(|&entries| curve.miss_ratio(entries)).collect();
            if exact.len() == number {
                exact.push(ratios.clone());
            }
            let errors = ratios
                .iter()
                .zip(&exact[number])
                .map(|(ratio, exact)| (ratio - exact).abs());
            cells.push(format!("{best:.0} ({:.4})", errors.fold(0.0, f64::max)));
        }
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!("\nMillions of accesses a second (the most that a ratio is off, at 128 to 131,072 entries).\n");
}

/// Does an access cost more in a long run, or memory grow with it?
fn print_long() {
    println!("| pattern | accesses | ns an access since the row before | most memory, MiB |\n|---|---:|---:|---:|");
    for pattern in [Pattern::Random, Pattern::Zipf] {
        let (_, mode, walker) = &kinds()[2];
        let (mut engine, mut accesses) = (machine(*mode, walker.as_ref()), pattern.threads(Bytes::gib(1), 42, 1));
        let mut done = 0_u64;
        for until in [1, 10, 100, 1000_u64].map(|millions| millions * 1_000_000) {
            let begun = Instant::now();
            engine.run(&mut accesses, until - done).expect("one region");
            let each = begun.elapsed().as_secs_f64() * 1e9 / (until - done) as f64;
            done = until;
            println!(
                "| {} | {} million | {each:.1} | {} |",
                pattern.name(),
                until / 1_000_000,
                most_memory()
            );
        }
    }
}

/// MiB that this process has had in memory at most, as Linux counts them.
fn most_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.map_or("unknown".to_owned(), |kib| format!("{:.1}", kib / 1024.0))
}

/// Millions of accesses a second.
fn speed(begun: Instant) -> f64 {
    ACCESSES as f64 / begun.elapsed().as_secs_f64() / 1e6
}

fn trace(pattern: Pattern) -> Vec<Access> {
    let (mut generator, mut all) = (
        pattern.threads(Bytes::gib(1), 42, 1),
        Vec::with_capacity(ACCESSES + BLOCK),
    );
    let mut block = Vec::with_capacity(BLOCK);
    while all.len() < ACCESSES {
        block.clear();
        generator.fill(&mut block).expect("patterns do not fail");
        all.extend_from_slice(&block);
    }
    all.truncate(ACCESSES);
    all
}

fn machine(mode: Mode, walker: Option<&WalkerSpec>) -> Engine {
    let arrays = [Array::new(1, &[BASE], 16, 4), Array::new(2, &[BASE], 128, 12)];
    let walkers = walker.map(std::slice::from_ref).unwrap_or_default();
    Engine::new(&arrays, Setting::new(mode, BASE, BASE), walkers)
}

fn pass(trace: &[Access], mode: Mode, walker: Option<&WalkerSpec>) -> (f64, Counts) {
    let mut engine = machine(mode, walker);
    let begun = Instant::now();
    engine.run_stored(trace);
    (speed(begun), engine.counts())
}
