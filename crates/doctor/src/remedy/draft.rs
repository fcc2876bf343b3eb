//! A finding before its fixes are settled.

use model::Bytes;
use model::findings::{Confidence, Finding, Severity};

use super::Remedy;
use super::account::Owner;

/// A finding whose fixes have not been held against the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) finding: Finding,
    pub(crate) remedies: Vec<Remedy>,
    /// The page size of a pool that it wants for a program.
    pub(crate) wants: Option<Bytes>,
}

impl Draft {
    /// Takes over the evidence of another that reads the same: one thing to do in several places is one finding.
    pub(crate) fn absorbs(&mut self, other: &Self) -> bool {
        let (own, its) = (&mut self.finding, &other.finding);
        if read(own) != read(its) || self.wants != other.wants || self.remedies != other.remedies {
            return false;
        }
        for proof in &its.evidence {
            if !own.evidence.contains(proof) {
                own.evidence.push(proof.clone());
            }
        }
        true
    }

    /// The program that its evidence shows, or else the finding itself.
    pub(super) fn owner(&self, nth: usize) -> Owner {
        let mut sources = self.finding.evidence.iter().map(|proof| proof.source.as_str());
        let pid = sources.find_map(|source| source.strip_prefix("/proc/")?.split_once('/')?.0.parse().ok());
        pid.map_or(Owner::Finding(nth), Owner::Program)
    }
}

/// What a reader gets of a finding beside its evidence; its name is that of its id, and its fixes are yet to come.
fn read(finding: &Finding) -> (&str, Severity, Confidence, &str, &str) {
    let (id, consequence, link) = (&finding.id, &finding.consequence, &finding.link);
    (id, finding.severity, finding.confidence, consequence, link)
}
