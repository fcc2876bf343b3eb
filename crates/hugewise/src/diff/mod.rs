//! How two results or two machines differ: pure, from what was read of each.

mod backing;
mod material;
mod points;
mod settings;

pub(crate) use material::{Material, Parts};

use std::collections::{BTreeMap, BTreeSet};

use model::findings::{Diagnosis, Severity};
use model::{Cause, Machine, Reading, Unread};

use crate::results::ProcessList;
use crate::results::diff::{Diff, FindingChange, UnseenProcesses};

/// How B differs from A, where points may differ by the share `allowed` without a verdict.
pub(crate) fn diff(a: &Material, b: &Material, allowed: f64) -> Diff {
    let (in_a, in_b) = (&a.parts, &b.parts);
    let doctors = in_a.doctor.as_ref().zip(in_b.doctor.as_ref());
    let processes = in_a.processes.as_ref().zip(in_b.processes.as_ref());
    let parts: BTreeSet<&str> = in_a.left_out.iter().chain(&in_b.left_out).copied().collect();
    let parts = parts.into_iter().map(str::to_owned);
    let unseen = |parts: &Parts| parts.processes.as_ref().map(ProcessList::unseen);
    let is_about_processes = in_a.processes.is_some() || in_b.processes.is_some();
    Diff {
        a: a.side.clone(),
        b: b.side.clone(),
        settings: settings::changes(a, b),
        findings: doctors.map(|(a, b)| findings(&a.diagnosis, &b.diagnosis)),
        backing: processes.map(|(a, b)| backing::changes(a, b)),
        points: points::points(in_a, in_b, allowed),
        left_out: parts.collect(),
        unseen: is_about_processes.then(|| UnseenProcesses {
            a: unseen(in_a),
            b: unseen(in_b),
        }),
    }
}

/// The machine that both are about; what differs is not known of it.
pub(crate) fn machine(a: &Machine, b: &Machine) -> Machine {
    fn both<T: Clone + PartialEq>(a: &Reading<T>, b: &Reading<T>) -> Reading<T> {
        let differs = || Unread::new(Cause::Absent, "A and B", "they differ");
        if a == b { a.clone() } else { Reading::Unread(differs()) }
    }
    Machine {
        cpu: both(&a.cpu, &b.cpu),
        kernel: both(&a.kernel, &b.kernel),
        hypervisor: both(&a.hypervisor, &b.hypervisor),
        cpus: both(&a.cpus, &b.cpus),
        nodes: both(&a.nodes, &b.nodes),
        memory: both(&a.memory, &b.memory),
        base_page: both(&a.base_page, &b.base_page),
    }
}

fn findings(a: &Diagnosis, b: &Diagnosis) -> Vec<FindingChange> {
    let mut names: BTreeMap<&str, (&str, Severity)> = BTreeMap::new();
    for finding in a.findings.iter().chain(&b.findings) {
        let entry = names.entry(&finding.id).or_insert((&finding.name, finding.severity));
        entry.1 = entry.1.max(finding.severity);
    }
    let change = |(id, (name, severity)): (&str, (&str, Severity))| FindingChange {
        id: id.to_owned(),
        name: name.to_owned(),
        severity,
        a: count(a, id),
        b: count(b, id),
    };
    let all = names.into_iter().map(change);
    let mut changed: Vec<FindingChange> = all.filter(|change| change.a != change.b).collect();
    changed.sort_by_key(|change| std::cmp::Reverse(change.severity));
    changed
}

/// Findings of a rule. None at all where it could not be judged is not known to be none.
fn count(diagnosis: &Diagnosis, id: &str) -> Option<usize> {
    let count = diagnosis.of(id).count();
    let mut unsure = diagnosis.not_judged.iter().chain(&diagnosis.partly);
    (count > 0 || !unsure.any(|rule| rule.id == id)).then_some(count)
}

#[cfg(test)]
mod tests;
