//! Whatever texts a result holds, no form of it steers a terminal or runs in a browser or a spreadsheet.

use std::collections::BTreeSet;
use std::path::PathBuf;

use host::{Snapshot, Source};
use model::compare::Verdict;
use model::{Bytes, Envelope, PageKind};
use programs::Evidence;
use serde_json::Value;

use super::{Shape, ShowError, show};
use crate::cli::args::{Format, Sort};
use crate::render::prove::compare::tests::compare;
use crate::results::{Checkup, Doctor, ProcessList, VmList};
use crate::samples;
use draw::{Look, safe::steers};

/// A formula, escape sequences of both sorts, a bell, a change of direction, an element, a table's bar and code.
const HOSTILE: &str = "=x\u{1b}[31m\u{9b}2J\u{7}\u{202e}<script>alert(1)</script>|`\u{7f}";

/// Where texts are in a JSON value, places in arrays left out.
fn places(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => drop(found.insert(at.to_owned())),
        Value::Array(items) => items.iter().for_each(|item| places(item, &format!("{at}/*"), found)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, field)| places(field, &format!("{at}/{name}"), found)),
        _ => {}
    }
}

/// Replaces all texts at a place.
fn poison(value: &mut Value, at: &str, place: &str) {
    match value {
        Value::String(text) if at == place => HOSTILE.clone_into(text),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| poison(item, &format!("{at}/*"), place)),
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(name, field)| poison(field, &format!("{at}/{name}"), place)),
        _ => {}
    }
}

/// The result with every text hostile that its shape lets be anything, and how many places those are.
fn poisoned<T: Shape>(data: T) -> (Envelope<T>, usize) {
    let mut json = serde_json::to_value(samples::envelope(data)).expect("JSON");
    let mut all = BTreeSet::new();
    places(&json, "", &mut all);
    let mut count = 0;
    for place in &all {
        let mut worse = json.clone();
        poison(&mut worse, "", place);
        if serde_json::from_value::<Envelope<T>>(worse.clone()).is_ok() {
            json = worse;
            count += 1;
        }
    }
    (serde_json::from_value(json).expect("a result"), count)
}

fn assert_harmless<T: Shape>(data: T, least: usize) {
    let (result, count) = poisoned(data);
    assert!(count >= least, "{}: only {count} places hold hostile texts", T::NAME);
    for format in T::FORMS.iter().copied() {
        for color in [false, true] {
            let look = Look {
                width: 100,
                color,
                plot: true,
            };
            match show(&result, format, look) {
                Ok(bytes) => check(&result, format, &String::from_utf8(bytes).expect("text")),
                Err(ShowError::Hostile | ShowError::NoChart) => {}
                Err(error) => panic!("{} as {format:?}: {error}", T::NAME),
            }
        }
    }
}

fn check<T: Shape>(result: &Envelope<T>, format: Format, text: &str) {
    let at = format!("{} as {format:?}", T::NAME);
    let found = text.find(|c| steers(c) && c != '\n');
    assert_eq!(
        found,
        None,
        "{at}: {:?}",
        found.map(|at| text[at..].chars().take(40).collect::<String>())
    );
    match format {
        Format::Json => {
            let again: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(again, serde_json::to_value(result).expect("JSON"), "{at}");
        }
        // Several tables differ in their columns.
        Format::Csv => csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(text.as_bytes())
            .records()
            .for_each(|record| {
                let record = record.expect("a record");
                let is_formula = |cell: &str| cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
                assert!(!record.iter().any(is_formula), "{at}: {record:?}");
            }),
        Format::Html | Format::Svg => assert!(!text.contains("<script>alert"), "{at}"),
        Format::Markdown => assert!(!text.contains("<script"), "{at}"),
        _ => {}
    }
}

fn machine(name: &str) -> Source {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/machines/{name}.tree"));
    Source::open(&path).expect("a captured machine")
}

fn checkup(name: &str) -> Checkup {
    let source = machine(name);
    Checkup {
        verdict: samples::verdict(),
        inventory: Snapshot::take(&source),
        processes: Some(ProcessList::new(samples::process_rows(), Sort::Large, None)),
        vms: Some(VmList::of(&source)),
        doctor: Some(Doctor::of(&Evidence::gather(&source))),
        headline: Some(samples::headline(&[(
            Bytes::gib(1),
            PageKind::Thp,
            PageKind::Base,
            [12.0, 16.0],
        )])),
        latency: Some(samples::usual()),
        tlb: Some(samples::tlb()),
        guest: Some(samples::guest()),
        skipped: Vec::new(),
    }
}

#[test]
fn no_form_of_a_checkup_passes_on_what_steers() {
    for name in ["two-node-smt", "kubernetes-node", "denied"] {
        assert_harmless(checkup(name), 20);
    }
}

#[test]
fn no_form_of_a_part_passes_on_what_steers() {
    for name in ["rhel5-jboss", "postgres-good", "denied"] {
        assert_harmless(Doctor::of(&Evidence::gather(&machine(name))), 8);
    }
    assert_harmless(ProcessList::new(samples::process_rows(), Sort::Large, None), 8);
    assert_harmless(VmList::of(&machine("epyc-guest")), 5);
    assert_harmless(samples::usual(), 8);
    assert_harmless(samples::tlb(), 8);
    assert_harmless(samples::guest(), 8);
}

#[test]
fn no_form_of_a_comparison_passes_on_what_steers() {
    for verdict in [Verdict::Better, Verdict::NotInEffect] {
        assert_harmless(compare(verdict), 10);
    }
}

#[test]
fn a_plan_with_characters_that_a_terminal_hides_becomes_no_script() {
    let plan = |text: &str| {
        samples::envelope(model::plan::Plan {
            goals: vec![text.to_owned()],
            changes: vec![model::plan::Change {
                id: "a".to_owned(),
                layer: model::plan::Layer::Runtime,
                target: model::plan::Target::Setting {
                    path: "/sys/x".to_owned(),
                },
                before: model::Reading::Known(model::plan::Value::Text("b".to_owned())),
                after: model::plan::Value::Text(text.to_owned()),
                why: "because".to_owned(),
                risk: model::plan::Risk::default(),
                also_written_by: Vec::new(),
                source: String::new(),
            }],
            notes: vec![text.to_owned()],
            needs: Vec::new(),
        })
    };
    let look = Look::plain(100);
    assert!(show(&plan("two\nlines\tand a tab"), Format::Shell, look).is_ok());
    assert!(matches!(
        show(&plan(HOSTILE), Format::Shell, look),
        Err(ShowError::Hostile)
    ));
    assert_harmless(plan("x").data, 4);
}
