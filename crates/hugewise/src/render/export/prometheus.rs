//! A diagnosis as Prometheus text (exposition format 0.0.4), for a file that node_exporter's textfile collector reads.

use std::collections::BTreeMap;
use std::fmt::Write;

use model::Envelope;
use model::findings::Severity;

use crate::results::Doctor;
use crate::results::doctor::rule_name;
use draw::joined;

type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Its counts as gauges.
pub(crate) fn text(result: &Envelope<()>, doctor: &Doctor) -> String {
    let mut text = String::new();
    let build = [(vec![("version", result.tool.version.as_str())], 1)];
    let always = "The program that wrote this; always 1.";
    family(&mut text, "hugewise_build_info", always, build);
    let severities =
        [Severity::Error, Severity::Warning, Severity::Info].map(|severity| (severity.to_string(), severity));
    let counts = severities.iter();
    let counts = counts.map(|(name, severity)| (vec![("severity", name.as_str())], doctor.count(*severity)));
    family(&mut text, "hugewise_findings", "Findings by severity.", counts);
    let outcomes = [
        ("clear", doctor.rules_well()),
        ("found", doctor.rules_with_findings()),
        ("not-judged", doctor.diagnosis.not_judged.len()),
    ];
    let outcomes = outcomes.map(|(outcome, count)| (vec![("outcome", outcome)], count));
    family(&mut text, "hugewise_rules", "Rules by what came of them.", outcomes);
    findings(&mut text, doctor);
    not_judged(&mut text, doctor);
    text
}

/// How often each rule found something, by severity and confidence: no two lines with the same labels.
fn findings(text: &mut String, doctor: &Doctor) {
    let mut counts: BTreeMap<[String; 4], usize> = BTreeMap::new();
    for finding in &doctor.diagnosis.findings {
        let (severity, confidence) = (finding.severity.to_string(), finding.confidence.to_string());
        let labels = [finding.id.clone(), finding.name.clone(), severity, confidence];
        *counts.entry(labels).or_default() += 1;
    }
    let names = ["id", "name", "severity", "confidence"];
    let lines = counts.iter().map(|(labels, count)| {
        let labels = names.into_iter().zip(labels.iter().map(String::as_str));
        (labels.collect(), *count)
    });
    let what = "Findings of each rule that has any.";
    family(text, "hugewise_rule_findings", what, lines);
}

fn not_judged(text: &mut String, doctor: &Doctor) {
    let ids = doctor.diagnosis.not_judged.iter().map(|not| not.id.as_str());
    let lines = ids.map(|id| (vec![("id", id), ("name", rule_name(id))], 1));
    let what = "Rules that could not be judged; always 1.";
    family(text, "hugewise_rule_not_judged", what, lines);
}

/// Adds a gauge with its lines; nothing where it has none.
fn family<'a>(text: &mut String, name: &str, help: &str, lines: impl IntoIterator<Item = (Labels<'a>, usize)>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_none() {
        return;
    }
    // Writing to a String does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for (labels, value) in lines {
        let labels = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)));
        let _ = writeln!(text, "{name}{{{}}} {value}", joined(labels, ","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}
