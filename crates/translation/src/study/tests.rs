//! Studies give what hand calculation gives, and say what they do not know.

use model::Bytes;

use super::{Setting, Simulation, Study, StudyError, Unknown, curves, possible, run};
use crate::Mode;
use crate::engine::BLOCK;
use crate::machine::Machine;
use crate::patterns::Pattern;

const BASE: Bytes = Bytes::kib(4);
const LARGE: Bytes = Bytes::mib(2);

fn native(page: Bytes) -> Setting {
    Setting::new(Mode::Native, page, page)
}

fn guest(mode: Mode, guest: Bytes, host: Bytes) -> Setting {
    Setting::new(mode, guest, host)
}

fn study(machine: &str, pattern: Pattern, settings: &[Setting]) -> Study {
    Study {
        machine: Machine::by_id(machine).expect("known"),
        pattern,
        working_sets: vec![Bytes::mib(256)],
        settings: settings.to_vec(),
        baseline: settings[0],
        accesses: 60_000,
        warm_up: 60_000,
        seed: 1,
    }
}

fn result(study: &Study) -> Simulation {
    run(study, &|_, _| {}).expect("possible")
}

#[test]
fn pages_and_modes_are_ordered_as_they_must_be() {
    let settings = [
        native(BASE),
        native(LARGE),
        guest(Mode::Nested, BASE, BASE),
        guest(Mode::Nested, LARGE, LARGE),
        guest(Mode::Nested, LARGE, BASE),
        guest(Mode::Shadow, BASE, BASE),
    ];
    let result = result(&study("xeon-8452y", Pattern::Random, &settings));
    let [base, large, nested, nested_large, splintered, shadow] = &result.cases[..] else {
        panic!("six cases")
    };
    assert_eq!(
        (base.relative.low, base.relative.middle, base.relative.high),
        (1.0, 1.0, 1.0)
    );
    assert!(large.relative.middle < 1.0 && nested.relative.low > 1.0, "{result:#?}");
    assert!(nested_large.relative.middle < nested.relative.middle);
    assert_eq!(splintered.entry, BASE, "the host's page splinters the guest's");
    assert_eq!(splintered.miss_rates, nested.miss_rates);
    assert!(splintered.references.middle < nested.references.middle);
    assert_eq!(shadow.references, base.references);
    assert!(shadow.exits.hidden_faults > 0 && shadow.cycles.exits.middle > 0.0 && nested.cycles.exits.middle == 0.0);
    assert_eq!((base.reach, large.reach), (Bytes::mib(8), Bytes::gib(2)));
    for case in &result.cases {
        let relative = case.relative;
        assert!(
            relative.low <= relative.middle && relative.middle <= relative.high,
            "{case:?}"
        );
    }
}

#[test]
fn what_is_not_known_is_swept_and_what_is_known_is_not() {
    let of = |machine: &str| {
        let result = result(&study(machine, Pattern::Chase, &[native(BASE), native(LARGE)]));
        let unknown: Vec<Unknown> = result.unknown.iter().map(|sweep| sweep.unknown).collect();
        let sensitive: Vec<Unknown> = result.cases[1].sensitivity.iter().map(|case| case.unknown).collect();
        assert!(
            sensitive.iter().all(|name| unknown.contains(name)),
            "{sensitive:?} of {unknown:?}"
        );
        unknown
    };
    assert_eq!(
        of("skylake-sp"),
        [Unknown::WalkCaches, Unknown::L2TlbHit, Unknown::Walk]
    );
    let spr = of("xeon-8452y");
    for unknown in [Unknown::L2Latency, Unknown::L3Latency, Unknown::MemoryLatency] {
        assert!(spr.contains(&unknown), "{spr:?}");
    }
    let text =
        "like = 'skylake-sp'\nwalk_caches = [32, 4, 2, 0]\nnested_tlb = 16\nl2_tlb_hit_cycles = 9\nwalk_cycles = 10\n";
    let machine = Machine::parse("all-known.toml", text).expect("a machine");
    let result = result(&Study {
        machine,
        ..study("skylake-sp", Pattern::Chase, &[native(BASE), native(LARGE)])
    });
    assert_eq!(result.unknown, []);
    assert!(
        result
            .cases
            .iter()
            .all(|case| case.relative.is_exact() && case.sensitivity.is_empty())
    );
}

#[test]
fn cycles_of_a_stream_are_those_of_its_lines() {
    // 64 KiB in a first level of 32 KiB: of 8 loads of a line one waits for the second level.
    let study = Study {
        working_sets: vec![Bytes::kib(64)],
        ..study("skylake-sp", Pattern::Stream, &[native(BASE)])
    };
    let case = &result(&study).cases[0];
    assert_eq!((case.cycles.data.middle, case.cycles.middle()), (5.25, 5.25));
    assert_eq!(case.miss_rates, [0.0, 0.0]);
}

