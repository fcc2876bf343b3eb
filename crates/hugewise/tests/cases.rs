//! Public cases of the field: the right cause, fix and numbers of each.

#[path = "common/cases.rs"]
#[allow(dead_code, unreachable_pub)]
mod cases;

use cases::Expected;
use hugewise::results::Doctor;

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
