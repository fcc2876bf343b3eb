//! A diagnosis as SARIF 2.1.0, for code scanning in CI. Places are files of the machine that was looked at.

use doctor::Rule;
use model::Envelope;
use model::findings::{Finding, NotJudged, Proof, Severity};
use serde_json::{Value, json};

use crate::results::Doctor;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// What the places of the machine are relative to.
const BASE: &str = "MACHINE";

pub(crate) fn log(result: &Envelope<()>, doctor: &Doctor) -> Value {
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": result.tool.name,
                "version": result.tool.version,
                "rules": doctor::rules().map(descriptor).collect::<Vec<_>>(),
            }},
            "originalUriBaseIds": {BASE: {
                "uri": "file:///",
                "description": {"text": "the root directory of the machine that was looked at"},
            }},
            "invocations": [{
                "executionSuccessful": !doctor.is_blind(),
                "commandLine": result.command.join(" "),
                "startTimeUtc": result.started,
                "toolExecutionNotifications": doctor.diagnosis.not_judged.iter().map(notification).collect::<Vec<_>>(),
            }],
            "results": doctor.diagnosis.findings.iter().map(found).collect::<Vec<_>>(),
            "properties": {"machine": result.machine},
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn descriptor(rule: &Rule) -> Value {
    let first = rule.text.split_inclusive(". ").next().unwrap_or_default();
    json!({
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": first.trim_end()},
        "fullDescription": {"text": rule.text},
        "helpUri": rule.link,
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"holds": rule.holds},
    })
}

/// Place of a rule in the driver's list; a result of another version may have a rule that is not there.
fn index(id: &str) -> Option<usize> {
    doctor::rules().position(|rule| rule.id == id)
}

fn found(finding: &Finding) -> Value {
    let steps: String = finding.fix.iter().map(|step| format!("\n- {step}")).collect();
    let todo = if steps.is_empty() { "" } else { "\nWhat to do:" };
    let mut result = json!({
        "ruleId": finding.id,
        "level": level(finding.severity),
        "message": {"text": format!("{}{todo}{steps}", finding.consequence)},
        "locations": finding.evidence.iter().map(location).collect::<Vec<_>>(),
        "partialFingerprints": {"ruleAndPlaces/v1": fingerprint(finding)},
        "properties": {"confidence": finding.confidence, "evidence": finding.evidence, "fix": finding.fix},
    });
    if let Some(index) = index(&finding.id) {
        result["ruleIndex"] = index.into();
    }
    result
}

/// What stays the same while values change.
fn fingerprint(finding: &Finding) -> String {
    let places = finding.evidence.iter();
    let places = places.map(|proof| format!(" {}#{}", proof.source, proof.field));
    std::iter::once(finding.id.clone()).chain(places).collect()
}

/// A file and line where the evidence is one, else its name only.
fn location(proof: &Proof) -> Value {
    let message = json!({"text": proof.to_string()});
    match proof.source.strip_prefix('/') {
        Some(path) => json!({"message": message, "physicalLocation": physical(path)}),
        None => json!({"message": message, "logicalLocations": [{"fullyQualifiedName": proof.source}]}),
    }
}

fn physical(path: &str) -> Value {
    let numbered = path
        .rsplit_once(':')
        .and_then(|(path, line)| Some((path, line.parse::<u32>().ok().filter(|&line| line > 0)?)));
    let file = |path: &str| json!({"uri": encoded(path), "uriBaseId": BASE});
    match numbered {
        Some((path, line)) => json!({"artifactLocation": file(path), "region": {"startLine": line}}),
        None => json!({"artifactLocation": file(path)}),
    }
}

/// A path as part of a URI: everything but letters, digits and `-._~/` by its bytes.
fn encoded(path: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        plain if plain.is_ascii_alphanumeric() => char::from(plain).to_string(),
        other => format!("%{other:02X}"),
    };
    path.bytes().map(byte).collect()
}

fn notification(not: &NotJudged) -> Value {
    let mut rule = json!({"id": not.id});
    if let Some(index) = index(&not.id) {
        rule["index"] = index.into();
    }
    json!({
        "level": "note",
        "message": {"text": format!("{} could not be judged: {}", not.id, not.reason)},
        "associatedRule": rule,
    })
}
