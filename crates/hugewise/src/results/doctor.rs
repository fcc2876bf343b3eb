//! What `hugewise doctor` answers: the diagnosis of a machine, and how many rules it rests on.

use std::collections::BTreeSet;

use model::findings::{Diagnosis, Severity};
use programs::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wrong with a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {
    /// Rules that were applied; those that are in neither list found nothing wrong.
    pub rules: usize,
    /// What they found, and which of them could not be judged.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
    /// Files that were checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Taken>,
    /// Files, and parts of them, that could not be read, and why: they are not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<String>,
    /// How many of those are whole files.
    #[serde(skip)]
    pub files_unread: usize,
    /// Are rules that could not be judged listed in the text?
    #[serde(skip)]
    pub is_verbose: bool,
}

/// A file, and what it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// Its name as typed.
    pub name: String,
    /// Its kind, as `--as` names it.
    pub kind: String,
}

impl Doctor {
    /// Applies every rule to a machine, to files, or to both.
    pub fn of(evidence: &Evidence) -> Self {
        Self {
            rules: doctor::rules().count(),
            diagnosis: doctor::judge(evidence),
            ..Self::default()
        }
    }

    /// Findings of one severity.
    pub fn count(&self, severity: Severity) -> usize {
        let findings = self.diagnosis.findings.iter();
        findings.filter(|finding| finding.severity == severity).count()
    }

    /// Rules that found something, be it several times.
    pub fn rules_with_findings(&self) -> usize {
        let ids = self.diagnosis.findings.iter().map(|finding| &finding.id);
        ids.collect::<BTreeSet<_>>().len()
    }

    /// Rules that looked and found nothing.
    pub fn rules_well(&self) -> usize {
        let others = self.rules_with_findings() + self.diagnosis.not_judged.len();
        self.rules.saturating_sub(others)
    }

    /// Could not a single rule be judged?
    pub fn is_blind(&self) -> bool {
        self.diagnosis.findings.is_empty() && self.diagnosis.not_judged.len() >= self.rules
    }
}

/// The name of a rule, where this version knows it.
pub(crate) fn rule_name(id: &str) -> &'static str {
    doctor::explain(id).map_or("", |rule| rule.name)
}
