//! A diagnosis whose plans this machine takes: the goal that a finding names is planned before the finding is shown.

use std::collections::BTreeSet;

use host::Source;
use model::findings::Finding;
use programs::{Evidence, Program};

use super::plan::Planner;
use crate::results::Doctor;

/// Applies every rule, and takes out the plans that `hugewise plan` would refuse on this source.
pub fn diagnose(source: &Source, evidence: &Evidence) -> Doctor {
    let mut doctor = Doctor::of(evidence);
    let measured = measured(evidence);
    doctor.diagnosis.findings.retain(|finding| {
        let pids = finding.evidence.iter().filter_map(|proof| pid_of(&proof.source));
        let pids: Vec<u32> = pids.collect();
        pids.is_empty() || !pids.iter().all(|pid| measured.contains(pid))
    });
    only_accepted(&Planner::new(source), &mut doctor.diagnosis.findings);
    doctor
}

/// What runs of hugewise have started, daemons among it: their pages are what is compared, and no fault of the machine.
fn measured(evidence: &Evidence) -> BTreeSet<u32> {
    let all = evidence.programs.known().map_or(&[][..], Vec::as_slice);
    let is_start = |program: &Program| {
        let tunables = program.tunables.known();
        let is_marked = tunables.is_some_and(|all| all.contains_key("HUGEWISE_RUN"));
        is_marked || program.pages.name == env!("CARGO_PKG_NAME")
    };
    let mut measured = BTreeSet::new();
    loop {
        let is_below = |program: &Program| program.parent.known().is_some_and(|parent| measured.contains(parent));
        let more = all.iter().filter(|program| is_start(program) || is_below(program));
        let more: BTreeSet<u32> = more.map(Program::pid).collect();
        if more.len() == measured.len() {
            return measured;
        }
        measured = more;
    }
}

/// The process of a file below `/proc/PID`.
fn pid_of(place: &str) -> Option<u32> {
    place.strip_prefix("/proc/")?.split('/').next()?.parse().ok()
}

/// Takes out the plans that would be refused.
pub(super) fn only_accepted(planner: &Planner<'_>, findings: &mut [Finding]) {
    for finding in findings {
        if finding.plan.as_ref().is_some_and(|plan| !planner.accepts(&plan.goal)) {
            finding.drop_plan();
        }
    }
}

/// Would `hugewise plan --for GOAL` make a plan here?
pub fn accepts(source: &Source, goal: &str) -> bool {
    Planner::new(source).accepts(goal)
}

#[cfg(test)]
mod tests {
    use host::{Source, Tree};
    use programs::Evidence;

    use super::{diagnose, measured};

    /// A server of 100 MiB with THP switched off, below this parent, and with this in its environment.
    fn server(parent: u32, environment: &str) -> Source {
        let process = |tree: Tree, pid: u32, name: &str, parent: u32, environment: &str| {
            let at = |file: &str| format!("/proc/{pid}/{file}");
            let status = format!(
                "Name:\t{name}\nPPid:\t{parent}\nUid:\t0\t0\t0\t0\nVmRSS:\t2097152 kB\nRssAnon:\t2097152 kB\nVmPTE:\t100 kB\n\
                 HugetlbPages:\t0 kB\nTHP_enabled:\t0\nThreads:\t1\n"
            );
            tree.file(&at("status"), status)
                .file(&at("cmdline"), format!("/usr/bin/{name}\0x\0"))
                .file(&at("environ"), format!("{environment}\0"))
        };
        let tree = process(Tree::new(), 6, "hugewise", 1, "");
        let tree = process(tree, 8, "worker", parent, environment);
        let tree = process(tree, 9, "worker", 8, "");
        Source::from_tree("made", tree.line("/proc/sys/kernel/osrelease", "6.12.0"))
    }

    #[test]
    fn what_a_comparison_runs_is_no_fault_of_the_machine() {
        let of = |parent: u32, environment: &str| {
            let source = server(parent, environment);
            let evidence = Evidence::gather(&source);
            let measured: Vec<u32> = measured(&evidence).into_iter().collect();
            let findings = diagnose(&source, &evidence).diagnosis.findings;
            (measured, findings.iter().any(|finding| finding.id == "D11"))
        };
        assert_eq!(of(6, ""), (vec![6, 8, 9], false));
        assert_eq!(of(1, "HUGEWISE_RUN=7-1"), (vec![6, 8, 9], false), "a daemon of it");
        assert_eq!(of(1, ""), (vec![6], true));
    }
}
