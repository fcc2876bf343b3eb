//! The ratio of one thing measured in two runs that share nothing: other times, other rounds, perhaps another machine.
//!
//! Nothing is paired here, and visits of a contended machine have a tail on one side, so the interval is that of the rank
//! test of Mann and Whitney, over logarithms: it holds every factor between the runs that the test does not reject. Exact
//! for any distribution of the visits that is the same in both runs but for that factor. It knows what visits of a run show,
//! and no more: what differs between runs of the same machine has to be allowed for by who gives a verdict.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::quantiles::{median, sorted};

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// The median of the ratios of all pairs of visits (Hodges and Lehmann).
    pub ratio: f64,
    /// Lower and upper end; `None` of so few visits that the test rejects no ratio.
    pub ends: Option<(f64, f64)>,
}

/// Pairs up to which the distribution of ranks is counted out; beyond it is normal to a thousandth.
const MOST_PAIRS: usize = 2_500;

/// `over` as a multiple of `under`, each the medians of one run's visits. The interval misses the truth in at most the share
/// `rejected`. `None` of nothing, and where a median is not above zero.
pub fn apart(over: &[f64], under: &[f64], rejected: f64) -> Option<Apart> {
    let is_positive = |value: &f64| value.is_finite() && *value > 0.0;
    if !over.iter().chain(under).all(is_positive) {
        return None;
    }
    let ratios = over
        .iter()
        .flat_map(|over| under.iter().map(move |under| (over / under).ln()));
    let logs = sorted(&ratios.collect::<Vec<_>>());
    let ends = |outside: usize| (logs[outside - 1].exp(), logs[logs.len() - outside].exp());
    Some(Apart {
        ratio: median(&logs)?.exp(),
        ends: outside(over.len(), under.len(), rejected).map(ends),
    })
}

/// The level for each of several intervals, so that all that can be had at it hold together but for `rejected` (Tarone's form of
/// Bonferroni's correction: those of so few visits that they have none at that level do not count). By numbers of visits.
pub fn together(visits: &[(usize, usize)], rejected: f64) -> f64 {
    let least: Vec<f64> = visits.iter().map(|&(over, under)| least_p(over, under)).collect();
    let level = |count: usize| rejected / count as f64;
    let fits = |count: &usize| least.iter().filter(|&&p| p <= level(*count)).count() <= *count;
    level((1..).find(fits).unwrap_or(1))
}

/// The interval of the ratio of two estimates, each with a 95 % interval of its own, around logarithms that are taken to be
/// normal: each interval is widened to half of what `rejected` leaves, so that both hold together.
pub fn of_intervals(over: (f64, f64, f64), under: (f64, f64, f64), rejected: f64) -> Option<Apart> {
    let normal = Normal::standard();
    let wider = normal.inverse_cdf(1.0 - rejected / 4.0) / normal.inverse_cdf(0.975);
    let logs = |(low, middle, high): (f64, f64, f64)| {
        let [low, middle, high] = [low, middle, high].map(f64::ln);
        let all = [middle, (middle - low) * wider, (high - middle) * wider];
        all.iter().all(|log| log.is_finite()).then_some(all)
    };
    let ([over, over_below, over_above], [under, under_below, under_above]) = (logs(over)?, logs(under)?);
    let ratio = over - under;
    let ends = (ratio - over_below - under_above, ratio + over_above + under_below);
    Some(Apart {
        ratio: ratio.exp(),
        ends: Some((ends.0.exp(), ends.1.exp())),
    })
}

/// The smallest probability that the test can come to, two-sided.
fn least_p(over: usize, under: usize) -> f64 {
    let ways = (1..=over).map(|i| (under + i) as f64 / i as f64).product::<f64>();
    2.0 / ways
}

/// How many of the smallest ratios, and of the largest, lie outside of the interval, that at the end counted in.
fn outside(over: usize, under: usize, rejected: f64) -> Option<usize> {
    let pairs = over * under;
    let tail = rejected / 2.0;
    if pairs > MOST_PAIRS {
        let (mean, variance) = (pairs as f64 / 2.0, (pairs * (over + under + 1)) as f64 / 12.0);
        let below = mean + Normal::standard().inverse_cdf(tail) * variance.sqrt() - 0.5;
        return (below >= 0.0).then_some(below as usize + 1);
    }
    let mut sum = 0.0;
    let shares = shares(over, under);
    let held = shares.iter().take_while(|share| {
        sum += **share;
        sum <= tail
    });
    Some(held.count()).filter(|&count| count > 0)
}

/// The probability of each number of pairs in which `over` is the smaller one, if both are alike: for each split of `over`
/// visits among the places of all, built up place by place.
fn shares(over: usize, under: usize) -> Vec<f64> {
    let pairs = over * under;
    // ways[taken][sum]: the ranks so far hold so many of `over`, with so many smaller values of `under` before them.
    let mut ways = vec![vec![0.0; pairs + 1]; over + 1];
    ways[0][0] = 1.0;
    for place in 0..over + under {
        for taken in (1..=over.min(place + 1)).rev() {
            let before = place + 1 - taken;
            if before > under {
                continue;
            }
            let (less, same) = ways.split_at_mut(taken);
            let (from, to) = (&less[taken - 1], &mut same[0]);
            for sum in before..=pairs {
                to[sum] += from[sum - before];
            }
        }
    }
    let total: f64 = ways[over].iter().sum();
    ways[over].iter().map(|ways| ways / total).collect()
}

#[cfg(test)]
#[path = "apart_tests.rs"]
mod tests;
