//! Statistics of blocks: how far one run lies from its peers, how sure that is, and how likely by chance. Pure.
//!
//! A block is the score of one run, and the scores of its peers, made at about the same time in a random order. Scores are
//! logarithms: then twice as fast and half as fast lie equally far from 0. Run times have long tails on one side, so that
//! a run differs from the *mean* of two peers in one direction more often than in the other; only exchanging the runs of a
//! block with each other is fair under all circumstances. The test therefore does just that, on ranks, and the estimate
//! uses differences of single runs: an outlier costs both little.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::stats::{median, quantile};

/// Resamples of a bootstrap: the ends of a 95 % interval are then known to a few hundredths of its width.
const RESAMPLES: usize = 1000;
/// The share that the trimmed mean leaves out at either end.
const TRIM: f64 = 0.2;

/// A neighbour's load makes some blocks rough; what is calm tells more. So scores are weighed by how far a block's own lie
/// apart, plus this share of the usual: enough that equal scores in one block do not outweigh all others. As it depends on
/// all runs of a block alike, it leaves the exchange fair.
const LEAST_RANGE: f64 = 0.1;

/// Blocks up to which sums are counted, which takes the cube of their number: a few milliseconds here. Beyond, the sum's normal
/// limit is within a thousandth of what counting gives.
const EXACT: usize = 100;

/// One run and its peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The score of the run that is asked about.
    pub own: f64,
    /// Those of its peers, one at least.
    pub peers: Vec<f64>,
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub center: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Block {
    fn all(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.own).chain(self.peers.iter().copied())
    }

    /// How far its scores lie apart.
    fn range(&self) -> f64 {
        let most = self.all().fold(f64::NEG_INFINITY, f64::max);
        most - self.all().fold(f64::INFINITY, f64::min)
    }

    /// Scores without what the whole block has in common, in units of how far its own lie apart.
    fn aligned(&self, usual: f64) -> impl Iterator<Item = f64> + '_ {
        let mean = self.all().sum::<f64>() / (1 + self.peers.len()) as f64;
        let unit = self.range() + LEAST_RANGE * usual;
        let unit = if unit > 0.0 { unit } else { 1.0 };
        self.all().map(move |score| (score - mean) / unit)
    }
}

/// How far the runs lie above their peers: the trimmed mean of all differences of single runs; `None` of nothing.
pub fn center<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Option<f64> {
    let of_block = |block: &'a Block| block.peers.iter().map(|peer| block.own - peer);
    let mut differences: Vec<f64> = blocks.into_iter().flat_map(of_block).collect();
    trimmed_mean(&mut differences)
}

/// Puts what is left out at both ends, which takes less than sorting all.
fn trimmed_mean(values: &mut [f64]) -> Option<f64> {
    let cut = (values.len() as f64 * TRIM) as usize;
    let last = (values.len() - cut).checked_sub(cut + 1)?;
    values.select_nth_unstable_by(cut, f64::total_cmp);
    let kept = &mut values[cut..];
    kept.select_nth_unstable_by(last, f64::total_cmp);
    let kept = &kept[..=last];
    Some(kept.iter().sum::<f64>() / kept.len() as f64)
}

/// The estimate with its 95 % interval by bootstrap (percentiles of seeded resamples of whole blocks); `None` of nothing.
pub fn interval(blocks: &[Block], seed: u64) -> Option<Interval> {
    let estimate = center(blocks)?;
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut resample = || center((0..blocks.len()).map(|_| &blocks[rng.random_range(0..blocks.len())]));
    let mut centers: Vec<f64> = (0..RESAMPLES).filter_map(|_| resample()).collect();
    centers.sort_by(f64::total_cmp);
    Some(Interval {
        center: estimate,
        low: quantile(&centers, 0.025)?.min(estimate),
        high: quantile(&centers, 0.975)?.max(estimate),
    })
}

/// The probability of a rank sum at least as far out if each run of a block were as likely as any other to be the one that
/// is asked about: the permutation test of aligned ranks, two-sided, with ties; exact for up to [`EXACT`] blocks.
pub fn p_value(blocks: &[Block]) -> f64 {
    let ranks = ranks_by_block(blocks);
    let own: usize = ranks.iter().filter_map(|ranks| ranks.first()).sum();
    let (below, above) = if ranks.len() <= EXACT {
        counted(&ranks, own)
    } else {
        in_the_limit(&ranks, own)
    };
    (2.0 * below.min(above)).min(1.0)
}

/// The probabilities of a sum no larger and no smaller, by counting.
fn counted(ranks: &[Vec<usize>], own: usize) -> (f64, f64) {
    let chances = sums(ranks);
    (chances.iter().take(own + 1).sum(), chances.iter().skip(own).sum())
}

/// The same as if the sum of so many ranks had a normal distribution, with the mean and the variance that it has.
fn in_the_limit(ranks: &[Vec<usize>], own: usize) -> (f64, f64) {
    let mean = |values: &mut dyn Iterator<Item = f64>, of: usize| values.sum::<f64>() / of.max(1) as f64;
    let (mut center, mut variance) = (0.0, 0.0);
    for block in ranks {
        let middle = mean(&mut block.iter().map(|&rank| rank as f64), block.len());
        center += middle;
        variance += mean(
            &mut block.iter().map(|&rank| (rank as f64 - middle).powi(2)),
            block.len(),
        );
    }
    // All ranks of each block are tied.
    let Ok(normal) = Normal::new(center, variance.sqrt()) else {
        return (1.0, 1.0);
    };
    // Halfway to the next sum: doubled ranks go up by twos.
    (normal.cdf(own as f64 + 1.0), normal.sf(own as f64 - 1.0))
}

/// The rank of every run among the aligned scores of all blocks, doubled so that ties have whole numbers.
fn ranks_by_block(blocks: &[Block]) -> Vec<Vec<usize>> {
    let ranges: Vec<f64> = blocks.iter().map(Block::range).collect();
    let usual = median(&ranges).unwrap_or(0.0);
    let with_block = |(block, all): (usize, &Block)| all.aligned(usual).map(|score| (score, block)).collect::<Vec<_>>();
    let aligned = blocks.iter().enumerate().flat_map(with_block);
    let mut sorted: Vec<(usize, (f64, usize))> = aligned.enumerate().collect();
    sorted.sort_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
    let mut placed = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|(_, (a, _)), (_, (b, _))| a == b) {
        let doubled = 2 * placed.len() + 1 + tied.len();
        placed.extend(tied.iter().map(|&(at, (_, block))| (at, block, doubled)));
    }
    placed.sort_unstable();
    let mut ranks = vec![Vec::new(); blocks.len()];
    for (_, block, rank) in placed {
        ranks[block].push(rank);
    }
    ranks
}

/// The probability of each sum when one rank is drawn from every block.
fn sums(ranks: &[Vec<usize>]) -> Vec<f64> {
    let mut chances = vec![1.0];
    for block in ranks {
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

/// Holm's correction: what each of several probabilities comes to when all are asked at once, in the order given.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut corrected = vec![1.0; values.len()];
    let mut largest = 0.0_f64;
    for (place, &at) in order.iter().enumerate() {
        let left = (values.len() - place) as f64;
        largest = largest.max((values[at] * left).min(1.0));
        corrected[at] = largest;
    }
    corrected
}

#[cfg(test)]
#[path = "paired_tests.rs"]
mod tests;
