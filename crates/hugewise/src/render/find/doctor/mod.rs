//! A diagnosis in every form: as text for people, as tables, and in the forms that CI and monitoring read.

mod summary;
mod text;

#[cfg(test)]
mod tests;

use std::iter;

use model::Envelope;
use model::findings::{Finding, NotJudged, Severity};

use self::summary::{headline, reasons};
use super::super::export::{prometheus, sarif};
use crate::cli::args::Format;
use crate::results::Doctor;
use crate::results::doctor::rule_name;
use crate::show::Show;
use draw::{Lines, Look, Sheet, columns, joined, lines, safe};

pub use text::{explanation, rules};

/// Rows of the overview.
const MOST: usize = 12;

impl Show for Doctor {
    fn title(&self) -> String {
        "What is wrong here".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        let not_read = self.not_read.iter().map(|why| format!("Not read: {why}"));
        iter::once(self.totals() + ".").chain(not_read).collect()
    }

    fn text(&self, look: Look) -> String {
        text::text(self, look)
    }

    fn sheets(&self) -> Vec<Sheet> {
        details(self).into_iter().chain(not_judged(self)).collect()
    }

    fn own(&self, about: &Envelope<()>, format: Format) -> Option<String> {
        match format {
            Format::Prometheus => Some(safe::printable_lines(&prometheus::text(about, self))),
            Format::Sarif => Some(safe::json(&format!("{:#}\n", sarif::log(about, self))).into_owned()),
            _ => None,
        }
    }

    /// One line for each finding, then one for each rule that could not be judged.
    fn csv(&self) -> Lines<'_> {
        let fields = columns![|judged| Judged<'_>;
            id => judged.map_or_else(|not| &not.id, |found| &found.id),
            name => judged.map_or_else(|not| rule_name(&not.id).to_owned(), |found| found.name.clone()),
            severity => judged.ok()?.severity, confidence => judged.ok()?.confidence,
            consequence => judged.ok()?.consequence, evidence => joined(&judged.ok()?.evidence, "\n"),
            fix => judged.ok()?.fix.join("\n"), link => judged.ok()?.link, not_judged => judged.err()?.reason,
        ];
        let found = self.diagnosis.findings.iter().map(Ok);
        lines(fields, found.chain(self.diagnosis.not_judged.iter().map(Err)))
    }
}

/// Errors and warnings in one table: what they cost and the first thing to do.
pub fn overview(doctor: &Doctor) -> Sheet {
    let fields = columns![|finding| &Finding;
        "severity" => finding.severity, "id" => finding.id, "first thing to do" => finding.fix.first()?,
        "what it costs" => finding.consequence,
    ];
    let findings = doctor.diagnosis.findings.iter();
    let loud = findings.filter(|finding| finding.severity >= Severity::Warning);
    let mut sheet = Sheet::of("Findings", fields, loud.clone().take(MOST));
    let more = loud.count().saturating_sub(MOST);
    if more > 0 {
        sheet.note(format!("and {more} more: hugewise doctor"));
    }
    sheet.note(doctor.totals());
    sheet
}

/// Every finding with all that is known about it.
pub fn details(doctor: &Doctor) -> Vec<Sheet> {
    doctor.diagnosis.findings.iter().map(finding).collect()
}

/// Rules that found nothing because something could not be read.
pub fn not_judged(doctor: &Doctor) -> Vec<Sheet> {
    let not = unjudged("Not judged", &doctor.diagnosis.not_judged);
    let partly = unjudged("Judged in part", &doctor.diagnosis.partly);
    not.into_iter().chain(partly).collect()
}

fn finding(finding: &Finding) -> Sheet {
    let mut sheet = Sheet::new(&format!("{}: {}", finding.severity, headline(finding)), ["", "what"]);
    sheet.row(["costs", &finding.consequence]);
    for proof in &finding.evidence {
        sheet.row(["seen", &proof.to_string()]);
    }
    for step in &finding.fix {
        sheet.row(["do", step]);
    }
    sheet.row(["more", &finding.link]);
    sheet
}

fn unjudged(title: &str, list: &[NotJudged]) -> Option<Sheet> {
    let fields = columns![|(reason, ids)| (&str, Vec<&str>); "why" => reason, "rules" => ids.join(" ")];
    Sheet::of(title, fields, reasons(list).into_iter()).with_rows()
}

/// A finding, or a rule that could not be judged.
type Judged<'a> = Result<&'a Finding, &'a NotJudged>;
