//! A diagnosis to be read from top to bottom: the worst first, evidence and commands on lines of their own.

use anstyle::{AnsiColor, Style};
use doctor::Rule;
use model::findings::{Finding, NotJudged, Severity};

use super::{headline, reasons};
use crate::render::look::Look;
use crate::render::sheet::printable;
use crate::results::Doctor;
use crate::show::wrapped;

/// Columns before the text of an entry.
const INDENT: usize = 8;

/// All findings, what could not be judged, and the totals in the last line.
pub(super) fn text(doctor: &Doctor, look: Look) -> String {
    let findings = doctor.diagnosis.findings.iter();
    let mut parts: Vec<String> = findings.map(|found| finding(found, look)).collect();
    let [not, partly] = [&doctor.diagnosis.not_judged, &doctor.diagnosis.partly];
    parts.extend(unjudged("not judged", not, doctor.rules, look));
    parts.extend(unjudged("judged in part", partly, doctor.rules, look));
    let totals = format!("{}; hugewise doctor --explain ID explains a rule", doctor.totals());
    parts.push(wrapped(&totals, look.width));
    parts.join("\n")
}

/// What a rule looks for, offline.
pub fn explanation(rule: &Rule, look: Look) -> String {
    let head = format!("{} {} ({}; {})\n", rule.id, rule.name, rule.severity, rule.holds);
    let more = format!("more at {}\n", rule.link);
    [
        painted(&head, Style::new().bold(), look),
        wrapped(rule.text, look.width),
        more,
    ]
    .join("\n")
}

fn finding(finding: &Finding, look: Look) -> String {
    let severity = painted(&finding.severity.to_string(), style(finding.severity), look);
    let head = format!(
        "{severity} {}\n",
        painted(&headline(finding), Style::new().bold(), look)
    );
    let costs = wrapped(&printable(&finding.consequence), look.width.saturating_sub(2));
    let costs: String = costs.lines().map(|line| format!("  {line}\n")).collect();
    let seen = finding.evidence.iter().map(ToString::to_string);
    let parts = [
        head,
        costs,
        entries("seen", seen),
        entries("do", finding.fix.iter().cloned()),
        entries("more", [finding.link.clone()]),
    ];
    parts.concat()
}

/// Lines as they are, so that paths and commands can be copied; the word stands before the first.
fn entries(word: &str, lines: impl IntoIterator<Item = String>) -> String {
    let words = std::iter::once(word).chain(std::iter::repeat(""));
    let lines = words.zip(lines);
    lines
        .map(|(word, line)| format!("  {word:<width$}{}\n", printable(&line), width = INDENT - 2))
        .collect()
}

fn unjudged(what: &str, list: &[NotJudged], rules: usize, look: Look) -> Option<String> {
    let (reasons, count) = (reasons(list), list.len());
    let head = format!("{what}: {count} of {rules} rules");
    let head = painted(&head, Style::new().bold(), look);
    let lines = reasons
        .iter()
        .map(|(reason, ids)| format!("  {}: {}\n", ids.join(" "), printable(reason)));
    (count > 0).then(|| format!("{head}\n{}", lines.collect::<String>()))
}

fn style(severity: Severity) -> Style {
    let color = match severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Info => AnsiColor::Cyan,
    };
    Style::new().bold().fg_color(Some(color.into()))
}

fn painted(text: &str, style: Style, look: Look) -> String {
    match look.color {
        true => format!("{style}{text}{style:#}"),
        false => text.to_owned(),
    }
}
