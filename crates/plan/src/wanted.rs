//! What a plan is made for: goals, and the pool pages that they take.

use model::Bytes;
use model::plan::PoolNeed;
use programs::config::Settings;

use crate::goal::Goal;

/// A goal with the pool pages that it takes, which a calculator worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub goal: Goal,
    /// Pages for it, beside those of others; empty for goals that name pages themselves or want none.
    pub needs: Vec<Need>,
    /// What is known of the program that it is for.
    pub program: Facts,
}

/// What is known of the program that a goal is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Control groups that it runs in, as paths below the root of the hierarchy that limits hugetlb pages.
    pub groups: Vec<String>,
    /// Is it MariaDB?
    pub is_mariadb: bool,
    /// What the command line of the running server sets, which wins over its files.
    pub typed: Settings,
}

/// Pages of one size that a goal takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub page: Bytes,
    /// On this node; without, on all alike.
    pub node: Option<u32>,
    pub pages: u64,
    /// The arithmetic, in a sentence.
    pub how: String,
    /// Pages of this pool that the goal's own program has now, touched or reserved: they are no others'.
    pub own: u64,
    /// Does the goal's program ask for such pages already? Then spare pages that no plan accounts for are there for it.
    pub asks: bool,
}

impl Wanted {
    /// The pages of pools that it is for, for the record of the plan.
    pub(super) fn pool_needs(&self) -> Vec<PoolNeed> {
        let need = |need: &Need| PoolNeed {
            goal: self.goal.text.clone(),
            page: need.page,
            node: need.node,
            pages: need.pages,
        };
        let pools = self.goal.pools().into_iter();
        pools.chain(self.needs.iter().map(need)).collect()
    }
}

impl Need {
    /// What these pages hold.
    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.page.0.saturating_mul(self.pages))
    }
}

/// Pool pages that a plan on record was applied for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub need: PoolNeed,
    /// Those that its program has now, touched or reserved.
    pub own: u64,
}
