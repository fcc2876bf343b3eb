//! What a rule is, and how it reports a finding.

use std::fmt;

use host::snapshot::{Feature, Pool};
use model::findings::{Confidence, Diagnosis, Finding, NotJudged, Proof, Severity};
use model::{Bytes, Unread};
use programs::Evidence;
use programs::config::Setting;
use programs::config::given::FileKind;
use serde::{Deserialize, Deserializer};

use crate::facts::{pool_file, thp_file};
use crate::quoted::Quoted;
use crate::remedy::{Draft, Ledger, Need, Remedy};

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
pub enum Verdict<F = Finding> {
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

/// One time that a rule finds something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    severity: Option<Severity>,
    confidence: Confidence,
    evidence: Vec<Proof>,
    consequence: String,
    fix: Vec<Remedy>,
    /// The page size of a pool that its program is to have.
    wants: Option<Bytes>,
    /// Where to read more of this product, in place of the rule's link.
    link: Option<&'static str>,
}

impl Rule {
    /// Applies the rule alone.
    pub fn judge(&self, evidence: &Evidence) -> Verdict {
        let mut ledger = Ledger::of(evidence);
        self.draft(evidence).map(|draft| ledger.settle(draft))
    }

    /// Applies the rule. Its fixes still have to be held against the machine, with those of all other rules.
    pub(super) fn draft(&self, evidence: &Evidence) -> Verdict<Draft> {
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

    fn on_machine(&self, evidence: &Evidence) -> Verdict<Draft> {
        match self.checks.machine {
            Some(check) => self.verdict(check(evidence)),
            None => self.not_judged("only a file shows it, and none of its kind was given (doctor --file)"),
        }
    }

    fn in_files(&self, evidence: &Evidence, kinds: &[FileKind], check: Check) -> Verdict<Draft> {
        if kinds.iter().any(|kind| evidence.files.has(*kind)) {
            return self.verdict(check(evidence));
        }
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        self.not_judged(&format!("{}{}", crate::NO_FILE, kinds.join(" or ")))
    }

    fn not_judged(&self, reason: &str) -> Verdict<Draft> {
        let (id, reason) = (self.id.to_owned(), reason.to_owned());
        Verdict::NotJudged(NotJudged { id, reason })
    }

    fn verdict(&self, answer: Answer) -> Verdict<Draft> {
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

    /// The same with each finding as `settled` makes it.
    fn map<T>(self, settled: impl FnMut(F) -> T) -> Verdict<T> {
        match self {
            Self::Found(findings) => Verdict::Found(findings.into_iter().map(settled).collect()),
            Self::Partly(findings, not) => Verdict::Partly(findings.into_iter().map(settled).collect(), not),
            Self::Clear => Verdict::Clear,
            Self::NotJudged(not) => Verdict::NotJudged(not),
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

impl Case {
    /// Something was found that costs this.
    pub(super) fn new(confidence: Confidence, consequence: impl Into<String>) -> Self {
        Self {
            severity: None,
            confidence,
            evidence: Vec::new(),
            consequence: consequence.into(),
            fix: Vec::new(),
            wants: None,
            link: None,
        }
    }

    /// The fault itself was read.
    pub(super) fn sure(consequence: impl Into<String>) -> Self {
        Self::new(Confidence::High, consequence)
    }

    /// It follows from several facts.
    pub(super) fn likely(consequence: impl Into<String>) -> Self {
        Self::new(Confidence::Medium, consequence)
    }

    pub(super) fn hint(consequence: impl Into<String>) -> Self {
        Self::new(Confidence::Low, consequence)
    }

    /// With a line of evidence. A reading that was not read is none.
    pub(super) fn seen(mut self, source: impl Into<String>, field: impl Into<String>, value: impl Quoted) -> Self {
        let value = value.quoted();
        self.evidence
            .extend(value.map(|value| Proof::new(source, field, value)));
        self
    }

    /// With a line of a file.
    pub(super) fn seen_line(self, line: &Setting) -> Self {
        self.seen(&line.place, &line.name, &line.value)
    }

    /// With what a value adds, if there is one.
    pub(super) fn with<T>(self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => add(self, value),
            None => self,
        }
    }

    /// With what this adds, if that is so.
    pub(super) fn when(self, is_so: bool, add: impl FnOnce(Self) -> Self) -> Self {
        match is_so {
            true => add(self),
            false => self,
        }
    }

    /// A program is to have this pool: no other finding advises to free it.
    pub(super) fn wants(mut self, page: Bytes) -> Self {
        self.wants = Some(page);
        self
    }

    /// With the page of the product itself, where the rule is for several.
    pub(super) fn link(mut self, link: Option<&'static str>) -> Self {
        self.link = link;
        self
    }

    /// With something to do, which every machine takes.
    pub(super) fn fix(self, step: impl Into<String>) -> Self {
        self.remedy(Remedy::new(step))
    }

    /// With something to do where the machine has what it needs.
    pub(super) fn remedy(mut self, remedy: Remedy) -> Self {
        self.fix.push(remedy);
        self
    }

    /// With something to do where the machine has that.
    pub(super) fn fix_with(self, need: Need, step: impl Into<String>) -> Self {
        self.remedy(Remedy::new(step).need(need))
    }

    /// With something to do if that is so.
    pub(super) fn fix_if(self, is_so: bool, step: impl Into<String>) -> Self {
        self.when(is_so, |case| case.fix(step))
    }

    /// With what does in place of the fixes before it, if anything does.
    pub(super) fn instead(self, step: Option<impl Into<String>>) -> Self {
        self.with(step, |case, step| case.remedy(Remedy::new(step).instead()))
    }

    /// With something to do where nothing else can be taken.
    pub(super) fn otherwise(self, step: impl Into<String>) -> Self {
        self.remedy(Remedy::new(step).last())
    }

    /// A THP setting to write.
    pub(super) fn write(self, name: &str, value: &str) -> Self {
        self.write_as(name, value, |command| command)
    }

    /// The THP policy `madvise`: by a plan, or to write.
    pub(super) fn madvise(self) -> Self {
        self.plan("thp=madvise").write("enabled", "madvise")
    }

    /// To collapse the memory of a process, where the kernel can.
    pub(super) fn collapse(self, words: &str, pid: impl fmt::Display) -> Self {
        self.fix_with(
            Need::Feature(Feature::Collapse),
            format!("{words}: hugewise collapse {pid}"),
        )
    }

    /// A pool to fill by hand.
    pub(super) fn fill(self, pool: &Pool, pages: u64) -> Self {
        self.fill_as(pool, pages, |command| command)
    }

    /// A pool to fill by hand, within a sentence.
    pub(super) fn fill_as(self, pool: &Pool, pages: u64, sentence: impl FnOnce(String) -> String) -> Self {
        let command = format!("echo {pages} > {}", pool_file(pool, "nr_hugepages"));
        self.fix_with(Need::pool(pool.size, pages), sentence(command))
    }

    /// A THP setting to write, within a sentence.
    pub(super) fn write_as(self, name: &str, value: &str, sentence: impl FnOnce(String) -> String) -> Self {
        let command = format!("echo {value} > {}", thp_file(name));
        self.fix_with(Need::thp(name, value), sentence(command))
    }

    /// A plan does it: its goal as `hugewise plan --for` takes it.
    pub(super) fn plan(self, goal: impl fmt::Display) -> Self {
        self.remedy(Remedy::plan(&goal.to_string()))
    }

    /// A plan does it, if the pools have room.
    pub(super) fn plan_with(self, need: Need, goal: impl fmt::Display) -> Self {
        self.remedy(Remedy::plan(&goal.to_string()).need(need))
    }

    /// Not as severe as the rule's findings usually are, or more so.
    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// No more than worth knowing, if that is so.
    pub(super) fn info_if(self, is_so: bool) -> Self {
        self.when(is_so, |case| case.severity(Severity::Info))
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
