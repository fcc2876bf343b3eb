//! A diagnosis to be read from top to bottom: the worst first, evidence and commands on lines of their own.

use std::{iter, slice};

use anstyle::{AnsiColor, Style};
use doctor::Rule;
use model::findings::{Finding, NotJudged, Severity};

use super::summary::{headline, reason_lines};
use crate::results::Doctor;
use crate::show::wrapped;
use draw::layout::{behind, folded, step};
use draw::{Look, Sheet, counted, joined, printable};

/// Columns before the text of an entry.
const INDENT: usize = 8;

/// The verdict, all findings, and how to see the rest.
pub(super) fn text(doctor: &Doctor, look: Look) -> String {
    let verdict = wrapped(&(doctor.totals() + "."), look.width);
    let files = doctor.files.iter().map(|file| {
        let kind = match &*file.kind {
            "provision" => {
                "provision (settings in a file of a tool that sets machines up; what the tool works out is not known)"
            }
            "compose" => "compose (a compose file, a `docker run` command, a Quadlet or Docker's daemon.json)",
            kind => kind,
        };
        let line = format!("{}: taken as {kind}", printable(&file.name));
        wrapped(&line, look.width)
    });
    let not_read = doctor.not_read.iter();
    let not_read = not_read.map(|why| wrapped(&format!("not read: {}", printable(why)), look.width));
    let files: String = files.chain(not_read).collect();
    let verdict = look.painted(verdict.trim_end(), Style::new().bold()) + "\n" + &files;
    let findings = doctor.diagnosis.findings.iter().map(|found| finding(found, look));
    let [not, partly] = [&doctor.diagnosis.not_judged, &doctor.diagnosis.partly];
    let lists = [("not judged", not), ("judged in part", partly)].into_iter();
    let lists = lists.filter_map(|(what, list)| unjudged(what, list, doctor.rules, look));
    let more: Vec<String> = match doctor.is_verbose {
        true => lists.collect(),
        false => hints(doctor, look).into_iter().collect(),
    };
    let parts = [verdict].into_iter().chain(findings).chain(more);
    joined(parts, "\n")
}

fn hints(doctor: &Doctor, look: Look) -> Option<String> {
    let not = !doctor.diagnosis.not_judged.is_empty() || !doctor.diagnosis.partly.is_empty();
    let not = not.then_some("`hugewise doctor --verbose` lists rules that could not be judged, and why");
    let found = !doctor.diagnosis.findings.is_empty();
    let found = found.then_some("`hugewise doctor --explain ID` explains a rule");
    let hints = not.into_iter().chain(found);
    let hints: String = hints.map(|hint| wrapped(hint, look.width)).collect();
    (!hints.is_empty()).then_some(hints)
}

/// Every rule there is, a line each.
pub fn rules(look: Look) -> String {
    let mut sheet = Sheet::new("Rules of doctor", ["id", "name", "severity", "~holds for"]);
    doctor::rules().for_each(|rule| sheet.row([rule.id, rule.name, &rule.severity.to_string(), rule.holds]));
    sheet.note("`hugewise doctor --explain ID` explains a rule");
    sheet.text(look)
}

/// What a rule looks for, offline.
pub fn explanation(rule: &Rule, look: Look) -> String {
    let head = format!("{} {} ({}; {})\n", rule.id, rule.name, rule.severity, rule.holds);
    let more = wrapped(&format!("more at {}", rule.link), look.width);
    [
        look.painted(head, Style::new().bold()),
        wrapped(rule.text, look.width),
        more,
    ]
    .join("\n")
}

fn finding(finding: &Finding, look: Look) -> String {
    let severity = look.painted(finding.severity, style(finding.severity));
    let head = format!("{severity} {}\n", look.painted(headline(finding), Style::new().bold()));
    let costs = wrapped(&printable(&finding.consequence), look.width.saturating_sub(2));
    let costs: String = costs.lines().map(|line| format!("  {line}\n")).collect();
    let seen: Vec<String> = finding.evidence.iter().map(ToString::to_string).collect();
    let parts = [
        head,
        costs,
        entries("seen", &seen, folded, look),
        entries("do", &finding.fix, step, look),
        entries("more", slice::from_ref(&finding.link), folded, look),
    ];
    parts.concat()
}

/// Lines behind a word. Paths and commands stay whole, so that they can be copied.
fn entries(word: &str, texts: &[String], fold: fn(&str, usize) -> Vec<String>, look: Look) -> String {
    let room = usize::from(look.width).saturating_sub(INDENT);
    let lines = texts.iter().flat_map(|text| fold(&printable(text), room));
    behind(&format!("  {word}"), INDENT, lines)
}

fn unjudged(what: &str, list: &[NotJudged], rules: usize, look: Look) -> Option<String> {
    let head = format!("{what}: {} of {}", list.len(), counted(rules, "rule"));
    let head = look.painted(head, Style::new().bold());
    let room = usize::from(look.width).saturating_sub(4);
    let lines = reason_lines(list).into_iter().flat_map(|line| {
        let lines = folded(&printable(&line), room);
        let indents = iter::once("  ").chain(iter::repeat("    "));
        indents
            .zip(lines)
            .map(|(indent, line)| format!("{indent}{line}\n"))
            .collect::<Vec<_>>()
    });
    (!list.is_empty()).then(|| format!("{head}\n{}", lines.collect::<String>()))
}

fn style(severity: Severity) -> Style {
    let color = match severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Info => AnsiColor::Cyan,
    };
    Style::new().bold().fg_color(Some(color.into()))
}
