//! Public cases of the field: the right cause, fix and numbers of each.

#[path = "common/cases.rs"]
#[allow(dead_code, unreachable_pub)]
mod cases;

use std::collections::{BTreeMap, BTreeSet};

use cases::{Expected, Inputs};
use hugewise::results::Doctor;
use model::findings::Finding;

/// All that a report says, a line for each sentence.
fn words(doctor: &Doctor) -> String {
    let mut text = String::new();
    for finding in &doctor.diagnosis.findings {
        text += &format!("{} {}\n", finding.id, finding.consequence);
        finding
            .evidence
            .iter()
            .for_each(|proof| text += &format!("  seen {proof}\n"));
        finding.fix.iter().for_each(|fix| text += &format!("  fix {fix}\n"));
    }
    text
}

/// What is not as it should be.
fn wrong(run: &Expected) -> Vec<String> {
    let doctor = run.inputs().diagnosis();
    let text = words(&doctor);
    let has = |id: &String| doctor.diagnosis.findings.iter().any(|finding| finding.id == *id);
    let mut wrong = Vec::new();
    let mut hold = |is_so: bool, what: String| {
        if !is_so {
            wrong.push(what);
        }
    };
    run.found
        .iter()
        .for_each(|id| hold(has(id), format!("{id} finds nothing")));
    run.absent
        .iter()
        .for_each(|id| hold(!has(id), format!("{id} finds something")));
    let is_unjudged = |id: &String| {
        let all = doctor.diagnosis.not_judged.iter().chain(&doctor.diagnosis.partly);
        all.into_iter().any(|not| not.id == *id)
    };
    run.unjudged
        .iter()
        .for_each(|id| hold(is_unjudged(id), format!("{id} is judged")));
    run.says
        .iter()
        .for_each(|words| hold(text.contains(words), format!("`{words}` is not said")));
    run.silent
        .iter()
        .for_each(|words| hold(!text.contains(words), format!("`{words}` is said")));
    if !wrong.is_empty() {
        wrong.push(text);
    }
    wrong
}

/// Two of one number would be taken for one case.
#[test]
fn each_case_has_a_number_of_its_own() {
    let entries = std::fs::read_dir(cases::fixtures().join("cases")).expect("fixtures/cases");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut by_number: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        let (number, _) = name
            .split_once('-')
            .unwrap_or_else(|| panic!("{name}: expected NN-name"));
        assert!(number.parse::<u32>().is_ok(), "{name}: expected NN-name");
        by_number.entry(number.to_owned()).or_default().push(name);
    }
    by_number.retain(|_, names| names.len() > 1);
    assert!(by_number.is_empty(), "take another number: {by_number:?}");
}

#[test]
fn the_answers_to_public_cases_are_right() {
    let mut failed = Vec::new();
    for run in cases::all().iter().filter(|run| run.open.is_none()) {
        let wrong = wrong(run);
        if !wrong.is_empty() {
            failed.push(format!("{}\n  {}", run.title(), wrong.join("\n  ")));
        }
    }
    assert!(failed.is_empty(), "{} wrong:\n{}", failed.len(), failed.join("\n"));
}

/// Without its amounts. A size beside `pages`, a node and a pid name something, and stay.
fn without_amounts(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_amount = |at: usize| {
        let word = words[at].trim_matches(|c: char| "(),.;:".contains(c));
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        let two_before = at.checked_sub(2).map_or("", |before| words[before]);
        let after = words.get(at + 1).map_or("", |word| *word);
        let has_unit = word.ends_with(['K', 'M', 'G', 'T']);
        let is_name = before == "node"
            || before == "(pid"
            || (has_unit && (after == "pages" || (two_before, before) == ("pages", "of")))
            || words[at].starts_with('(') && !has_unit;
        let digits = word.trim_end_matches(['K', 'M', 'G', 'T']);
        !is_name && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    let kept = (0..words.len()).map(|at| if is_amount(at) { "#" } else { words[at] });
    kept.collect::<Vec<_>>().join(" ")
}

/// Two findings of one report whose rows in the short table differ in amounts alone.
fn alike(doctor: &Doctor) -> Option<String> {
    let row = |finding: &Finding| {
        let first = finding.fix.first().map_or("", String::as_str);
        (
            finding.id.clone(),
            first.to_owned(),
            without_amounts(&finding.consequence),
        )
    };
    let mut seen = BTreeSet::new();
    let mut rows = doctor.diagnosis.findings.iter().map(row);
    rows.find(|row| !seen.insert(row.clone())).map(|row| format!("{row:?}"))
}

#[test]
fn no_two_findings_of_a_report_read_alike() {
    let captured =
        ["machines", "kernels"].map(|folder| std::fs::read_dir(cases::fixtures().join(folder)).expect(folder));
    let paths = captured
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("an entry").path());
    let trees = paths.filter(|path| path.extension().is_some_and(|kind| kind == "tree"));
    let machines = trees.map(|path| {
        let name = path.display().to_string();
        let tree = cases::tree(&name, &std::fs::read(&path).expect("a tree"));
        Inputs {
            name,
            tree: Some(tree),
            files: Vec::new(),
        }
    });
    let all: Vec<Inputs> = machines.chain(cases::all().iter().map(Expected::inputs)).collect();
    assert!(all.len() > 200, "{}", all.len());
    let wrong = all
        .iter()
        .filter_map(|inputs| Some(format!("{}: {}", inputs.name, alike(&inputs.diagnosis())?)));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What counts as an amount.
    assert_eq!(without_amounts("19 % of it"), without_amounts("26 % of it"));
    assert_ne!(
        without_amounts("the pool of 2M pages"),
        without_amounts("the pool of 1G pages")
    );
}

#[test]
fn an_answer_that_became_right_is_no_longer_called_open() {
    let open: Vec<Expected> = cases::all().into_iter().filter(|run| run.open.is_some()).collect();
    let right: Vec<String> = open
        .iter()
        .filter(|run| wrong(run).is_empty())
        .map(Expected::title)
        .collect();
    assert!(right.is_empty(), "remove `open` from {right:?}");
}
