//! Programs of which it is known what huge pages do for them.

use model::Bytes;

use super::super::replay;
use super::{Prediction, Replay, Row, Unknown, settings};
use crate::translation::access::Access;
use crate::translation::engine::{Accesses, Mode};
use crate::translation::machine::Machine;
use crate::translation::patterns::Pattern;
use crate::translation::trace::Trace;
use crate::translation::trace::own::{Core, Head, Window, write};

/// A trace of eight windows of a pattern.
fn predicted(pattern: Pattern, size: Bytes) -> Prediction {
    predicted_on(None, pattern, size)
}

/// Likewise, with what a core makes of each window.
fn predicted_on(core: Option<Core>, pattern: Pattern, size: Bytes) -> Prediction {
    let mut generator = pattern.over(size, 1);
    let window = |at: u64| {
        let mut accesses: Vec<Access> = Vec::new();
        while accesses.len() < 20_000 {
            generator.fill(&mut accesses).expect("few regions");
        }
        Window {
            instructions: 3 * accesses.len() as u64,
            at_us: at,
            used_pages: None,
            core,
            accesses,
        }
    };
    let windows: Vec<Window> = (0..8).map(window).collect();
    let mut bytes = Vec::new();
    write(&Head::default(), &windows, &mut bytes).expect("memory");
    let machine = Machine::by_id("epyc-9654").expect("known");
    let settings = settings(&machine);
    let asked = Replay {
        baseline: settings[0],
        settings,
        machine,
        warm_up: 0,
        accesses: u64::MAX,
        forgets: true,
        history: Vec::new(),
        curve: false,
    };
    let mut trace = Trace::open(&bytes[..], None, false).expect("a trace");
    let replayed = replay(&asked, &mut trace, &|_| {}).expect("a trace");
    asked.prediction("a".to_owned(), trace.head().cloned(), &replayed)
}

fn row(prediction: &Prediction, mode: Mode, guest: Bytes) -> &Row {
    let is_it = |row: &&Row| row.setting.mode == mode && row.setting.guest_page == guest;
    prediction.rows.iter().rfind(is_it).expect("a row")
}

#[test]
fn random_loads_gain_and_more_so_in_a_guest() {
    let prediction = predicted(Pattern::Random, Bytes::gib(1));
    assert_eq!((prediction.windows, prediction.instructions_per_access), (8, Some(3.0)));
    let native = row(&prediction, Mode::Native, Bytes::mib(2)).saves;
    let nested = row(&prediction, Mode::Nested, Bytes::mib(2)).saves;
    assert!(
        native.low > 0.02 && native.low <= native.middle && native.middle <= native.high,
        "{native:?}"
    );
    assert!(nested.middle > native.middle, "{nested:?} {native:?}");
    let base = row(&prediction, Mode::Native, Bytes::kib(4));
    assert_eq!((base.relative.middle, base.saves.high), (1.0, 0.0));
    let guest = prediction
        .rows
        .iter()
        .find(|row| row.setting.mode == Mode::Nested)
        .expect("a row");
    assert!(guest.relative.low > 1.0, "{:?}", guest.relative);
    assert!(!row(&prediction, Mode::Native, Bytes::mib(2)).sensitivity.is_empty());
}

#[test]
fn what_fits_the_tlb_gains_nothing() {
    let prediction = predicted(Pattern::Random, Bytes::kib(128));
    for row in &prediction.rows {
        assert!(row.saves.low > -0.01 && row.saves.high < 0.01, "{:?}", row.saves);
        assert_eq!(
            row.miss_rates.last(),
            Some(&0.0),
            "warm in the second half of each window"
        );
    }
}

#[test]
fn an_interval_holds_what_each_unknown_alone_does() {
    let prediction = predicted(Pattern::Zipf, Bytes::mib(256));
    for row in &prediction.rows {
        for alone in &row.sensitivity {
            let Row { saves, setting, .. } = row;
            assert!(
                saves.low <= alone.low + 0.02 && alone.high <= saves.high + 0.02,
                "{setting}: {alone:?} {saves:?}"
            );
        }
    }
}

#[test]
fn what_a_core_makes_of_the_instructions_takes_the_place_of_the_usual_values() {
    let saved = |core| {
        let prediction = predicted_on(core, Pattern::Random, Bytes::gib(1));
        let swept: Vec<Unknown> = prediction.unknown.iter().map(|sweep| sweep.unknown).collect();
        (
            row(&prediction, Mode::Native, Bytes::mib(2)).saves,
            swept,
            prediction.unknown,
        )
    };
    let core = |cycles: u64, lines: u64, pages: u64| Core {
        cycles: [cycles, cycles + 1, cycles + 2],
        lines: [lines, lines],
        pages: [pages, pages],
    };
    let usual = saved(None);
    assert!(!usual.1.contains(&Unknown::TranslationOverlap));
    let chain = saved(Some(core(20_000, 100, 100)));
    assert!(
        chain
            .1
            .ends_with(&[Unknown::Instruction, Unknown::Overlap, Unknown::TranslationOverlap])
    );
    let instruction = chain.2[chain.2.len() - 3].values;
    // A window is a little longer than 20,000 accesses.
    assert!((0.32..0.334).contains(&instruction.middle), "{instruction:?}");
    // Less is open, and it is where all else is alike.
    assert!(chain.0.high - chain.0.low < usual.0.high - usual.0.low);
    assert!((usual.0.low..=usual.0.high).contains(&chain.0.middle));
    let hidden = saved(Some(core(20_000, 100, 1600))).0.middle;
    let slow = saved(Some(core(60_000 * 50, 100, 100))).0.middle;
    assert!(hidden < chain.0.middle / 3.0, "{hidden} {:?}", chain.0);
    assert!(slow < chain.0.middle, "{slow} {:?}", chain.0);
}
