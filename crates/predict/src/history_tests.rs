//! Memory is estimated from windows, and what comes between them is warm translation, not warm data.

use std::collections::HashSet;

use model::Bytes;

use super::{PAGE, history};
use crate::trace::Trace;
use crate::trace::own::{Head, Window, write};
use crate::{Part, Replay, replay};
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::study::{Setting, engine};
use translation::{Access, Accesses, Cache, Scatter};

/// One cache of 16 MiB, and TLBs that reach over 16 MiB and 384 KiB of base pages.
fn machine() -> Machine {
    Machine {
        caches: vec![Cache::new(16384, 16)],
        ..Machine::by_id("epyc-9655").expect("known")
    }
}

/// So many windows of random loads over so much memory.
fn windows_of(size: Bytes, count: u64, long: usize, used_pages: Option<u64>) -> Vec<Window> {
    let mut generator = Pattern::Random.threads(size, 1, 1);
    let mut stream = Vec::new();
    let window = |number: u64| {
        while stream.len() < long {
            generator.fill(&mut stream).expect("few regions");
        }
        let accesses: Vec<Access> = stream.drain(..long).collect();
        Window {
            instructions: accesses.len() as u64,
            at_us: number,
            used_pages,
            accesses,
        }
    };
    (0..count).map(window).collect()
}

/// The accesses of windows, and what runs before each.
fn of(windows: Vec<Window>) -> (Vec<Access>, Vec<Vec<Access>>) {
    let mut bytes = Vec::new();
    write(&Head::default(), &windows, &mut bytes).expect("memory");
    let mut trace = Trace::open(&bytes[..], None, false).expect("a trace");
    let between = history(&mut trace, &machine()).expect("read");
    (
        windows.into_iter().flat_map(|window| window.accesses).collect(),
        between,
    )
}

#[test]
fn pages_that_no_window_shows_take_their_turn_and_few_lines_come_again() {
    for size in [Bytes::mib(8), Bytes::mib(256), Bytes::gib(8)] {
        let (windows, history) = of(windows_of(size, 40, 8000, None));
        // Each access is on its own page in one round.
        let (seen, filled) = (pages(&windows), pages(&history.concat()));
        assert!(seen.is_subset(&filled));
        let estimated = size.0 as f64 / 4096.0;
        assert!(
            (0.6..1.4).contains(&(filled.len() as f64 / estimated)),
            "{size}: {} of {estimated}",
            filled.len()
        );
    }
}

fn pages(accesses: &[Access]) -> HashSet<u64> {
    accesses.iter().map(|one| one.address() >> PAGE).collect()
}

#[test]
fn as_many_pages_are_used_as_the_kernel_counted_where_windows_show_too_few_to_tell() {
    // Three windows of a program that used 6 MiB, and later 40 MiB: 30 loads each among others that always are to the same pages.
    for used in [6_000, 10_000] {
        let mut windows = windows_of(Bytes::mib(6), 12, 30, Some(1_500));
        windows.extend(windows_of(Bytes::mib(40), 3, 60, Some(used)));
        for window in &mut windows {
            window
                .accesses
                .extend((0..2000).map(|at| Access::load((at % 40) << PAGE)));
        }
        let (windows, history) = of(windows);
        let (seen, filled) = (pages(&windows), pages(history.last().expect("windows")));
        assert!(
            seen.len() < 600 && seen.is_subset(&pages(&history.concat())),
            "{}",
            seen.len()
        );
        let of_it = filled.len() as f64 / used as f64;
        assert!((0.7..1.3).contains(&of_it), "{} of {used}", filled.len());
    }
}

#[test]
fn a_trace_without_windows_has_no_history() {
    let words: Vec<u8> = (0..1000_u64).flat_map(|word| (word * 64).to_le_bytes()).collect();
    let mut trace = Trace::open(&words[..], Some(crate::trace::TraceFormat::U64), false).expect("a trace");
    assert!(history(&mut trace, &machine()).expect("read").is_empty());
}

/// What table reads and data cost for an access of windows of a program, in a guest on small host pages, and what they cost for the same accesses within its whole
/// run.
fn in_windows_and_whole(pattern: Pattern, size: Bytes, scatter: Option<Scatter>) -> [[f64; 2]; 2] {
    let mut machine = Machine {
        caches: vec![Cache::new(64, 12), Cache::new(2048, 16), Cache::new(32768, 16)],
        ..Machine::by_id("epyc-9655").expect("known")
    };
    machine.scatter = scatter;
    let setting: Setting = "nested:4K/4K".parse().expect("a setting");
    let mut generator = pattern.threads(size, 1, 1);
    let mut stream = Vec::new();
    let mut take = |count: usize| {
        while stream.len() < count {
            generator.fill(&mut stream).expect("few regions");
        }
        stream.drain(..count).collect::<Vec<Access>>()
    };
    let mut run = engine(&machine, setting);
    run.run_stored(&take(2_000_000));
    run.reset_counts();
    let window = |number: u64| {
        let (between, accesses) = (take(40_000), take(4000));
        for accesses in [&between, &accesses] {
            run.run_stored(accesses);
        }
        Window {
            instructions: 12_000,
            at_us: number,
            used_pages: None,
            accesses,
        }
    };
    let windows: Vec<Window> = (0..11).map(window).collect();
    let mut bytes = Vec::new();
    write(&Head::default(), &windows, &mut bytes).expect("memory");
    let open = || Trace::open(&bytes[..], None, false).expect("a trace");
    let asked = Replay {
        baseline: setting,
        settings: vec![setting],
        history: history(&mut open(), &machine).expect("read"),
        machine,
        warm_up: 0,
        accesses: u64::MAX,
        forgets: false,
        curve: false,
    };
    let replayed = Part::sum(&replay(&asked, &mut open(), &|_| {}).expect("a trace").parts);
    [&replayed.kept[0], &run.counts()].map(|counts| {
        let walks = &counts.walkers[0];
        [walks.table_lines, walks.data_lines].map(|lines| {
            let cycles = lines.iter().zip([4.0, 15.0, 60.0, 400.0]);
            cycles.map(|(&lines, cycles)| lines as f64 * cycles).sum::<f64>() / counts.accesses as f64
        })
    })
}

#[test]
fn windows_of_a_program_cost_what_its_whole_run_does_wherever_its_pages_lie() {
    for pattern in [Pattern::Random, Pattern::Zipf] {
        for scatter in [None, Some(Scatter::even(1.0, Bytes::gib(4)))] {
            let [windows, whole] = in_windows_and_whole(pattern, Bytes::mib(192), scatter);
            let off = [0, 1].map(|part| windows[part] / whole[part] - 1.0);
            assert!(
                off[0].abs() < 0.1 && off[1].abs() < 0.2,
                "{pattern:?} {scatter:?}: {windows:?} {whole:?}"
            );
        }
    }
}
