//! When it is looked whether to go on, and how much of the significance level each look may spend. Pure.
//!
//! A comparison that looks several times and stops at the first difference finds one too often. The looks are fixed before the first
//! run, and each spends a share of the whole (Lan and DeMets' alpha spending, by the cube of time, which leaves most to the
//! last); the shares never add up to more than the whole, so that all looks together keep it whatever decides about going on.
//! The same shares make the intervals: what no look rejects at its own share holds at 95 % wherever the runs end.
//!
//! A look that was made stays made. Runs that go on with those of an earlier session share what is left, so a plan leaves a
//! part of it for them.

use model::compare::Spent;

/// With fewer blocks there is no verdict: of five pairs all signs agree by chance in 2 of 2^5 cases, more than 5 %.
pub const LEAST: u32 = 6;

/// The share of what is left that a plan leaves for runs beyond it. A fifth costs the plan little (the normal quantile of 4 %
/// is 5 % above that of 5 %), and lets further runs find what they can show clearly.
const RESERVE: f64 = 0.2;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// After how many blocks.
    pub at: Vec<u32>,
    /// Looks that were made, in this session or before.
    pub made: Vec<Spent>,
    /// Blocks at the last look of an earlier session.
    from: u32,
    /// What the looks of this plan may spend together.
    available: f64,
}

impl Plan {
    /// Looks after a third, two thirds and all of `most` blocks, none of them before 10 blocks but the last, beyond those made.
    pub fn new(most: u32, alpha: f64, made: &[Spent]) -> Self {
        let most = most.max(1);
        let between = [most.div_ceil(3), (2 * most).div_ceil(3)];
        let planned = between.into_iter().filter(|&look| look >= 10 && look < most);
        Self::of(planned.chain([most]), alpha, made)
    }

    /// One look, after all of `most` blocks.
    pub fn once(most: u32, alpha: f64, made: &[Spent]) -> Self {
        Self::of([most.max(1)], alpha, made)
    }

    fn of(at: impl IntoIterator<Item = u32>, alpha: f64, made: &[Spent]) -> Self {
        let from = made.iter().map(|look| look.blocks).max().unwrap_or(0);
        let spent: f64 = made.iter().map(|look| look.level).sum();
        // The last is there even where no further block is made.
        let mut at: Vec<u32> = at.into_iter().collect();
        let most = at.last().copied().unwrap_or(1).max(from);
        at.retain(|&look| look > from && look < most);
        at.push(most);
        at.dedup();
        Self {
            at,
            made: made.to_vec(),
            from,
            available: (alpha - spent).max(0.0) * (1.0 - RESERVE),
        }
    }

    pub fn most(&self) -> u32 {
        self.at.last().copied().unwrap_or(1)
    }

    /// Notes that a look was made; gives it if it is new.
    pub fn make(&mut self, look: Spent) -> Option<Spent> {
        let is_new = self.made_at(look.blocks).is_none();
        is_new.then(|| {
            self.made.push(look);
            look
        })
    }

    /// What a look may spend when it comes after `blocks`. The same runs looked at again spend nothing more.
    pub fn level(&self, blocks: u32) -> f64 {
        self.made_at(blocks)
            .unwrap_or_else(|| self.spent(blocks) - self.before(blocks))
    }

    /// What is left when the runs end after `blocks`, planned or not: this plan has no further look.
    pub fn rest(&self, blocks: u32) -> f64 {
        self.made_at(blocks)
            .unwrap_or_else(|| self.available - self.before(blocks))
    }

    fn made_at(&self, blocks: u32) -> Option<f64> {
        let made = self.made.iter().find(|look| look.blocks == blocks);
        made.map(|look| look.level)
    }

    fn before(&self, blocks: u32) -> f64 {
        let earlier = self.at.iter().filter(|&&look| look < blocks).max();
        earlier.map_or(0.0, |&look| self.spent(look))
    }

    fn spent(&self, blocks: u32) -> f64 {
        let length = f64::from(self.most().saturating_sub(self.from).max(1));
        let time = f64::from(blocks.saturating_sub(self.from)) / length;
        self.available * time.min(1.0).powi(3)
    }
}

#[cfg(test)]
mod tests {
    use model::compare::Spent;

    use super::Plan;

    #[test]
    fn all_looks_together_spend_four_fifths_of_the_whole_and_no_more() {
        for most in [1, 6, 20, 30, 31, 100] {
            let plan = Plan::new(most, 0.05, &[]);
            let spent: f64 = plan.at.iter().map(|&look| plan.level(look)).sum();
            assert!((spent - 0.04).abs() < 1e-12, "{most}: {spent}");
            assert!(plan.at.iter().all(|&look| plan.level(look) > 0.0));
        }
    }

    #[test]
    fn runs_that_end_early_may_spend_what_the_plan_has_left() {
        let plan = Plan::new(30, 0.05, &[]);
        assert_eq!(plan.at, [10, 20, 30]);
        let before: f64 = plan.level(10);
        assert!((plan.rest(17) + before - 0.04).abs() < 1e-12);
        assert!((plan.rest(7) - 0.04).abs() < 1e-12);
    }

    #[test]
    fn sessions_that_go_on_share_what_earlier_ones_left() {
        let mut made: Vec<Spent> = Vec::new();
        for most in [10, 20, 30, 30, 90, 91, 200] {
            let mut plan = Plan::new(most, 0.05, &made);
            assert_eq!(plan.most(), most);
            for look in plan.at.clone() {
                let level = plan.level(look);
                plan.make(Spent { blocks: look, level });
            }
            made = plan.made.clone();
        }
        let spent: f64 = made.iter().map(|look| look.level).sum();
        assert!((0.0499..0.05).contains(&spent), "{made:?}");
        assert!(made.iter().all(|look| look.level > 0.0));
        // Asked again of the same runs, a look is what it was; fewer runs than there are cannot be asked for.
        let again = Plan::once(60, 0.05, &made);
        assert_eq!(
            (again.most(), again.level(200)),
            (200, made.last().expect("a look").level)
        );
        assert!(!again.at.contains(&60));
    }
}
