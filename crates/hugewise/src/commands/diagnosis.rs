//! A diagnosis whose plans this machine takes: the goal that a finding names is planned before the finding is shown.

use host::Source;
use model::findings::Finding;
use programs::Evidence;

use super::plan::Planner;
use crate::results::Doctor;

/// Applies every rule, and takes out the plans that `hugewise plan` would refuse on this source.
pub fn diagnose(source: &Source, evidence: &Evidence) -> Doctor {
    let mut doctor = Doctor::from(::doctor::judge(evidence));
    only_accepted(source, &mut doctor.diagnosis.findings);
    doctor
}

/// Takes out the plans that would be refused.
pub(super) fn only_accepted(source: &Source, findings: &mut [Finding]) {
    let planner = Planner::new(source);
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
