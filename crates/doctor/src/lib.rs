//! What is wrong with a machine: one pure rule per finding, over evidence that was taken before.
//!
//! A rule finds something, is clear, or could not be judged because something could not be read. Rules have no state
//! and do no I/O; ids and names are stable.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cgroups;
mod databases;
mod demand;
pub mod explain;
mod facts;
mod jvm;
mod kept;
mod limits;
mod links;
mod logs;
mod numa;
mod pools;
mod quoted;
mod remedy;
mod rule;
mod settings;
mod thp;
mod tools;
mod topics;
mod vms;

#[cfg(test)]
mod files_tests;
#[cfg(test)]
#[path = "tests/machines.rs"]
mod machines;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod versions_tests;

use std::cmp::Reverse;

use model::findings::Diagnosis;
use programs::Evidence;
use remedy::{Draft, Ledger};

#[cfg(test)]
use machines::Verdict;
pub use rule::Rule;
pub use topics::rules;

/// How a reason begins that ends with the kinds of files which a rule looks at.
pub const NO_FILE: &str = "no file of that kind was given: ";

/// Applies every rule to a machine, to files that are to hold on it, or to files alone. Findings are ordered by severity, then by id.
/// Their fixes are those that the machine can take, all together.
pub fn judge(evidence: &Evidence) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let mut drafts: Vec<Draft> = Vec::new();
    for rule in rules() {
        for draft in rule.draft(evidence, &mut diagnosis) {
            if !drafts.iter_mut().any(|before| before.absorbs(&draft)) {
                drafts.push(draft);
            }
        }
    }
    drafts.sort_by_key(|draft| Reverse(draft.finding.severity));
    let mut ledger = Ledger::of(evidence);
    if drafts.iter().any(|draft| draft.finding.id == pools::STARVES) {
        ledger.starve();
    }
    diagnosis.findings = ledger.settle_all(drafts);
    diagnosis
}

/// A rule by its id (`A01`, in any case) or its name (`pool-short`): its text, its severity, where to read more.
pub fn explain(id: &str) -> Option<&'static Rule> {
    let id = id.trim();
    rules().find(|rule| rule.id.eq_ignore_ascii_case(id) || rule.name.eq_ignore_ascii_case(id))
}
