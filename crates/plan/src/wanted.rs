//! What a plan is made for: goals, and the pool pages that they take.

use model::Bytes;

use crate::goal::Goal;

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
    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.page.0.saturating_mul(self.pages))
    }
}