/// A TLB of one set, in front of nothing: its misses are a point of the curve, warmed up likewise.
#[test]
fn a_curve_has_the_misses_of_fully_associative_tlbs() {
    for (pattern, entries) in [(Pattern::Zipf, 64), (Pattern::Random, 1024), (Pattern::Stride, 16)] {
        let text = format!(
            "[[tlb]]\nlevel = 1\nkind = 'data'\npages = ['4K', '2M']\nentries = {entries}\nways = {entries}\n[[cache]]\nlevel = 1\nkind = 'data'\nkib = 32\nways = 8\n"
        );
        let study = Study {
            machine: Machine::parse("one-set.toml", &text).expect("a machine"),
            working_sets: vec![Bytes::mib(32)],
            // Whole blocks: the engine leaves out the rest of the last one.
            warm_up: 30 * BLOCK as u64,
            ..study("skylake-sp", pattern, &[native(BASE), native(LARGE)])
        };
        let simulated = result(&study).cases;
        let curves = curves(&study);
        assert_eq!((curves.len(), simulated.len()), (2, 2));
        for (curve, case) in curves.iter().zip(&simulated) {
            assert_eq!(
                (curve.working_set, curve.entry, curve.followed),
                (case.working_set, case.entry, 1.0)
            );
            let point = curve.points.iter().find(|point| point.entries == entries);
            assert_eq!(
                point.and_then(|point| point.miss_rate),
                Some(case.miss_rates[0]),
                "{pattern:?}"
            );
            let rates: Vec<f64> = curve.points.iter().filter_map(|point| point.miss_rate).collect();
            assert!(
                rates.len() == 14 && rates.is_sorted_by(|few, many| few >= many),
                "{rates:?}"
            );
        }
        assert!(simulated[0].miss_rates[0] > simulated[1].miss_rates[0]);
    }
}

/// Four million pages are more than are followed: what a few entries would hold is not known then, and is not made up.
#[test]
fn a_curve_of_a_sample_says_what_it_does_not_resolve() {
    let study = Study {
        working_sets: vec![Bytes::gib(16)],
        ..study("skylake-sp", Pattern::Random, &[native(BASE)])
    };
    let curve = &curves(&study)[0];
    assert!(curve.followed < 0.5, "{}", curve.followed);
    for point in &curve.points {
        let is_resolved = point.entries as f64 * curve.followed >= 1.0;
        assert_eq!(point.miss_rate.is_some(), is_resolved, "{point:?}");
    }
    assert!(
        curve
            .points
            .last()
            .and_then(|point| point.miss_rate)
            .is_some_and(|rate| rate > 0.9)
    );
}

#[test]
fn what_a_machine_cannot_do_is_said() {
    let asked = |machine: &str, setting: Setting| run(&study(machine, Pattern::Random, &[setting]), &|_, _| {});
    assert!(matches!(
        asked("opteron-885", native(Bytes::gib(1))),
        Err(StudyError::NoSuchPage { .. })
    ));
    assert!(matches!(
        asked("opteron-885", guest(Mode::Nested, BASE, BASE)),
        Err(StudyError::NotNested(_))
    ));
    assert!(asked("opteron-885", guest(Mode::Shadow, BASE, BASE)).is_ok());
    let text = "like = 'skylake-sp'\npage_sizes = ['4K']\n";
    let base_only = Machine::parse("base-only.toml", text).expect("a machine");
    assert!(possible(&base_only, native(BASE)).is_ok());
    assert!(matches!(
        possible(&base_only, native(BASE).with_share(30)),
        Err(StudyError::NoSuchPage { page, .. }) if page == "2M"
    ));
    let mut large = study("skylake-sp", Pattern::Random, &[native(BASE)]);
    large.working_sets = vec![Bytes(1 << 60)];
    assert!(matches!(run(&large, &|_, _| {}), Err(StudyError::TooLarge(..))));
    let mut small = study("skylake-sp", Pattern::Random, &[native(BASE)]);
    small.working_sets = vec![Bytes::kib(60)];
    assert!(matches!(run(&small, &|_, _| {}), Err(StudyError::TooSmall(..))));
    let other = Study {
        baseline: native(LARGE),
        ..study("skylake-sp", Pattern::Random, &[native(BASE)])
    };
    assert!(matches!(run(&other, &|_, _| {}), Err(StudyError::NoBaseline)));
}

