//! From goals to changes: what to set on this machine, layer by layer, so that it gives the pages wanted. Pure.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod goal;

mod boot;
mod cgroup;
mod database;
mod draft;
mod files;
mod guests;
mod host;
mod java;
mod kubernetes;
mod limits;
mod mounts;
mod placement;
mod pools;
mod thp;
mod windows;

#[cfg(test)]
mod injection_tests;
#[cfg(test)]
mod recipe_tests;
#[cfg(test)]
mod tests;

use model::Bytes;
use model::plan::{Plan, PlanError};

use draft::Drafts;
use goal::{Goal, Want};

pub use goal::GoalError;
pub use host::Host;

/// A goal with the pool pages that it takes, which a calculator worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The goal.
    pub goal: Goal,
    /// Pages for it, beside those in use; empty for goals that name pages themselves or want none.
    pub needs: Vec<Need>,
}

/// Pages of one size that a goal takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Page size.
    pub page: Bytes,
    /// On this node; without, on all alike.
    pub node: Option<u32>,
    /// How many.
    pub pages: u64,
    /// The arithmetic, in a sentence.
    pub how: String,
}

impl Need {
    /// What these pages hold.
    fn bytes(&self) -> Bytes {
        Bytes(self.page.0.saturating_mul(self.pages))
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    /// The machine cannot give what a goal wants.
    #[error("goal `{goal}`: {why}")]
    Impossible {
        /// The goal.
        goal: String,
        /// What stands in its way, and what to do.
        why: String,
    },
    /// The plan would write where no plan may write.
    #[error(transparent)]
    Refused(#[from] PlanError),
}

impl PlanningError {
    fn new(goal: &Goal, why: impl Into<String>) -> Self {
        let (goal, why) = (goal.text.clone(), why.into());
        Self::Impossible { goal, why }
    }
}

/// The changes that bring this host to what is wanted, in the order of their application. What is as wanted already is
/// left out, and named in the notes.
///
/// # Errors
/// When the machine cannot give it, or a change would be one that no plan may hold.
pub fn plan(host: &Host<'_>, wanted: &[Wanted]) -> Result<Plan, PlanningError> {
    let mut drafts = Drafts::new(host);
    pools::draft(&mut drafts, wanted)?;
    for wanted in wanted {
        let drafted = own(&mut drafts, wanted);
        drafted.map_err(|why| PlanningError::new(&wanted.goal, why))?;
    }
    let plan = drafts.finish(wanted.iter().map(|wanted| wanted.goal.text.clone()).collect());
    plan.check()?;
    Ok(plan)
}

/// What one goal wants beside pools; or what stands in its way, and what to do.
fn own(drafts: &mut Drafts<'_>, Wanted { goal, needs }: &Wanted) -> Result<(), String> {
    match &goal.want {
        Want::Pool(pool) => mounts::draft(drafts, pool)?,
        Want::Thp(thp) => thp::draft(drafts, thp)?,
        Want::Jvm(jvm) => java::draft(drafts, jvm, needs)?,
        Want::Postgres(database) => database::postgres(drafts, database, needs)?,
        Want::Innodb(database) => database::innodb(drafts, database, needs)?,
        Want::Oracle(oracle) => database::oracle(drafts, oracle, needs)?,
        Want::Redis => database::redis(drafts)?,
        Want::Vm(vm) => guests::draft(drafts, goal, vm),
        Want::Kubernetes(pool) => kubernetes::draft(drafts, pool)?,
        Want::Windows(user) => windows::draft(drafts, user),
        Want::Placement(placement) => placement::draft(drafts, placement)?,
    }
    Ok(())
}
