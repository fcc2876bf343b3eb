//! What a rule is, and how it reports a finding.

pub(crate) mod answers;
mod case;

use std::fmt;

use model::findings::{Diagnosis, Finding, NotJudged, Severity};
use programs::Evidence;
use programs::config::given::FileKind;
use serde::{Deserialize, Deserializer};

use crate::remedy::Draft;
use answers::parts;
pub(super) use case::Case;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable id: `A01`.
    #[serde(skip)]
    pub id: &'static str,
    /// Stable name: `pool-short`.
    pub name: &'static str,
    /// How much its findings matter, as a rule.
    pub severity: Severity,
    /// The versions it holds for, in words: `Linux 5.16 and later`.
    pub holds: &'static str,
    /// What goes wrong, how it is detected, what helps: for `--explain`, offline.
    #[serde(deserialize_with = "paragraph")]
    pub text: &'static str,
    /// Where to read more.
    pub link: &'static str,
    /// The rule itself.
    #[serde(skip)]
    pub(super) checks: Checks,
}

/// Lines of text as one, for as long as the program runs.
fn paragraph<'de, D: Deserializer<'de>>(lines: D) -> Result<&'static str, D::Error> {
    let lines = String::deserialize(lines)?;
    Ok(lines.trim_end().replace('\n', " ").leak())
}

type Check = fn(&Evidence) -> Answer;

/// What a rule examines: the machine, files that were given, or both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    pub(super) id: &'static str,
    machine: Option<Check>,
    /// It needs a file of one of these kinds.
    files: Option<(&'static [FileKind], Check)>,
}

impl Checks {
    /// Only a machine can break it.
    pub(super) const fn of_machine(id: &'static str, check: Check) -> Self {
        Self {
            id,
            machine: Some(check),
            files: None,
        }
    }

    /// Only files can break it.
    pub(super) const fn of_files(id: &'static str, kinds: &'static [FileKind], check: Check) -> Self {
        Self {
            id,
            machine: None,
            files: Some((kinds, check)),
        }
    }

    pub(super) const fn of_both(id: &'static str, machine: Check, kinds: &'static [FileKind], files: Check) -> Self {
        Self {
            id,
            machine: Some(machine),
            files: Some((kinds, files)),
        }
    }
}

/// What a check returns: findings (none is clear), or why it could not be applied.
pub(super) type Answer = Result<Vec<Case>, Reason>;

/// Why a rule, or one process under a rule, could not be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) text: String,
    /// What was found in the part that could be read; `None` if nothing could be read.
    pub(super) elsewhere: Option<Vec<Case>>,
}

impl Rule {
    /// Applies the rule, and adds what could not be judged to a diagnosis. The fixes of what it finds still have to be held against the
    /// machine, with those of all other rules.
    pub(super) fn draft(&self, evidence: &Evidence, diagnosis: &mut Diagnosis) -> Vec<Draft> {
        let cases = self.answer(evidence).unwrap_or_else(|Reason { text, elsewhere }| {
            let not_judged = NotJudged {
                id: self.id.to_owned(),
                reason: text,
            };
            match elsewhere {
                Some(_) => diagnosis.partly.push(not_judged),
                None => diagnosis.not_judged.push(not_judged),
            }
            elsewhere.unwrap_or_default()
        });
        cases.into_iter().map(|case| self.finding(case)).collect()
    }

    fn answer(&self, evidence: &Evidence) -> Answer {
        let of_machine = || match self.checks.machine {
            Some(check) => check(evidence),
            None => Err("only a file shows it, and none of its kind was given (doctor --file)".into()),
        };
        let machine = evidence.has_machine.then(of_machine);
        let files = self.checks.files.filter(|_| evidence.files.has_any());
        let files = files.map(|(kinds, check)| in_files(evidence, kinds, check));
        match (machine, files) {
            (Some(machine), Some(files)) => either(machine, files),
            (Some(answer), None) | (None, Some(answer)) => answer,
            (None, None) => Err("only a running machine shows it".into()),
        }
    }

    fn finding(&self, case: Case) -> Draft {
        let finding = Finding {
            id: self.id.to_owned(),
            name: self.name.to_owned(),
            severity: case.severity.unwrap_or(self.severity),
            confidence: case.confidence,
            evidence: case.evidence,
            consequence: case.consequence,
            fix: Vec::new(),
            plan: None,
            link: case.link.unwrap_or(self.link).to_owned(),
        };
        Draft {
            finding,
            remedies: case.fix,
            wants: case.wants,
        }
    }
}

fn in_files(evidence: &Evidence, kinds: &[FileKind], check: Check) -> Answer {
    if kinds.iter().any(|kind| evidence.files.has(*kind)) {
        return check(evidence);
    }
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    Err(format!("{}{}", crate::NO_FILE, kinds.join(" or ")).into())
}

/// Two checks of one rule: what either finds counts, and one that could be applied is enough.
fn either(one: Answer, other: Answer) -> Answer {
    let is_unread = |answer: &Answer| answer.as_ref().is_err_and(|reason| reason.elsewhere.is_none());
    match (is_unread(&one), is_unread(&other)) {
        (false, true) => one,
        (true, false) => other,
        _ => parts([one, other]),
    }
}

/// Of what could not be read at all.
impl<W: fmt::Display> From<W> for Reason {
    fn from(why: W) -> Self {
        Self {
            text: why.to_string(),
            elsewhere: None,
        }
    }
}