#[test]
fn settings_are_written_as_they_are_read() {
    for text in [
        "native:4K",
        "nested:2M/4K",
        "shadow:4K/4K",
        "native:4K+1%",
        "native:4K+99%",
        "nested:4K+30%/4K",
        "shadow:4K+30%/2M",
    ] {
        assert_eq!(
            text.parse::<Setting>().map(|setting| setting.to_string()),
            Ok(text.to_owned())
        );
    }
    assert_eq!("nested:4K".parse(), Ok(guest(Mode::Nested, BASE, BASE)));
    let mosaic = guest(Mode::Nested, BASE, BASE).with_share(30);
    assert_eq!("nested:4K+30%".parse(), Ok(mosaic));
    for (text, why) in [
        ("native", "is no setting"),
        ("native:4K/2M", "is no setting"),
        ("nested:4K/4K+30%", "is no setting"),
        ("direct:4K", "direct"),
        ("nested:4/2M", "unit"),
        ("native:4K+0%", "from 1% to 99%"),
        ("native:4K+100%", "from 1% to 99%"),
        ("native:4K+30", "from 1% to 99%"),
        ("native:2M+30%", "pages of 4K"),
        ("native:16K+30%", "pages of 4K"),
    ] {
        let error = text.parse::<Setting>().expect_err(text);
        assert!(error.contains(why), "{error}");
    }
    let json = |setting: Setting| serde_json::to_string(&setting).expect("JSON");
    let plain = r#"{"mode":"native","guest_page":4096,"host_page":null}"#;
    assert_eq!(json(native(BASE)), plain, "as results without shares were written");
    for (setting, text) in [(native(BASE), plain.to_owned()), (mosaic, json(mosaic))] {
        assert_eq!(serde_json::from_str::<Setting>(&text).ok(), Some(setting));
    }
}

/// A machine whose page tables are too large for its caches.
const SMALL_CACHES: &str = r#"
like = "skylake-sp"
walk_caches = [32, 8, 4, 2]
nested_tlb = 32
l2_tlb_hit_cycles = 7
exit_cycles = 1000
cache = [{ level = 1, kind = "data", kib = 16, ways = 8 }]
[latency_cycles]
l1 = 4
l2 = 14
l3 = 75
mem = 248
"#;

fn with(lines: &str, pattern: Pattern, mode: Mode) -> super::Case {
    let setting = match mode {
        Mode::Native => native(BASE),
        _ => guest(mode, BASE, BASE),
    };
    let machine = Machine::parse("a.toml", &format!("{lines}\n{SMALL_CACHES}")).expect("a machine");
    let study = Study {
        machine,
        ..study("skylake-sp", pattern, &[setting])
    };
    result(&study).cases.remove(0)
}

#[test]
fn page_tables_on_another_node_cost_more_where_they_are_read_from_memory() {
    for mode in [Mode::Native, Mode::Nested] {
        let walks = |lines: &str| {
            let case = with(lines, Pattern::Random, mode);
            (case.cycles.walks.middle, case.cycles.data.middle)
        };
        let (local, data) = walks("");
        let half = walks("remote_tables = 0.5\nremote_cost = 3.0");
        let all = walks("remote_tables = 1\nremote_cost = 2.0");
        assert_eq!(walks("remote_tables = 0\nremote_cost = 3.0"), (local, data));
        assert_eq!((half.1, all.1), (data, data), "data stays on this node");
        assert!(
            (half.0 - all.0).abs() < 1e-9,
            "{half:?} {all:?}: half of the reads, three times as long"
        );
        // All lines are at most from memory, and then twice as far.
        assert!(all.0 > 1.3 * local && all.0 < 2.0 * local, "{local} {all:?}");
    }
}

#[test]
fn a_shootdown_costs_an_interrupt_of_each_other_cpu_and_its_exits_in_a_guest() {
    let threads = |vcpus: u16, mode| {
        let lines = format!("vcpus = {vcpus}\nipi_cycles = 3000\nipi_exits = 2");
        with(&lines, Pattern::Churn, mode)
    };
    for (mode, each) in [(Mode::Native, 3000.0), (Mode::Nested, 5000.0), (Mode::Shadow, 5000.0)] {
        let case = threads(4, mode);
        let cycles = case.shootdowns as f64 * each / case.accesses as f64;
        assert!(
            case.shootdowns > 0 && (case.cycles.shootdowns.middle - cycles).abs() < 1e-9,
            "{case:?}"
        );
        let alone = threads(1, mode);
        assert_eq!((alone.shootdowns, alone.cycles.shootdowns.middle), (0, 0.0));
    }
    let (one, four) = (threads(1, Mode::Shadow).exits, threads(4, Mode::Shadow).exits);
    let ratio = four.invalidations as f64 / one.invalidations as f64;
    assert!(
        (3.5..4.5).contains(&ratio),
        "each CPU's INVLPG leaves the guest: {ratio}"
    );
}

#[test]
fn interrupts_of_unknown_cost_are_swept_only_where_there_are_any() {
    let unknown = |vcpus: u16, mode| {
        let machine = Machine::parse("a.toml", &format!("like = \"skylake-sp\"\nvcpus = {vcpus}")).expect("a machine");
        super::unknown(&machine, &[guest(mode, BASE, BASE)])
            .iter()
            .map(|sweep| sweep.unknown)
            .filter(|unknown| [Unknown::Ipi, Unknown::IpiExits, Unknown::Exit].contains(unknown))
            .collect::<Vec<_>>()
    };
    assert_eq!(unknown(1, Mode::Nested), []);
    assert_eq!(unknown(1, Mode::Shadow), [Unknown::Exit]);
    assert_eq!(
        unknown(2, Mode::Nested),
        [Unknown::Exit, Unknown::Ipi, Unknown::IpiExits]
    );
}
