//! Programs of which it is known what huge pages do for them.

use model::Bytes;
use model::latency::Frames;

use super::{Prediction, Replay, Row, settings};
use crate::open::MODEL;
use crate::trace::Trace;
use crate::trace::own::{Head, Window, write};
use crate::{history, replay};
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::study::Setting;
use translation::{Access, Accesses, Mode};

/// A trace of eight windows of a pattern.
fn predicted(pattern: Pattern, size: Bytes) -> Prediction {
    predicted_with(&Head::default(), pattern, size)
}

fn predicted_with(head: &Head, pattern: Pattern, size: Bytes) -> Prediction {
    let mut generator = pattern.threads(size, 1, 1);
    let window = |at: u64| {
        let mut accesses: Vec<Access> = Vec::new();
        while accesses.len() < 20_000 {
            generator.fill(&mut accesses).expect("few regions");
        }
        Window {
            instructions: 3 * accesses.len() as u64,
            at_us: at,
            used_pages: None,
            accesses,
        }
    };
    let windows: Vec<Window> = (0..8).map(window).collect();
    let mut bytes = Vec::new();
    write(head, &windows, &mut bytes).expect("memory");
    let machine = Machine::by_id("epyc-9654").expect("known");
    let settings = settings(&machine);
    let mut asked = Replay {
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
    asked.lay_pages(trace.head.as_ref());
    let replayed = replay(&asked, &mut trace, &|_| {}).expect("a trace");
    asked.prediction("a".to_owned(), trace.head.clone(), &replayed, None)
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
        native.low > 0.02 - MODEL && native.low <= native.middle && native.middle <= native.high,
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
    assert!(guest.relative.low > 1.0 - MODEL, "{:?}", guest.relative);
    assert!(!row(&prediction, Mode::Native, Bytes::mib(2)).sensitivity.is_empty());
}

/// Each base page of a guest then has its own line of the host's page table, where eight in order share one.
#[test]
fn where_the_base_pages_of_the_program_lay_counts_in_a_guest_alone() {
    let head = Head {
        frames: Frames::of((0..1 << 17).map(|page| page * 7)),
        ..Head::default()
    };
    let [in_order, scattered] = [&Head::default(), &head].map(|head| {
        let prediction = predicted_with(head, Pattern::Random, Bytes::mib(256));
        let nested = |row: &&Row| row.setting == Setting::new(Mode::Nested, Bytes::mib(2), Bytes::kib(4));
        let nested = prediction.rows.iter().find(nested).expect("a row").saves.middle;
        (row(&prediction, Mode::Native, Bytes::mib(2)).saves.middle, nested)
    });
    assert_eq!(in_order.0, scattered.0);
    assert!(scattered.1 > in_order.1 + 0.01, "{in_order:?} {scattered:?}");
}

#[test]
fn what_fits_the_tlb_gains_nothing() {
    let prediction = predicted(Pattern::Random, Bytes::kib(128));
    for row in &prediction.rows {
        assert!(
            row.saves.low > -0.01 - MODEL && row.saves.high < 0.01 + MODEL,
            "{:?}",
            row.saves
        );
        assert_eq!(
            row.miss_rates.last(),
            Some(&0.0),
            "warm in the second half of each window"
        );
    }
}

/// A blocked matrix product of 14 MiB, by `hugewise trace --window 2000`; the kernel counted fewer pages between its windows than the second level has
/// entries. Its machine has walks that are as expensive as any that were fitted under contention.
#[test]
fn a_program_that_hardly_walks_is_predicted_near_zero_on_a_machine_with_expensive_walks() {
    let text = "like = 'epyc-9655'\nwalk_reads = 1.8\nwalk_cycles = 400\nl2_tlb_hit_cycles = 7\n\
                latency_cycles = { l1 = 4, l2 = 14, l3 = 60, mem = 600 }\n";
    let machine = Machine::parse("expensive.toml", text).expect("a machine");
    let trace: &[u8] = include_bytes!("../data/matrix-product.trace");
    let open = || Trace::open(trace, None, false).expect("a trace");
    let settings = settings(&machine);
    let asked = Replay {
        baseline: settings[0],
        history: history(&mut open(), &machine).expect("a trace"),
        settings,
        machine,
        warm_up: 0,
        accesses: u64::MAX,
        forgets: true,
        curve: false,
    };
    let replayed = replay(&asked, &mut open(), &|_| {}).expect("a trace");
    for row in asked.prediction("a".to_owned(), None, &replayed, None).rows {
        assert!(row.saves.middle.abs() < 0.01, "{}: {:?}", row.setting, row.saves);
        assert!(row.saves.high < 0.03 + MODEL, "{}: {:?}", row.setting, row.saves);
    }
}

#[test]
fn what_is_saved_and_the_times_of_two_rows_agree() {
    let prediction = predicted(Pattern::Zipf, Bytes::mib(256));
    for mode in [Mode::Native, Mode::Nested, Mode::Shadow] {
        let base = prediction
            .rows
            .iter()
            .find(|row| row.setting.mode == mode)
            .expect("a row");
        for row in prediction.rows.iter().filter(|row| row.setting.mode == mode) {
            let saved = 1.0 - row.relative.middle / base.relative.middle;
            assert!(
                (saved - row.saves.middle).abs() < 1e-9,
                "{}: {saved} {:?}",
                row.setting,
                row.saves
            );
        }
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
