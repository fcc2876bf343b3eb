//! The permutation test of aligned ranks: is one run of each block anything but a random one of them? Pure.
//!
//! Run times have long tails on one side, so that a run differs from the *mean* of two peers in one direction more often than
//! in the other; only exchanging the runs of a block with each other is fair under all circumstances. The test does just
//! that, on ranks, so that an outlier costs little.

use std::cmp::Ordering;

use statrs::distribution::{ContinuousCDF, Normal};

use super::Block;
use stats::median;

/// Contention makes some blocks rough; calm ones are more precise. So scores are weighed by how far a block's own lie
/// apart, plus this share of the usual: enough that equal scores in one block do not outweigh all others. As it depends on
/// all runs of a block alike, it leaves the exchange fair.
const LEAST_RANGE: f64 = 0.1;

/// Blocks up to which sums are counted, which takes the cube of their number, for each of the shifts that an interval asks
/// about. Beyond, the sum's normal limit is within two thousandths of what counting gives, and within one where it
/// matters, below 5 %.
const EXACT: usize = 20;

/// The ranks of the runs of each block among those of all, the run that is asked about first; doubled, so that ties have
/// whole numbers.
pub(super) struct Ranks {
    /// Block after block.
    ranks: Vec<usize>,
    /// The number of runs of each block.
    sizes: Vec<usize>,
}

impl Ranks {
    /// As if those runs had done worse by so much.
    pub(super) fn of(blocks: &[Block], shift: f64) -> Self {
        let ranges: Vec<f64> = blocks.iter().map(|block| range(block, shift)).collect();
        let least = LEAST_RANGE * median(&ranges).unwrap_or(0.0);
        let in_units = |(block, range)| aligned(block, shift, range + least);
        let scores: Vec<f64> = blocks.iter().zip(ranges).flat_map(in_units).collect();
        Self {
            ranks: doubled(&scores),
            sizes: blocks.iter().map(|block| 1 + block.peers.len()).collect(),
        }
    }

    fn blocks(&self) -> impl Iterator<Item = &[usize]> {
        let mut rest = self.ranks.as_slice();
        self.sizes.iter().map(move |&size| {
            let (block, behind) = rest.split_at(size);
            rest = behind;
            block
        })
    }

    /// The probability of a sum of the first runs' ranks at least as far out if each run of a block were as likely as any
    /// other to be its first: two-sided, with ties, exact for up to [`EXACT`] blocks.
    pub(super) fn p_value(&self) -> f64 {
        let (below, above) = if self.sizes.len() <= EXACT {
            self.counted()
        } else {
            self.in_the_limit()
        };
        (2.0 * below.min(above)).min(1.0)
    }

    /// How the first runs' sum lies to what it is on average if all are alike.
    pub(super) fn lean(&self) -> Ordering {
        let beyond = self.own() as f64 - self.expected();
        // Whole numbers over the number of runs in a block: less is but rounding.
        if beyond.abs() < 1e-6 {
            Ordering::Equal
        } else {
            beyond.total_cmp(&0.0)
        }
    }

    fn own(&self) -> usize {
        self.blocks().filter_map(<[usize]>::first).sum()
    }

    fn expected(&self) -> f64 {
        self.blocks().map(mean).sum()
    }

    /// The probabilities of a sum no larger and no smaller, by counting.
    fn counted(&self) -> (f64, f64) {
        let (own, chances) = (self.own(), self.sums());
        (chances.iter().take(own + 1).sum(), chances.iter().skip(own).sum())
    }

    /// The probability of each sum when one rank is drawn from every block.
    fn sums(&self) -> Vec<f64> {
        let mut chances = vec![1.0];
        for block in self.blocks() {
            let most = block.iter().copied().max().unwrap_or(0);
            let share = 1.0 / block.len().max(1) as f64;
            let mut next = vec![0.0; chances.len() + most];
            for &rank in block {
                for (sum, chance) in next[rank..].iter_mut().zip(&chances) {
                    *sum += chance * share;
                }
            }
            chances = next;
        }
        chances
    }

    /// The same as if the sum of so many ranks had a normal distribution, with the mean and the variance that it has.
    fn in_the_limit(&self) -> (f64, f64) {
        // All ranks of each block are tied.
        let Ok(normal) = Normal::new(self.expected(), self.variance().sqrt()) else {
            return (1.0, 1.0);
        };
        // Halfway to the next sum: doubled ranks go up by twos.
        let own = self.own() as f64;
        (normal.cdf(own + 1.0), normal.sf(own - 1.0))
    }

    fn variance(&self) -> f64 {
        let of_block = |ranks: &[usize]| {
            let middle = mean(ranks);
            let squares = ranks.iter().map(|&rank| (rank as f64 - middle).powi(2));
            squares.sum::<f64>() / ranks.len().max(1) as f64
        };
        self.blocks().map(of_block).sum()
    }
}

/// Twice the rank of each score; those that are equal share theirs.
fn doubled(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<(f64, usize)> = scores.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut ranks = vec![0; scores.len()];
    let mut below = 0;
    for tied in order.chunk_by(|(a, _), (b, _)| a == b) {
        for &(_, at) in tied {
            ranks[at] = 2 * below + 1 + tied.len();
        }
        below += tied.len();
    }
    ranks
}

fn mean(ranks: &[usize]) -> f64 {
    ranks.iter().sum::<usize>() as f64 / ranks.len().max(1) as f64
}

/// How far the scores of a block lie apart.
fn range(block: &Block, shift: f64) -> f64 {
    let most = block.all(shift).fold(f64::NEG_INFINITY, f64::max);
    most - block.all(shift).fold(f64::INFINITY, f64::min)
}

/// Scores without what the whole block has in common, in such units.
fn aligned(block: &Block, shift: f64, unit: f64) -> impl Iterator<Item = f64> + '_ {
    let mean = block.all(shift).sum::<f64>() / (1 + block.peers.len()) as f64;
    let unit = if unit > 0.0 { unit } else { 1.0 };
    block.all(shift).map(move |score| (score - mean) / unit)
}

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
