//! What is wrong with a machine: one pure rule per finding, over evidence that was taken before.
//!
//! A rule finds something, is clear, or could not be judged because something could not be read. Rules have no state
//! and do no I/O; ids and names are stable.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cgroups;
mod databases;
mod facts;
mod files;
mod jvm;
mod limits;
mod numa;
mod pools;
mod rule;
mod thp;
mod tools;
mod vms;

#[cfg(test)]
mod machines;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::LazyLock;

use host::Evidence;
use model::findings::Diagnosis;

pub use files::{judge_files, judge_with_files};
pub use rule::{Rule, Verdict};

/// The rules by topic.
const RULES: [&[Rule]; 9] = [
    pools::RULES,
    numa::RULES,
    limits::RULES,
    cgroups::RULES,
    thp::RULES,
    jvm::RULES,
    databases::RULES,
    vms::RULES,
    tools::RULES,
];

/// Every rule, in order of id, whatever its topic: results are in this order.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    static BY_ID: LazyLock<Vec<&Rule>> = LazyLock::new(|| {
        let mut rules: Vec<&Rule> = RULES.into_iter().flatten().collect();
        rules.sort_unstable_by_key(|rule| rule.id);
        rules
    });
    BY_ID.iter().copied()
}

/// Applies every rule to a machine.
pub fn judge(evidence: &Evidence) -> Diagnosis {
    collect(|rule| rule.judge(evidence))
}

/// The verdicts of all rules together. Findings are ordered by severity, then by id.
fn collect(verdict: impl Fn(&Rule) -> Verdict) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for rule in rules() {
        verdict(rule).enter(&mut diagnosis);
    }
    diagnosis.findings.sort_by_key(|finding| Reverse(finding.severity));
    diagnosis
}

/// A rule by its id (`A01`, in any case) or its name (`pool-short`): its text, what it looks at, where to read more.
pub fn explain(id: &str) -> Option<&'static Rule> {
    let id = id.trim();
    rules().find(|rule| rule.id.eq_ignore_ascii_case(id) || rule.name.eq_ignore_ascii_case(id))
}
