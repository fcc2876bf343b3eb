//! What programs themselves say in logs that were given.

use model::findings::Severity;
use programs::Evidence;
use programs::config::given::FileKind;
use programs::messages::{Outcome, Said};

use super::rule::{Answer, Case, Checks};
use super::topics::Topic;

#[cfg(test)]
mod tests;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[Checks::of_files("L01", &[FileKind::Log], said)],
};

fn said(evidence: &Evidence) -> Answer {
    Ok(evidence.files.said.iter().map(case).collect())
}

fn case(said: &Said) -> Case {
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
    said.fix.iter().fold(case, Case::fix).link(Some(&said.message.link))
}
