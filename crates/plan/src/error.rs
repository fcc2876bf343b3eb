//! Why there is no plan.

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
    /// The plan would write where no plan may write.
    #[error(transparent)]
    Refused(#[from] PlanError),
}

impl PlanningError {
    pub(super) fn new(goal: &Goal, why: impl Into<String>) -> Self {
        let (goal, why) = (goal.text.clone(), why.into());
        Self::Impossible { goal, why }
    }
}
