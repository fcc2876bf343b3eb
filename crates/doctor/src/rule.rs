//! What a rule is, and how it reports a finding.

mod case;

use std::fmt;

use model::Unread;
use model::findings::{Diagnosis, Finding, NotJudged, Severity};
use programs::Evidence;
use programs::config::given::FileKind;
use serde::{Deserialize, Deserializer};

use crate::remedy::Draft;
pub(super) use case::Case;

#[derive(Clone, Copy, Deserialize)]
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
#[derive(Clone, Copy, Default)]
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

/// What came out of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict<F = Draft> {
    /// It found something, once or several times.
    Found(Vec<F>),
    /// It was applied, and found nothing.
    Clear,
    /// It was applied in part: what it found there, and what could not be read.
    Partly(Vec<F>, NotJudged),
    /// Something could not be read, and without it there is no answer.
    NotJudged(NotJudged),
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
    /// Applies the rule. Its fixes still have to be held against the machine, with those of all other rules.
    pub(super) fn draft(&self, evidence: &Evidence) -> Verdict {
        let machine = evidence.has_machine.then(|| self.on_machine(evidence));
        let has_files = evidence.files.has_any();
        let files = self.checks.files.filter(|_| has_files);
        let files = files.map(|(kinds, check)| self.in_files(evidence, kinds, check));
        match (machine, files) {
            (Some(machine), Some(files)) => machine.and(files),
            (Some(verdict), None) | (None, Some(verdict)) => verdict,
            (None, None) => self.not_judged("only a running machine shows it"),
        }
    }

    fn on_machine(&self, evidence: &Evidence) -> Verdict {
        match self.checks.machine {
            Some(check) => self.verdict(check(evidence)),
            None => self.not_judged("only a file shows it, and none of its kind was given (doctor --file)"),
        }
    }

    fn in_files(&self, evidence: &Evidence, kinds: &[FileKind], check: Check) -> Verdict {
        if kinds.iter().any(|kind| evidence.files.has(*kind)) {
            return self.verdict(check(evidence));
        }
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        self.not_judged(&format!("{}{}", crate::NO_FILE, kinds.join(" or ")))
    }

    fn not_judged(&self, reason: &str) -> Verdict {
        self.verdict(Err(reason.into()))
    }

    fn verdict(&self, answer: Answer) -> Verdict {
        match answer {
            Ok(cases) if cases.is_empty() => Verdict::Clear,
            Ok(cases) => Verdict::Found(self.findings(cases)),
            Err(Reason { text, elsewhere }) => {
                let (id, reason) = (self.id.to_owned(), text);
                let not_judged = NotJudged { id, reason };
                match elsewhere {
                    Some(cases) => Verdict::Partly(self.findings(cases), not_judged),
                    None => Verdict::NotJudged(not_judged),
                }
            }
        }
    }

    fn findings(&self, cases: Vec<Case>) -> Vec<Draft> {
        cases.into_iter().map(|case| self.finding(case)).collect()
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

impl<F> Verdict<F> {
    /// Two checks of one rule: what either finds counts, and one that could be applied is enough.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Found(mut findings), Self::Found(more)) => {
                findings.extend(more);
                Self::Found(findings)
            }
            (Self::Partly(mut findings, not), Self::Found(more))
            | (Self::Found(more), Self::Partly(mut findings, not)) => {
                findings.extend(more);
                Self::Partly(findings, not)
            }
            (partly @ Self::Partly(..), _) | (_, partly @ Self::Partly(..)) => partly,
            (found @ Self::Found(_), _) | (_, found @ Self::Found(_)) => found,
            (Self::Clear, _) | (_, Self::Clear) => Self::Clear,
            (not_judged, _) => not_judged,
        }
    }

    /// Adds what could not be judged to a diagnosis, and gives what was found.
    pub(super) fn enter(self, diagnosis: &mut Diagnosis) -> Vec<F> {
        match self {
            Self::Found(findings) => findings,
            Self::Clear => Vec::new(),
            Self::Partly(findings, not) => {
                diagnosis.partly.push(not);
                findings
            }
            Self::NotJudged(not_judged) => {
                diagnosis.not_judged.push(not_judged);
                Vec::new()
            }
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({} {})", self.id, self.name)
    }
}

impl From<Unread> for Reason {
    fn from(why: Unread) -> Self {
        Self::from(why.to_string())
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        let elsewhere = None;
        Self { text, elsewhere }
    }
}
