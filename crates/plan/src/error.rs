//! Why there is no plan.

use std::path::Path;

use model::plan::PlanError;

use crate::goal::Goal;

#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    /// The machine cannot give what a goal wants.
    #[error("goal `{goal}`: {why}")]
    Impossible {
        goal: String,
        /// What stands in its way, and what to do.
        why: String,
    },
    /// What it would write lies on a file system that is read-only here.
    #[error("{path} cannot be written: {mount} is mounted read-only here{}", advice(.mount))]
    ReadOnly { path: String, mount: String },
    /// The plan would write where no plan may write.
    #[error(transparent)]
    Refused(#[from] PlanError),
}

/// What to do about a read-only mount.
fn advice(mount: &str) -> &'static str {
    match ["/sys", "/proc"]
        .iter()
        .any(|kernel| Path::new(mount).starts_with(kernel))
    {
        true => ", as in a container, and its settings are the host's (make and apply the plan there)",
        false => " (make the change where its image is made, or mount it for writing)",
    }
}

impl PlanningError {
    pub(super) fn new(goal: &Goal, why: impl Into<String>) -> Self {
        let (goal, why) = (goal.text.clone(), why.into());
        Self::Impossible { goal, why }
    }
}
