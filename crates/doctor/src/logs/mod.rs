//! What programs themselves say in logs that were given.

use model::findings::Severity;
use programs::Evidence;
use programs::config::given::FileKind;
use programs::messages::{Outcome, Said};

use super::facts::thp_file;
use super::rule::{Answer, Case, Checks};
use super::topics::Topic;

#[cfg(test)]
mod tests;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[Checks::of_files("L01", &[FileKind::Log], said)],
};

fn said(evidence: &Evidence) -> Answer {
    Ok(evidence.files.said.iter().map(|said| case(evidence, said)).collect())
}

fn case(evidence: &Evidence, said: &Said) -> Case {
    let severity = match said.message.outcome {
        Outcome::Fails => Severity::Error,
        Outcome::FallsBack | Outcome::Costs => Severity::Warning,
        Outcome::Tells => Severity::Info,
    };
    let case = Case::sure(said.sentence())
        .severity(severity)
        .seen(&said.place, "line", &said.text)
        .when(said.times > 1, |case| {
            case.seen(&said.place, "lines like it", said.times)
        })
        .fix_if(said.fix.is_empty(), "to see what backs it now: hugewise ps");
    // A machine that is given must have the setting that a line of the fix writes.
    let with = |case: Case, step: &String| match thp_setting(step).filter(|_| evidence.has_machine) {
        Some((name, value)) => case.write_as(name, value, |_| step.clone()),
        None => case.fix(step),
    };
    said.fix.iter().fold(case, with).link(Some(&said.message.link))
}

/// The THP setting that a line of a fix writes, with its value.
fn thp_setting(step: &str) -> Option<(&str, &str)> {
    let (_, command) = step.split_once("echo ")?;
    let (value, path) = command.split_once(" > ")?;
    let name = path.strip_prefix(thp_file("").as_str())?;
    Some((name.split([',', ' ', ';']).next()?, value))
}
