//! When it is looked whether to go on, and how much of the error that is put up with each look may spend. Pure.
//!
//! Whoever looks several times and stops at the first difference finds one too often. The looks are fixed before the first
//! run, and each spends a share of the whole (Lan and DeMets' alpha spending, by the cube of time, which leaves most to the
//! last); the shares add up to the whole, so that all looks together keep it whatever decides about going on.

/// With fewer blocks there is no verdict: of five pairs all signs agree by chance in 2 of 2^5 cases, more than 5 %.
pub const LEAST: u32 = 6;

/// The plan of looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    at: Vec<u32>,
    alpha: f64,
}

impl Plan {
    /// Looks after a third, two thirds and all of `most` blocks, none of them before 10 blocks but the last.
    pub fn new(most: u32, alpha: f64) -> Self {
        let most = most.max(1);
        let mut at: Vec<u32> = [most.div_ceil(3), (2 * most).div_ceil(3)]
            .into_iter()
            .filter(|&look| look >= 10 && look < most)
            .collect();
        at.push(most);
        at.dedup();
        Self { at, alpha }
    }

    /// One look, after all of `most` blocks.
    pub fn once(most: u32, alpha: f64) -> Self {
        Self {
            at: vec![most.max(1)],
            alpha,
        }
    }

    /// After how many blocks.
    pub fn at(&self) -> &[u32] {
        &self.at
    }

    /// The most blocks.
    pub fn most(&self) -> u32 {
        self.at.last().copied().unwrap_or(1)
    }

    /// Is there a look after so many blocks?
    pub fn is_look(&self, blocks: u32) -> bool {
        self.at.contains(&blocks)
    }

    /// What a look may spend when it comes after `blocks`.
    pub fn level(&self, blocks: u32) -> f64 {
        self.spent(blocks) - self.before(blocks)
    }

    /// What is left when the runs end after `blocks`, planned or not: there will be no further look.
    pub fn rest(&self, blocks: u32) -> f64 {
        self.alpha - self.before(blocks)
    }

    fn before(&self, blocks: u32) -> f64 {
        let earlier = self.at.iter().filter(|&&look| look < blocks).max();
        earlier.map_or(0.0, |&look| self.spent(look))
    }

    fn spent(&self, blocks: u32) -> f64 {
        let time = f64::from(blocks) / f64::from(self.most());
        self.alpha * time.min(1.0).powi(3)
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn all_looks_together_spend_the_whole_and_no_more() {
        for most in [1, 6, 20, 30, 31, 100] {
            let plan = Plan::new(most, 0.05);
            let spent: f64 = plan.at().iter().map(|&look| plan.level(look)).sum();
            assert!((spent - 0.05).abs() < 1e-12, "{most}: {spent}");
            assert!(plan.at().iter().all(|&look| plan.level(look) > 0.0));
        }
    }

    #[test]
    fn runs_that_end_early_may_spend_what_is_left() {
        let plan = Plan::new(30, 0.05);
        assert_eq!(plan.at(), [10, 20, 30]);
        let before: f64 = plan.level(10);
        assert!((plan.rest(17) + before - 0.05).abs() < 1e-12);
        assert_eq!(plan.rest(7), 0.05);
    }
}
