//! Claims are whole, verdicts are arithmetic, and what presets show is what the table says of them.

use std::collections::BTreeSet;

use super::{ALL, File, How, TEXT, Verdict, read, rows, verdict};
use crate::paging::{Preset, preset};
use crate::scheduler::explain;
use model::Bytes;

#[test]
fn every_claim_has_its_place_and_a_reason_where_it_does_not_agree() {
    let claims = read().expect("the data").claims;
    let ids: BTreeSet<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids.len(), claims.len(), "two of one name");
    assert!(claims.len() >= 40);
    let sources: BTreeSet<&str> = claims.iter().map(|claim| claim.source.as_str()).collect();
    assert_eq!(sources.len(), 5, "{sources:?}");
    for claim in &claims {
        assert!(
            !claim.place.is_empty() && !claim.here.is_empty() && !claim.source.is_empty(),
            "{claim:?}"
        );
        let has_figure = super::claimed(&claim.figure).is_some();
        assert!(has_figure || claim.figure == "no figure", "{claim:?}");
        for here in &claim.here {
            assert_eq!(here.value.is_none(), here.how == How::None, "{}: {here:?}", claim.id);
            assert!(
                here.verdict == Verdict::Agrees || !here.why.is_empty(),
                "{}: {here:?}",
                claim.id
            );
            let is_shown = here.how == How::None || !here.by.is_empty();
            assert!(is_shown, "{}: {here:?}", claim.id);
        }
    }
    let is_there = |wanted: Verdict| {
        claims
            .iter()
            .flat_map(|claim| &claim.here)
            .any(|here| here.verdict == wanted)
    };
    assert!(Verdict::ALL.into_iter().all(is_there));
}

#[test]
fn no_key_of_the_table_is_misspelled() {
    const KEYS: &[&str] = &[
        "source", "place", "machine", "quantity", "of", "unit", "how", "by", "why", "id", "what", "figure", "value",
        "claims", "here",
    ];
    let File { group, .. } = toml::from_str(TEXT).expect("the data");
    let claims = || group.iter().flat_map(|group| rows(group, "claims"));
    let here = claims().flat_map(|claim| rows(claim, "here"));
    let keys = group.iter().chain(claims()).chain(here).flat_map(|table| table.keys());
    let wrong: Vec<&String> = keys.filter(|key| !KEYS.contains(&key.as_str())).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn verdicts_follow_from_figures() {
    for (figure, value, expected) in [
        ("8 to 10", [3.0, 9.0], Verdict::Agrees),
        ("8 to 10", [10.5, 11.0], Verdict::Differs),
        ("8.1", [8.2, 8.2], Verdict::Agrees),
        ("8.1", [8.21, 8.3], Verdict::Differs),
        ("about 30", [33.0, 40.0], Verdict::Agrees),
        ("over 97", [96.0, 96.9], Verdict::Differs),
        ("up to 600", [269.0, 2815.0], Verdict::NotComparable),
        ("up to 600", [269.0, 600.0], Verdict::Agrees),
        ("about 12", [14.0, 40.0], Verdict::Differs),
        ("about 0", [0.0, 0.0], Verdict::Agrees),
        ("more", [0.0, 10.0], Verdict::NotComparable),
        ("more", [1.1, 10.0], Verdict::Agrees),
        ("more", [0.1, 0.3], Verdict::Differs),
        ("more", [-2.0, 0.0], Verdict::Differs),
        ("no more", [-2.0, 0.5], Verdict::Agrees),
        ("no more", [40.0, 60.0], Verdict::Differs),
        ("the same", [-2.0, -2.0], Verdict::Differs),
        ("no figure", [1.0, 1.0], Verdict::NotComparable),
    ] {
        assert_eq!(verdict(figure, value), expected, "{figure} {value:?}");
    }
}

/// Within a fiftieth or 0.3 of it: the table holds a million accesses, the test counts fewer.
fn is_near(one: f64, other: f64, how: How) -> bool {
    let width = match how {
        How::Arithmetic => 1e-6 * other,
        _ => (0.02 * other.abs()).max(0.3),
    };
    (one - other).abs() <= width
}

#[test]
fn presets_quote_claims_and_come_out_as_the_table_says() {
    let mut wrong = Vec::new();
    for which in Preset::ALL {
        let command = format!("simulate translation --preset {}", which.name());
        let rows = preset(which, 200_000, 1, &|_, _| {}).expect("possible").published;
        for claim in &ALL.claims {
            for here in claim.here.iter().filter(|here| here.by == command) {
                let row = rows.iter().find(|row| row.what == claim.what);
                let row = row.unwrap_or_else(|| panic!("{}: no row of {command}", claim.id));
                assert_eq!((&row.unit, &row.published), (&claim.measure.unit, &claim.numbers()));
                assert_eq!(row.is_fitted, here.how == How::Fitted, "{}", claim.id);
                let [low, high] = here.value.expect("a value");
                let range = row.simulated;
                let is_near = |one: f64, other: f64| is_near(one, other, here.how);
                let is_it =
                    is_near(range.low, low) && is_near(range.high, high) || low == high && is_near(range.middle, low);
                if !is_it {
                    wrong.push(format!("{}: {range:?}, the table has {low} to {high}", claim.id));
                }
            }
        }
        for row in rows.iter().filter(|row| !row.published.is_empty()) {
            let claim = ALL.claims.iter().find(|claim| claim.what == row.what).expect("a claim");
            assert!(
                claim.here.iter().any(|here| here.by == command),
                "{}: {command}",
                claim.id
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fitted_runs_of_ibm_are_those_that_the_preset_shows() {
    let shown = explain::preset(explain::Preset::Ibm2006, 1)
        .expect("the data")
        .explained
        .expect("a study");
    let runs = ALL.claims.iter().filter(|claim| {
        claim
            .here
            .iter()
            .any(|here| here.how == How::Fitted && here.measure.of == "one run")
    });
    let mut count = 0;
    for (claim, run) in runs.zip(&shown.runs) {
        assert_eq!(claim.numbers(), [run.published], "{}", claim.id);
        let [value, _] = claim.here[0].value.expect("a value");
        assert!(
            (run.simulated[2] / value - 1.0).abs() < 0.01,
            "{}: {}",
            claim.id,
            run.simulated[2]
        );
        count += 1;
    }
    assert_eq!(count, shown.runs.len());
}

#[test]
fn shares_of_working_sets_are_arithmetic() {
    for claim in ALL.claims.iter().filter(|claim| claim.id.starts_with("vcf-share-")) {
        let words: Vec<&str> = claim.what.split([' ', ',']).collect();
        let [entries, _, "x", page, "", "of", memory, "GB"] = words[..] else {
            panic!("{words:?}")
        };
        let reach = entries.parse::<f64>().expect("a number") * page.parse::<Bytes>().expect("a size").0 as f64;
        let memory = memory.parse::<f64>().expect("a number") * Bytes::gib(1).0 as f64;
        let [value, _] = claim.here[0].value.expect("a value");
        assert!(
            (value - (reach / memory).min(1.0) * 100.0).abs() < 1e-6 * value,
            "{}",
            claim.id
        );
    }
}
