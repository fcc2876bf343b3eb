//! What several forms of a diagnosis say of it, of its findings and of rules.

use doctor::NO_FILE;
use model::findings::{Confidence, Finding, NotJudged, Severity};

use crate::results::Doctor;
use draw::{counted, or_empty};

impl Doctor {
    /// The numbers in one sentence.
    pub fn totals(&self) -> String {
        let unread = match self.files_unread {
            0 => String::new(),
            1 => "1 file was not read. ".to_owned(),
            count => format!("{count} files were not read. "),
        };
        if self.is_blind() {
            return format!(
                "{unread}Not judged: none of {} could be applied",
                counted(self.rules, "rule")
            );
        }
        let partly = self.diagnosis.partly.len();
        let partly = or_empty((partly > 0).then(|| format!(", {partly} judged in part")));
        let [errors, warnings, infos] = [Severity::Error, Severity::Warning, Severity::Info].map(|s| self.count(s));
        let faults = match errors + warnings {
            0 if self.files_unread > 0 => "No fault found in the rest".to_owned(),
            0 if self.files.is_empty() && self.diagnosis.not_judged.len() > self.rules * 3 / 4 => {
                "No fault found in the little that is known".to_owned()
            }
            0 => "No fault found".to_owned(),
            _ => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
        };
        let infos = or_empty((infos > 0).then(|| format!(", {infos} to know")));
        format!(
            "{unread}{faults}{infos}; of {} {} found nothing wrong and {} could not be judged{partly}",
            counted(self.rules, "rule"),
            self.rules_well(),
            self.diagnosis.not_judged.len()
        )
    }
}

/// Id and name, and how sure it is where it is not certain.
pub(super) fn headline(finding: &Finding) -> String {
    let warning = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (likely)",
        Confidence::Low => " (a hint)",
    };
    format!("{} {}{warning}", finding.id, finding.name)
}

/// Why rules could not be judged, and which; in order of the first.
pub(super) fn reasons(list: &[NotJudged]) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for not in list {
        match reasons.iter_mut().find(|(reason, _)| *reason == not.reason) {
            Some((_, ids)) => ids.push(&not.id),
            None => reasons.push((&not.reason, vec![&not.id])),
        }
    }
    reasons
}

/// The same in lines, of which kinds of files that were not given share one.
pub(super) fn reason_lines(list: &[NotJudged]) -> Vec<String> {
    let (mut lines, mut kinds) = (Vec::new(), Vec::new());
    for (reason, ids) in reasons(list) {
        match reason.strip_prefix(NO_FILE) {
            Some(kind) => kinds.push(format!("{} ({kind})", ids.join(" "))),
            None => lines.push(format!("{}: {reason}", ids.join(" "))),
        }
    }
    lines.extend((!kinds.is_empty()).then(|| format!("{NO_FILE}{}", kinds.join(", "))));
    lines
}
