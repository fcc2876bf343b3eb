//! The machine at hand takes what was measured, keeps what was not, and says which is which.

use model::latency::{Frames, Latency};
use model::tlb::Tlb;
use model::{Bytes, PageKind};
use serde_json::{Value as Json, json};

use super::{From, Measured, What, here};
use crate::machine::{Machine, RowReading};
use crate::range::Range;
use crate::study::Unknown;
use crate::walk::scatter::Scatter;

fn data(text: &str) -> Json {
    serde_json::from_str::<Json>(text).expect("JSON")["data"].take()
}

/// A real result with other points: sizes and ns on huge pages, at a clock of 4 GHz.
fn latency(points: &[(Bytes, f64)]) -> Latency {
    let mut result = data(include_str!("../../../fixtures/results/latency.json"));
    let real = result["points"][0].clone();
    let estimate = |value: f64| json!({"median": value, "low": value, "high": value, "samples": 9});
    let point = |&(bytes, ns): &(Bytes, f64)| {
        let mut point = real.clone();
        point["kind"] = json!("thp");
        point["bytes"] = json!(bytes.0);
        point["ns"] = estimate(ns);
        point
    };
    result["points"] = points.iter().map(point).collect();
    result["core_ghz"] = estimate(4.0);
    serde_json::from_value(result).expect("a result")
}

/// A real result that found 60 entries in 4 ways for base pages, and 9 cycles for a miss.
fn tlb() -> Tlb {
    let mut result = data(include_str!("../../../fixtures/results/tlb.json"));
    let level = &mut result["levels"][0];
    level["entries"] = json!({"value": 60, "low": 60, "high": 60});
    level["ways"] = json!(4);
    level["miss_cycles"]["median"] = json!(9.0);
    serde_json::from_value(result).expect("a result")
}

fn measured<'a>(tlb: Option<&'a Tlb>, latency: Option<&'a Latency>) -> Measured<'a> {
    Measured {
        name: "this CPU",
        tlb: tlb.map(|tlb| (tlb, "tlb.json")),
        latency: latency.map(|latency| (latency, "latency.json")),
        caches: vec![(Bytes::kib(32), 8), (Bytes::mib(1), 8), (Bytes::mib(32), 16)],
        base_page: Bytes::kib(4),
        pmd_page: Bytes::mib(2),
        host_page: None,
    }
}

fn from(machine: &Machine, what: What) -> (From, f64, String) {
    let value = machine.values.iter().find(|value| value.what == what);
    let value = value.unwrap_or_else(|| panic!("{what:?} is not there: {:?}", machine.values));
    (value.from, value.value.middle, value.source.clone())
}

const STEPS: [(Bytes, f64); 8] = [
    (Bytes::kib(16), 1.0),
    (Bytes::kib(128), 4.0),
    (Bytes::mib(4), 12.0),
    (Bytes::mib(8), 12.0),
    (Bytes::mib(16), 75.0),
    (Bytes::mib(64), 98.0),
    (Bytes::mib(512), 100.0),
    (Bytes::gib(1), 100.0),
];

#[test]
fn measured_values_count_more_than_the_table_and_say_where_they_come_from() {
    let (tlb, latency) = (tlb(), latency(&STEPS));
    let table = Machine::by_id("epyc-9654").expect("known");
    let machine = here(Some(table), &measured(Some(&tlb), Some(&latency))).expect("a machine");
    assert_eq!((machine.latencies[0], machine.latencies[1]), (Some(4.0), Some(16.0)));
    let far = [2, 3].map(|place| machine.latencies[place].expect("measured"));
    // At 1G nearly every step misses in the first-level TLB, which is 9 of its 400 cycles.
    assert!((far[0] - 48.0).abs() < 3.0 && (far[1] - 391.5).abs() < 3.0, "{far:?}");
    assert_eq!(machine.l2_tlb_hit, Some(9.0));
    assert_eq!(machine.entries(Bytes::kib(4)), [60, 3072]);
    assert_eq!(machine.entries(Bytes::mib(2)), [72, 3072], "the others stay");
    let base = |level: u8| {
        from(
            &machine,
            What::TlbEntries {
                level,
                page: Bytes::kib(4),
            },
        )
    };
    assert_eq!(base(1), (From::Measured, 60.0, "tlb.json".to_owned()));
    assert_eq!(base(2), (From::Table, 3072.0, "CPU table: epyc-9654".to_owned()));
    let memory = from(&machine, What::Cost(Unknown::MemoryLatency));
    assert_eq!((memory.0, memory.2), (From::Measured, "latency.json".to_owned()));
    assert_eq!(from(&machine, What::Cost(Unknown::WalkCaches)).0, From::Swept);
    assert_eq!(from(&machine, What::CacheBytes { level: 2 }).0, From::Reported);
    // Between 8M and 16M a step becomes one of memory: that much of 32M is left here.
    let (how, bytes, _) = from(&machine, What::CacheBytes { level: 3 });
    assert_eq!(how, From::Measured);
    assert!((8.0..16.0).contains(&(bytes / f64::from(1 << 20))), "{bytes}");
}

