//! From goals to changes: what to set on this machine, layer by layer, so that it gives the pages wanted. Pure.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod goal;

mod boot;
mod cgroup;
mod database;
mod draft;
mod error;
mod files;
mod guests;
mod host;
mod java;
mod kubernetes;
mod limits;
mod mounts;
mod placement;
mod pools;
mod share;
mod thp;
mod wanted;

#[cfg(test)]
mod injection_tests;
#[cfg(test)]
mod published_tests;
#[cfg(test)]
mod tests;

use model::plan::Plan;

use draft::Drafts;
use goal::Want;

pub use error::PlanningError;
pub use goal::GoalError;
pub use host::Host;
pub use wanted::{Facts, Need, Recorded, Wanted};

/// The changes that bring this host to what is wanted, in the order of their application. What is as wanted already is
/// left out, and named in the notes.
///
/// # Errors
/// When the machine cannot give it, or a change would be one that no plan may hold, or that cannot be written here.
pub fn plan(host: &Host<'_>, wanted: &[Wanted]) -> Result<Plan, PlanningError> {
    refuse_contradictions(wanted)?;
    let mut drafts = Drafts::new(host, wanted);
    pools::draft(&mut drafts, wanted)?;
    // What goals say of the policy themselves is known before others need one.
    let (policies, others): (Vec<_>, Vec<_>) = wanted.iter().partition(|one| matches!(one.goal.want, Want::Thp(_)));
    for wanted in policies.into_iter().chain(others) {
        cgroup::draft(&mut drafts, wanted);
        let drafted = own(&mut drafts, wanted);
        drafted.map_err(|why| PlanningError::new(&wanted.goal, why))?;
    }
    let plan = drafts.finish(wanted);
    plan.check()?;
    host.must_be_writable(&plan)?;
    Ok(plan)
}

/// Two goals of which the plan could serve one alone.
fn refuse_contradictions(wanted: &[Wanted]) -> Result<(), PlanningError> {
    for (at, later) in wanted.iter().enumerate() {
        for earlier in &wanted[..at] {
            if let Some(what) = later.goal.contradicts(&earlier.goal) {
                let why = format!(
                    "it contradicts the goal `{}`: both are about {what} (leave one of them out)",
                    earlier.goal.text
                );
                return Err(PlanningError::new(&later.goal, why));
            }
        }
    }
    Ok(())
}

/// What one goal wants beside pools; or what stands in its way, and what to do.
fn own(drafts: &mut Drafts<'_>, wanted: &Wanted) -> Result<(), String> {
    let Wanted { goal, needs, program } = wanted;
    match &goal.want {
        Want::Pool(pool) => mounts::draft(drafts, pool)?,
        Want::Thp(thp) => thp::draft(drafts, thp)?,
        Want::Jvm(jvm) => java::draft(drafts, jvm, needs)?,
        Want::Database(database) => database::draft(drafts, database, needs, program)?,
        Want::Oracle(oracle) => database::oracle(drafts, oracle, needs)?,
        Want::Redis => database::redis(drafts)?,
        Want::Vm(vm) => guests::draft(drafts, goal, vm),
        Want::Kubernetes(pool) => kubernetes::draft(drafts, pool)?,
        Want::Placement(placement) => placement::draft(drafts, placement)?,
    }
    Ok(())
}
