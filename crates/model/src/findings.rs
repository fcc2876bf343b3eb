//! The shape of a diagnosis: what is wrong with a machine, on what evidence, and what could not be judged.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::names! {
    /// How much a finding matters, least first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity, "a severity" {
        /// Worth knowing.
        Info = "info",
        /// Speed or memory is lost.
        Warning = "warning",
        /// A wrong result, a crash, or a set-up that does not work at all.
        Error = "error",
    }
}

/// How sure a finding is, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// A hint: counters since boot, or a default that often goes with the fault.
    Low,
    /// Put together from several facts, one of which is usual rather than certain.
    Medium,
    /// What was read is the fault itself.
    High,
}

/// One line of evidence: where, which field, what was read there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// A file, with `:line` where that helps, or a process's file.
    pub source: String,
    /// Which field or line of it; empty if the file holds one value.
    pub field: String,
    /// The value as read, with its unit.
    pub value: String,
}

/// One thing that is wrong, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule's stable id, such as `A01`.
    pub id: String,
    /// The rule's stable name, such as `pool-short`.
    pub name: String,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// What was read, where.
    pub evidence: Vec<Proof>,
    /// What it costs, in the user's units.
    pub consequence: String,
    /// What to do, a command or a setting each, in order.
    pub fix: Vec<String>,
    /// The plan that is among the fixes. It is for this program itself, which drops a plan that it would refuse.
    #[serde(skip)]
    pub plan: Option<Planned>,
    /// Where to read more.
    pub link: String,
}

/// A plan among the fixes of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its goal, as `hugewise plan --for` takes it.
    pub goal: String,
    /// What to do if the plan is refused and no other fix is left.
    pub otherwise: Vec<String>,
}

/// A rule that could not be judged, or not wholly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotJudged {
    /// The rule's id.
    pub id: String,
    /// What could not be looked at, and why.
    pub reason: String,
}

/// All that the rules say about a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// What was found, most severe first.
    pub findings: Vec<Finding>,
    /// What could not be judged, in order of id.
    pub not_judged: Vec<NotJudged>,
    /// What was judged without some processes or pools that could not be looked at, in order of id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partly: Vec<NotJudged>,
}

impl Finding {
    /// The commands that make and apply the plan of a goal.
    pub fn command_of(goal: &str) -> String {
        format!("hugewise plan --for {goal} --output plan.json && sudo hugewise apply plan.json")
    }

    /// Takes the plan out of the fixes, because this machine refuses it.
    pub fn drop_plan(&mut self) {
        if let Some(plan) = self.plan.take() {
            let command = Self::command_of(&plan.goal);
            self.fix.retain(|step| *step != command);
            if self.fix.is_empty() {
                self.fix = plan.otherwise;
            }
        }
    }
}

impl Diagnosis {
    /// Is something at or above this severity?
    pub fn reaches(&self, least: Severity) -> bool {
        self.findings.iter().any(|finding| finding.severity >= least)
    }

    /// The findings of one rule.
    pub fn of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Finding> {
        self.findings.iter().filter(move |finding| finding.id == id)
    }
}

impl Proof {
    /// A line of evidence.
    pub fn new(source: impl Into<String>, field: impl Into<String>, value: impl fmt::Display) -> Self {
        Self {
            source: source.into(),
            field: field.into(),
            value: value.to_string(),
        }
    }
}

impl fmt::Display for Proof {
    /// `/proc/meminfo: MemTotal = 24G`, or `/sys/kernel/mm/ksm/run = 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.field.as_str() {
            "" => String::new(),
            field => format!(": {field}"),
        };
        f.pad(&format!("{}{field} = {}", self.source, self.value))
    }
}

crate::shown_by_name!(Confidence);
#[cfg(test)]
mod tests {
    use super::{Confidence, Diagnosis, Finding, Proof, Severity};

    fn finding(severity: Severity) -> Finding {
        Finding {
            id: "A02".to_owned(),
            name: "pool-idle".to_owned(),
            severity,
            confidence: Confidence::High,
            evidence: vec![Proof::new("/proc/x", "free", 7)],
            consequence: String::new(),
            fix: vec![],
            plan: None,
            link: String::new(),
        }
    }

    #[test]
    fn severities_have_an_order_and_one_spelling() {
        for severity in [Severity::Info, Severity::Warning, Severity::Error] {
            assert_eq!(severity.to_string().parse(), Ok(severity));
            assert_eq!(serde_json::to_value(severity).expect("JSON"), severity.to_string());
        }
        let diagnosis = Diagnosis {
            findings: vec![finding(Severity::Info), finding(Severity::Warning)],
            ..Diagnosis::default()
        };
        assert!(diagnosis.reaches(Severity::Warning) && !diagnosis.reaches(Severity::Error));
        assert!(!Diagnosis::default().reaches(Severity::Info));
        assert!("fatal".parse::<Severity>().is_err());
    }

    #[test]
    fn evidence_reads_as_a_line() {
        assert_eq!(
            Proof::new("/proc/meminfo", "MemTotal", "24G").to_string(),
            "/proc/meminfo: MemTotal = 24G"
        );
        assert_eq!(
            Proof::new("/sys/kernel/mm/ksm/run", "", 1).to_string(),
            "/sys/kernel/mm/ksm/run = 1"
        );
    }
}
