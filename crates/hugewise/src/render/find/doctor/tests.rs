//! Diagnoses that no machine gave, in every form.

use model::findings::{Confidence, Diagnosis, Finding, NotJudged, Proof, Severity};
use serde_json::json;

use super::{overview, prometheus, sarif};
use crate::results::Doctor;
use crate::samples::envelope;
use crate::show::Show;
use draw::Look;

const PLAIN: Look = Look::plain(80);

fn finding(id: &str, severity: Severity, source: &str) -> Finding {
    Finding {
        id: id.to_owned(),
        name: "pool-idle".to_owned(),
        severity,
        confidence: Confidence::Medium,
        evidence: vec![Proof::new(source, "free", "7")],
        consequence: "14M is idle".to_owned(),
        fix: vec!["echo 0 > /proc/x".to_owned(), "or use it".to_owned()],
        plan: None,
        link: "https://example.org".to_owned(),
    }
}

fn not(id: &str, reason: &str) -> NotJudged {
    NotJudged {
        id: id.to_owned(),
        reason: reason.to_owned(),
    }
}

fn doctor(findings: Vec<Finding>, not_judged: Vec<NotJudged>) -> Doctor {
    Doctor {
        rules: 10,
        diagnosis: Diagnosis {
            findings,
            not_judged,
            ..Diagnosis::default()
        },
        files: vec![],
        not_read: vec![],
        files_unread: 0,
        is_verbose: false,
    }
}

fn sick() -> Doctor {
    let findings = vec![
        finding("A02", Severity::Error, "/etc/a b.conf:12"),
        finding("A02", Severity::Error, "/proc/7/smaps"),
        finding("H01", Severity::Info, "CPUID leaf 2"),
    ];
    let not_judged = vec![
        not("B01", "denied: /proc/1"),
        not("B02", "absent: /etc"),
        not("B03", "denied: /proc/1"),
    ];
    doctor(findings, not_judged)
}

#[test]
fn a_finding_reads_from_the_fault_to_the_remedy() {
    let text = doctor(vec![finding("A02", Severity::Warning, "/proc/7/smaps")], vec![]).text(PLAIN);
    let expected = "0 errors, 1 warning; of 10 rules 9 found nothing wrong and 0 could not be
judged.

warning A02 pool-idle (likely)
  14M is idle
  seen  /proc/7/smaps: free = 7
  do    echo 0 > /proc/x
        or use it
  more  https://example.org

`hugewise doctor --explain ID` explains a rule
";
    assert_eq!(text, expected);
}

#[test]
fn rules_that_could_not_be_judged_stand_together_by_reason() {
    let brief = sick().text(PLAIN);
    assert!(!brief.contains("B01") && brief.contains("--verbose"), "{brief}");
    let text = Doctor {
        is_verbose: true,
        ..sick()
    };
    let text = text.text(PLAIN);
    let expected = "not judged: 3 of 10 rules\n  B01 B03: denied: /proc/1\n  B02: absent: /etc\n";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("2 errors, 0 warnings, 1 to know; of 10 rules 5 found nothing wrong and 3 could"),
        "{text}"
    );
}

#[test]
fn words_from_the_machine_cannot_steer_a_terminal_and_severities_are_coloured() {
    let mut evil = finding("A02", Severity::Error, "/proc/\u{1b}[2J");
    evil.consequence = "\u{1b}[31m".to_owned();
    evil.fix = vec!["rm\u{202e}".to_owned()];
    let doctor = doctor(vec![evil], vec![not("B01", "\u{1b}c")]);
    assert!(
        !doctor.text(PLAIN).contains(['\u{1b}', '\u{202e}']),
        "{}",
        doctor.text(PLAIN)
    );
    let colored = doctor.text(Look { color: true, ..PLAIN });
    assert!(colored.contains("\n\u{1b}[1m\u{1b}[31merror\u{1b}[0m "), "{colored:?}");
}

#[test]
fn nothing_judged_is_blind_and_nothing_found_is_not() {
    let blind = doctor(vec![], (0..10).map(|id| not(&format!("A{id}"), "absent")).collect());
    assert!(blind.is_blind());
    assert!(!doctor(vec![], vec![]).is_blind());
    assert!(!sick().is_blind());
}

#[test]
fn the_overview_has_errors_and_warnings_and_says_what_it_leaves_out() {
    let sheet = overview(&sick());
    assert_eq!(sheet.rows, vec![["error", "A02", "echo 0 > /proc/x", "14M is idle"]; 2]);
    assert_eq!(sheet.notes, [sick().totals()]);
    let many = doctor(vec![finding("A02", Severity::Warning, "/x"); 20], vec![]);
    assert_eq!(overview(&many).rows.len(), 12);
    assert_eq!(overview(&many).notes[0], "and 8 more: hugewise doctor");
}

#[test]
fn sarif_places_are_uris_with_lines_where_the_evidence_is_a_file() {
    let log = sarif::log(&envelope(sick()).about(), &sick());
    let results = log["runs"][0]["results"].as_array().expect("results");
    let place = |result: usize| &results[result]["locations"][0];
    assert_eq!(
        place(0)["physicalLocation"],
        json!({"artifactLocation": {"uri": "etc/a%20b.conf", "uriBaseId": "MACHINE"}, "region": {"startLine": 12}})
    );
    assert_eq!(place(1)["physicalLocation"]["artifactLocation"]["uri"], "proc/7/smaps");
    assert_eq!(place(2)["logicalLocations"][0]["fullyQualifiedName"], "CPUID leaf 2");
    assert_eq!(results[2]["level"], "note");
    assert_eq!(
        results[0]["message"]["text"],
        "14M is idle\nWhat to do:\n- echo 0 > /proc/x\n- or use it"
    );
    assert_ne!(results[0]["partialFingerprints"], results[1]["partialFingerprints"]);
}

#[test]
fn prometheus_counts_findings_of_one_rule_on_one_line_and_escapes_labels() {
    let mut odd = finding("A02", Severity::Info, "/x");
    odd.name = "a\"b\\c\nd".to_owned();
    let mut doctor = sick();
    doctor.diagnosis.findings.push(odd);
    let text = prometheus::text(&envelope(doctor.clone()).about(), &doctor);
    for line in [
        r#"hugewise_rule_findings{id="A02",name="pool-idle",severity="error",confidence="medium"} 2"#,
        r#"hugewise_rule_findings{id="A02",name="a\"b\\c\nd",severity="info",confidence="medium"} 1"#,
        r#"hugewise_findings{severity="info"} 2"#,
        r#"hugewise_rules{outcome="not-judged"} 3"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
    }
}
