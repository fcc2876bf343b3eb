//! The next commands to type, for this machine: what its findings, its programs and the measurement call for.

use model::findings::Severity;
use model::verdict::{Limits, Next, Saving, WhyNext};

use super::Grounds;
use crate::render::export::word;

/// More would be no lead.
const MOST: usize = 3;
/// Below this share of memory on huge pages, in percent, hardly anything uses them.
const HARDLY: f64 = 5.0;

/// The most useful first.
pub(super) fn next(grounds: &Grounds<'_>, saving: &Saving, limits: &Limits) -> Vec<Next> {
    let has_thp = limits.thp.known().is_some();
    let is_measured = !matches!(saving, Saving::NotMeasured { .. } | Saving::NothingToCompare { .. });
    let hardly_used = limits
        .coverage
        .as_ref()
        .is_none_or(|coverage| coverage.percent < HARDLY);
    let saves = matches!(saving, Saving::Saves { .. });
    let wants = saves && hardly_used && has_thp;
    let is_live = grounds.root.is_none();
    let is_always = limits.thp.known().is_none_or(|policy| policy == "always");
    let more = [
        longer(saving).map(|words| command(grounds, &words, WhyNext::Longer)),
        (wants && is_live).then(|| command(grounds, "compare --arms base,thp -- YOUR_PROGRAM", WhyNext::Try)),
        (wants && !is_always).then(|| command(grounds, "plan --for thp=always", WhyNext::Enable)),
        (!is_live && !is_measured).then(|| Next {
            command: "hugewise checkup".to_owned(),
            why: WhyNext::OnTheMachine,
        }),
    ];
    let first = findings(grounds).into_iter().chain(servers(grounds));
    let mut list: Vec<Next> = first.chain(more.into_iter().flatten()).collect();
    if list.is_empty() {
        list.push(command(grounds, "ps", WhyNext::Look));
    }
    list.truncate(MOST);
    list
}

/// A checkup that can tell, where this one cannot.
fn longer(saving: &Saving) -> Option<String> {
    let Saving::CannotTell { seconds, .. } = saving else {
        return None;
    };
    // The rest of a checkup takes as long again. How long would do is not known after few draws.
    let minutes = seconds.map_or(3.0, |seconds| (seconds * 2.0 / 60.0).ceil().clamp(2.0, 60.0));
    Some(format!("checkup --budget {minutes}m"))
}

/// Errors and warnings, if there are any.
fn findings(grounds: &Grounds<'_>) -> Option<Next> {
    let findings = &grounds.doctor?.diagnosis.findings;
    let loud = findings.iter().filter(|finding| finding.severity >= Severity::Warning);
    let first = loud.clone().next()?.consequence.clone();
    let why = WhyNext::Findings {
        count: loud.count(),
        first,
    };
    Some(command(grounds, "doctor", why))
}

/// The largest program of each name.
fn servers(grounds: &Grounds<'_>) -> Vec<Next> {
    let mut list: Vec<Next> = Vec::new();
    for server in grounds.servers {
        let (words, why) = match server.runs_machines {
            true => ("vm".to_owned(), WhyNext::Machines),
            false => {
                let why = WhyNext::Server {
                    name: server.name.clone(),
                    pid: server.pid,
                };
                (format!("explain {}", server.name), why)
            }
        };
        let next = command(grounds, &words, why);
        if list.iter().all(|other| other.command != next.command) {
            list.push(next);
        }
    }
    list.truncate(MOST - 1);
    list
}

/// As it is typed for the machine that was read; processes of others are read by root alone.
fn command(grounds: &Grounds<'_>, words: &str, why: WhyNext) -> Next {
    let reads_others = ["doctor", "explain", "vm", "ps"]
        .iter()
        .any(|word| words.starts_with(word));
    let command = match grounds.root {
        Some(root) => format!("hugewise --root {} {words}", word(root)),
        None if reads_others => format!("sudo hugewise {words}"),
        None => format!("hugewise {words}"),
    };
    Next { command, why }
}