#[test]
fn what_was_not_measured_is_the_tables_or_swept_and_never_invented() {
    let table = Machine::by_id("xeon-8452y").expect("known");
    let machine = here(Some(table.clone()), &measured(None, None)).expect("a machine");
    assert_eq!(
        (machine.latencies, machine.l2_tlb_hit),
        (table.latencies, table.l2_tlb_hit)
    );
    assert_eq!(machine.entries(Bytes::kib(4)), table.entries(Bytes::kib(4)));
    for unknown in [
        Unknown::L2Latency,
        Unknown::MemoryLatency,
        Unknown::L2TlbHit,
        Unknown::WalkCaches,
    ] {
        assert_eq!(from(&machine, What::Cost(unknown)).0, From::Swept, "{unknown:?}");
    }
    assert!(machine.values.iter().all(|value| value.from != From::Measured));
}

#[test]
fn a_cpu_that_the_table_lacks_needs_its_tlbs_measured() {
    let why = here(None, &measured(None, None)).expect_err("no TLB").to_string();
    assert!(why.starts_with("here: ") && why.contains("measure tlb"), "{why}");
    let tlb = tlb();
    let machine = here(None, &measured(Some(&tlb), None)).expect("a machine");
    assert_eq!(machine.entries(Bytes::kib(4)), [60]);
    assert!(machine.values.iter().all(|value| value.from != From::Table));
}

#[test]
fn a_range_stands_for_its_level_where_the_table_has_none_and_says_so() {
    let mut tlb = tlb();
    let base = Bytes::kib(4);
    let entries = |tlb: &Tlb| {
        let machine = here(None, &measured(Some(tlb), None)).expect("a machine");
        let range = machine
            .values
            .iter()
            .find(|value| value.what == What::TlbEntries { level: 1, page: base });
        let is_said = machine.readings.contains(&RowReading::MiddleOfRange);
        (machine.entries(base), range.map(|value| value.value), is_said)
    };
    assert_eq!(entries(&tlb), (vec![60], Some(Range::exactly(60.0)), false));
    tlb.levels[0].entries = Some(model::tlb::Entries { low: 1792, high: 2048 });
    let range = Range::new(1792.0, 1920.0, 2048.0);
    assert_eq!(entries(&tlb), (vec![1920], Some(range), true));
    // Its ways are not known.
    tlb.levels[0].entries = Some(model::tlb::Entries::exactly(100));
    tlb.levels[0].ways = None;
    assert_eq!(entries(&tlb), (vec![96], Some(Range::new(96.0, 96.0, 100.0)), true));
    // What may be anything is nothing.
    tlb.levels[0].entries = Some(model::tlb::Entries { low: 64, high: 2048 });
    assert!(here(None, &measured(Some(&tlb), None)).is_err());
}

#[test]
fn misses_of_a_first_level_that_is_not_known_cost_nothing_and_a_reading_says_so() {
    let mut tlb = tlb();
    tlb.levels.truncate(1);
    let second = model::tlb::Level {
        level: 2,
        ..tlb.levels[0].clone()
    };
    tlb.levels.push(second);
    let found = |tlb: &Tlb| {
        let machine = here(None, &measured(Some(tlb), None)).expect("a machine");
        let is_said = machine.readings.contains(&RowReading::NoFirstLevel);
        (machine.entries(Bytes::kib(4)), machine.l2_tlb_hit, is_said)
    };
    assert_eq!(found(&tlb), (vec![60, 60], Some(9.0), false));
    tlb.levels[0].entries = None;
    assert_eq!(found(&tlb), (vec![0, 60], Some(0.0), true));
}

#[test]
fn base_pages_lie_where_the_largest_working_set_lay_and_without_a_host_that_is_nothing() {
    let mut latency = latency(&STEPS);
    let tlb = tlb();
    latency.points.iter_mut().for_each(|point| point.kind = PageKind::Base);
    let in_guest = |latency: &Latency, host_page| {
        let asked = Measured {
            host_page,
            ..measured(Some(&tlb), Some(latency))
        };
        let machine = here(None, &asked).expect("a machine");
        let is_assumed = machine.readings.contains(&RowReading::FramesInOrder);
        (machine.surroundings.scatter, is_assumed)
    };
    let host = Some(Bytes::kib(4));
    assert_eq!(in_guest(&latency, host), (None, true), "an older result, or no root");
    let frames = |single: u64| Frames {
        pages_by_run: [single, 0, 900, 0, 0, 0, 0, 0, 0, 0],
        spread: Bytes::gib(4),
    };
    for (place, point) in latency.points.iter_mut().enumerate() {
        point.frames = Some(frames(place as u64 * 100));
    }
    let largest = Scatter::of(&frames(700));
    assert_eq!(in_guest(&latency, host), (Some(largest), false));
    assert_eq!(in_guest(&latency, None), (None, false));
}

#[test]
fn a_range_of_entries_or_pages_of_base_size_are_no_values() {
    let mut tlb = tlb();
    tlb.levels[0].entries = Some(model::tlb::Entries { low: 50, high: 70 });
    let mut latency = latency(&STEPS);
    latency.points.iter_mut().for_each(|point| point.kind = PageKind::Base);
    let table = Machine::by_id("epyc-9654").expect("known");
    let machine = here(Some(table.clone()), &measured(Some(&tlb), Some(&latency))).expect("a machine");
    assert_eq!(machine.entries(Bytes::kib(4)), table.entries(Bytes::kib(4)));
    // Within the first level's reach base pages are as good; beyond, their walks are part of the time, and none of memory's.
    assert_eq!((machine.latencies[0], machine.latencies[1]), (Some(4.0), Some(16.0)));
    assert!(
        machine.latencies[3].is_some_and(|memory| memory < 380.0),
        "{:?}",
        machine.latencies
    );
}
