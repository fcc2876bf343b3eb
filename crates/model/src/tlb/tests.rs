//! What the TLB shapes answer about themselves.

use super::{Entries, Hash, HostBacking, Index, Known, Level, Tlb, Verdict, Ways};
use crate::PageKind;

fn tlb(value: u32, ways: Ways) -> Tlb {
    Tlb {
        levels: vec![Level {
            kind: PageKind::Base,
            level: 1,
            entries: Some(Entries::exactly(value)),
            ways: Some(ways),
            index: Some(Index::Linear),
            miss_ns: None,
            miss_cycles: None,
            not_told: None,
        }],
        walks: vec![],
        sharing: vec![],
        host_backing: HostBacking {
            verdict: Verdict::Small,
            confidence: 0.9,
            splintered: Some(1.0),
            evidence: vec![],
        },
        known: vec![Known {
            source: "cpuid 0x18".to_owned(),
            kind: PageKind::Base,
            level: 1,
            entries: 64,
            ways: Some(Ways::Count(4)),
        }],
        memory: vec![],
        curves: vec![],
        core_ghz: None,
        cpu: 0,
        dropped: 0,
        seconds: 1.0,
    }
}

#[test]
fn a_measurement_that_differs_from_cpuid_is_a_warning_and_one_that_agrees_is_none() {
    let warnings = tlb(96, Ways::Count(6)).disagreements();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0]
            .text
            .contains("timing shows 96 6-way, cpuid 0x18 says 64 4-way"),
        "{warnings:?}"
    );
    assert_eq!(tlb(64, Ways::Count(4)).disagreements(), []);
    assert_eq!(tlb(64, Ways::Full).disagreements().len(), 1);
}

#[test]
fn a_level_that_others_know_to_hold_more_is_a_range_and_one_that_holds_more_than_they_say_stays() {
    let mut fewer = tlb(60, Ways::Count(6));
    fewer.widen();
    let level = &fewer.levels[0];
    let entries = level.entries.expect("entries");
    assert_eq!((entries.low, entries.high, level.ways), (60, 64, None));
    let why = level.not_told.as_deref().unwrap_or_default();
    assert!(why.starts_with("timing shows 60, cpuid 0x18 says 64"), "{why}");
    let mut more = tlb(96, Ways::Count(6));
    more.widen();
    assert_eq!(more.levels, tlb(96, Ways::Count(6)).levels);
}

#[test]
fn a_number_that_no_tlb_is_built_with_is_a_range_unless_a_source_names_it_or_the_range_holds_one() {
    let widened = |value, ways, said: &[u32]| {
        let mut tlb = tlb(value, ways);
        tlb.known = said
            .iter()
            .map(|&entries| Known {
                entries,
                ..tlb.known[0].clone()
            })
            .collect();
        tlb.widen();
        let level = tlb.levels.remove(0);
        let entries = level.entries.expect("entries");
        (
            (entries.low, entries.high),
            level.ways,
            level.not_told.unwrap_or_default(),
        )
    };
    let (range, ways, why) = widened(2944, Ways::Count(23), &[]);
    assert_eq!((range, ways), ((2944, 3072), None));
    assert!(
        why.starts_with("timing shows 2944 23-way, which no known TLB is built with, but one with up to 3072 is"),
        "{why}"
    );
    assert_eq!(widened(71, Ways::Full, &[64]).0, (71, 72));
    assert_eq!(widened(1280, Ways::Count(5), &[]).0, (1280, 1536));
    // A source that says more, or just this, decides.
    assert_eq!(widened(2944, Ways::Count(23), &[4096]).0, (2944, 4096));
    assert_eq!(widened(1280, Ways::Count(5), &[64, 1280]).0, (1280, 1280));
    for (value, ways) in [(3072, Ways::Count(24)), (96, Ways::Count(6)), (72, Ways::Full)] {
        assert_eq!(widened(value, ways, &[]), ((value, value), Some(ways), String::new()));
    }
}

#[test]
fn a_number_that_no_source_names_is_told_with_what_timing_alone_cannot_tell() {
    let mut tlb = tlb(96, Ways::Count(6));
    assert_eq!(tlb.unconfirmed(), None);
    tlb.known.clear();
    let warning = tlb.unconfirmed().expect("a warning");
    assert!(warning.text.contains("what base pages, level 1 holds"), "{warning:?}");
    tlb.levels[0].entries = None;
    assert_eq!(tlb.unconfirmed(), None);
}

#[test]
fn xor_spreads_a_stride_that_linear_puts_into_one_set() {
    assert!((0..64).all(|n| Hash::Linear.set(n * 128, 128) == 0));
    let shift = Hash::Shift { by: 7, parts: 2 };
    for hash in [Hash::Fold, shift] {
        let mut seen: Vec<u32> = (0..128).map(|n| hash.set(n * 128, 128)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 128, "{hash:?}");
        assert_eq!((hash.set(77, 1), hash.index()), (0, Index::Xor));
    }
    assert_eq!(Hash::Fold.set(0b101_011, 8), 0b110);
    // Two terms leave out what a fold would still take in.
    assert_ne!(Hash::Fold.set(1 << 14, 128), shift.set(1 << 14, 128));
}

#[test]
fn ways_are_a_number_or_the_word_full_and_verdicts_are_page_sizes() {
    let json = serde_json::to_string(&[Ways::Count(6), Ways::Full]).expect("json");
    assert_eq!(json, r#"[6,"full"]"#);
    assert_eq!(
        serde_json::from_str::<[Ways; 2]>(&json).expect("json"),
        [Ways::Count(6), Ways::Full]
    );
    let value = serde_json::to_value(tlb(96, Ways::Count(6))).expect("json");
    assert_eq!(value["host_backing"]["verdict"], "4K");
    assert_eq!(value["levels"][0]["entries"]["value"], 96);
    let range = Entries { low: 68, high: 73 };
    assert_eq!((range.to_string(), range.value()), ("68-73".to_owned(), None));
    let json = serde_json::to_value(range).expect("json");
    assert_eq!(json, serde_json::json!({"value": null, "low": 68, "high": 73}));
    assert_eq!(serde_json::from_value::<Entries>(json).expect("json"), range);
}
