//! What configuration files alone tell: checks of the same rules, by the same ids, with no machine around them.
//!
//! The files that are given are taken as all that there is. A rule without a check here needs a running machine.

mod databases;
mod demand;
mod guests;
mod java;
mod pods;
mod pools;
mod services;

#[cfg(test)]
mod tests;

use host::Evidence;
use host::config::Given;
use host::config::given::FileKind;
use model::findings::{Diagnosis, NotJudged};

use super::collect;
use super::rule::{Answer, Rule, Verdict};

/// A rule's look at files.
pub(super) struct Check {
    id: &'static str,
    /// It needs a file of one of these kinds.
    of: &'static [FileKind],
    look: fn(&Scope<'_>) -> Answer,
}

/// What is judged: files, and the machine that they are held against, if one was looked at.
pub(super) struct Scope<'a> {
    given: &'a Given,
    machine: Option<&'a Evidence>,
}

const CHECKS: [&[Check]; 6] = [
    pools::CHECKS,
    services::CHECKS,
    pods::CHECKS,
    java::CHECKS,
    databases::CHECKS,
    guests::CHECKS,
];

/// What a rule that only files can break says about a machine.
pub(super) fn needs_a_file(_: &Evidence) -> Answer {
    Err("only a file tells, and none of its kind was given (doctor --file)".into())
}

/// Judges files by every rule that can be told from files.
pub fn judge_files(given: &Given) -> Diagnosis {
    let scope = Scope { given, machine: None };
    collect(|rule| match look(rule, &scope) {
        Some(verdict) => verdict,
        None => not_judged(rule, "only a running machine tells"),
    })
}

/// Judges a machine, and files that are to hold on it: a rule may find something in both.
pub fn judge_with_files(evidence: &Evidence, given: &Given) -> Diagnosis {
    let machine = Some(evidence);
    let scope = Scope { given, machine };
    collect(|rule| match look(rule, &scope) {
        Some(verdict) => rule.judge(evidence).and(verdict),
        None => rule.judge(evidence),
    })
}

/// What files say about a rule; `None` if they say nothing about it at all.
fn look(rule: &Rule, scope: &Scope<'_>) -> Option<Verdict> {
    let check = CHECKS.into_iter().flatten().find(|check| check.id == rule.id)?;
    if check.of.iter().any(|kind| scope.given.has(*kind)) {
        return Some(rule.verdict((check.look)(scope)));
    }
    let kinds: Vec<&str> = check.of.iter().map(|kind| kind.word()).collect();
    Some(not_judged(
        rule,
        &format!("no file of that kind was given: {}", kinds.join(" or ")),
    ))
}

fn not_judged(rule: &Rule, reason: &str) -> Verdict {
    let (id, reason) = (rule.id.to_owned(), reason.to_owned());
    Verdict::NotJudged(NotJudged { id, reason })
}
