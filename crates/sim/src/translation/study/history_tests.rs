//! Memory is estimated from windows, and what comes between them is warm translation, not warm data.

use model::Bytes;

use super::{LINE, PAGE, history};
use crate::translation::access::Access;
use crate::translation::caches::Cache;
use crate::translation::engine::Accesses;
use crate::translation::machine::Machine;
use crate::translation::patterns::Pattern;
use crate::translation::trace::Trace;
use crate::translation::trace::own::{Head, Window, write};

/// One cache of 16 MiB, and TLBs that reach over 16 MiB and 384 KiB of base pages.
fn machine() -> Machine {
    Machine {
        caches: vec![Cache::lru(16384, 16)],
        ..Machine::by_id("epyc-9655").expect("known")
    }
}

/// Random loads over so much memory in 40 windows, and their history.
fn of(size: Bytes) -> (Vec<Access>, Vec<Access>) {
    let mut generator = Pattern::Random.over(size, 1);
    let mut window = |number: u64| {
        let mut accesses: Vec<Access> = Vec::new();
        while accesses.len() < 8000 {
            generator.fill(&mut accesses).expect("few regions");
        }
        Window {
            instructions: accesses.len() as u64,
            at_us: number,
            accesses,
        }
    };
    let windows: Vec<Window> = (0..40).map(&mut window).collect();
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
fn pages_come_again_and_lines_as_often_as_the_last_cache_may_hold_them() {
    for (size, stay) in [
        (Bytes::mib(8), 1.0),
        (Bytes::mib(64), 0.25),
        (Bytes::mib(256), 1.0 / 16.0),
    ] {
        let (windows, between) = of(size);
        assert_eq!(windows.len(), between.len());
        let same = |shift: u32| {
            let both = windows.iter().zip(&between);
            both.filter(|(one, other)| one.address() >> shift == other.address() >> shift)
                .count() as f64
                / windows.len() as f64
        };
        // Eight pages share a line of the page table.
        assert_eq!(same(PAGE + 3), 1.0);
        let pages = same(PAGE);
        assert!((pages / stay - 1.0).abs() < 0.15, "{size}: {pages}");
        // Of lines those that stay in their page, and pages that stay.
        let lines = same(LINE);
        assert!((lines / (stay * stay) - 1.0).abs() < 0.2, "{size}: {lines}");
    }
}

#[test]
fn a_trace_without_windows_has_no_history() {
    let words: Vec<u8> = (0..1000_u64).flat_map(|word| (word * 64).to_le_bytes()).collect();
    let mut trace = Trace::open(&words[..], Some(crate::translation::trace::TraceFormat::U64), false).expect("a trace");
    assert!(history(&mut trace, &machine()).expect("read").is_empty());
}
