//! Which array of entries explains the misses of all layouts at once: a robust joint fit, with the rivals it cannot rule out.

use model::tlb::{Entries, Index, Ways};

use super::occupancy::{Histogram, Occupancy, Policy, misses};
use super::probe::Layout;

/// One array of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Entries in a set.
    pub ways: u32,
    /// How a page finds its set.
    pub index: Index,
    /// Which entry goes.
    pub policy: Policy,
}

impl Shape {
    /// Entries in all.
    pub fn entries(self) -> u32 {
        self.sets * self.ways
    }

    /// Associativity.
    pub fn associativity(self) -> Ways {
        if self.sets == 1 {
            Ways::Full
        } else {
            Ways::Count(self.ways)
        }
    }
}

/// One observation: the share of accesses that seem to miss.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Where the pages were.
    pub layout: Layout,
    /// How many.
    pub pages: u32,
    /// 0: costs as little as a hit; 1: as much as a miss, or more.
    pub height: f64,
    /// How much it counts: less where many observations stand close together.
    pub weight: f64,
}

/// The best explanation and what else would do.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// The best shape.
    pub shape: Shape,
    /// Its entries, with the range of the shapes that are not clearly worse.
    pub entries: Entries,
    /// Associativity, if all of those agree.
    pub ways: Option<Ways>,
    /// Index, if all of those agree and there is more than one set.
    pub index: Option<Index>,
    /// Mean distance of the observations from the best shape where either says that something misses, 0 to 1.
    pub misfit: f64,
}

/// Most sets of a TLB that is looked for.
const MOST_SETS: u32 = 1024;
/// Fewest sets that are hashed: XOR over fewer looks like one set, and nobody builds that.
const FEWEST_HASHED: u32 = 16;
/// A wrong shape is off by up to 1 at a point; noise and neighbours may be so too, now and then.
const WORST: f64 = 0.6;
/// Shapes are first tried in steps of this share of their ways.
const COARSE: u32 = 48;
/// A rival is ruled out when it is worse by that many standard errors of the difference: three points that clearly speak
/// against it and none for it are enough.
const CLEARLY: f64 = 1.6;

/// More rivals than that, and a closer look at each would only confirm that nothing is known.
const TOO_MANY: usize = 300;

/// Fits shapes with entries in `from..=to`. `None` without observations or shapes.
pub fn fit(samples: &[Sample], from: u32, to: u32, occupancy: &mut Occupancy) -> Option<Fit> {
    let mut trial = Trial {
        samples,
        occupancy,
        judged: Vec::new(),
        least: f64::INFINITY,
    };
    for (sets, index) in rows() {
        trial.judge(sets, index, |policy| {
            steps(policy, from.div_ceil(sets).max(1), to / sets, COARSE)
        });
    }
    let coarse = trial.rivals();
    if coarse.len() <= TOO_MANY {
        for (sets, index) in rows() {
            trial.judge(sets, index, |policy| finer(&coarse, sets, index, policy));
        }
    }
    let rivals = trial.rivals();
    let best = *rivals.first()?;
    Some(summary(best, &rivals, trial.misfit(best)))
}

/// Sets and index functions that are tried.
fn rows() -> impl Iterator<Item = (u32, Index)> {
    let sets = (0..=MOST_SETS.ilog2()).map(|bits| 1 << bits);
    sets.flat_map(|sets| [(sets, Index::Linear), (sets, Index::Xor)])
        .filter(|&(sets, index)| sets >= FEWEST_HASHED || index == Index::Linear)
}

fn steps(policy: Policy, first: u32, last: u32, grain: u32) -> Vec<u32> {
    std::iter::successors(Some(first), |ways| Some(ways + (ways / grain).max(1)))
        .take_while(|&ways| ways <= last)
        .filter(|&ways| policy.applies_to(ways))
        .collect()
}

/// All ways around those that coarse steps left over.
fn finer(coarse: &[Shape], sets: u32, index: Index, policy: Policy) -> Vec<u32> {
    let near = |ways: u32| ways.saturating_sub(ways / COARSE + 1).max(1)..=ways + ways / COARSE + 1;
    let mut ways: Vec<u32> = coarse
        .iter()
        .filter(|shape| (shape.sets, shape.index, shape.policy) == (sets, index, policy))
        .flat_map(|shape| near(shape.ways))
        .filter(|&ways| policy.applies_to(ways))
        .collect();
    ways.sort_unstable();
    ways.dedup();
    ways
}

fn summary(shape: Shape, rivals: &[Shape], misfit: f64) -> Fit {
    let entries = || rivals.iter().map(|rival| rival.entries()).chain([shape.entries()]);
    let value = shape.entries();
    let agreed = rivals
        .iter()
        .all(|rival| rival.associativity() == shape.associativity());
    let same_index = rivals.iter().all(|rival| rival.index == shape.index || rival.sets == 1);
    Fit {
        shape,
        entries: Entries {
            value,
            low: entries().min().unwrap_or(value),
            high: entries().max().unwrap_or(value),
        },
        ways: agreed.then_some(shape.associativity()),
        index: (same_index && shape.sets > 1).then_some(shape.index),
        misfit,
    }
}

struct Trial<'a> {
    samples: &'a [Sample],
    occupancy: &'a mut Occupancy,
    /// Shapes that may still be the best or a rival, with their losses.
    judged: Vec<(f64, Shape, Vec<f64>)>,
    least: f64,
}

impl Trial<'_> {
    /// Judges the ways that `ways` names for each policy of that number of sets and that index.
    fn judge(&mut self, sets: u32, index: Index, ways: impl Fn(Policy) -> Vec<u32>) {
        let wanted: Vec<(Policy, Vec<u32>)> = Policy::ALL.into_iter().map(|policy| (policy, ways(policy))).collect();
        if wanted.iter().all(|(_, ways)| ways.is_empty()) {
            return;
        }
        let filled: Vec<Histogram> = self
            .samples
            .iter()
            .map(|sample| self.occupancy.of(sample.layout, sample.pages, sets, index).clone())
            .collect();
        for (policy, ways) in wanted {
            for ways in ways {
                let shape = Shape {
                    sets,
                    ways,
                    index,
                    policy,
                };
                self.judge_one(shape, &filled);
            }
        }
    }

    /// Keeps the shape unless it is hopeless, which most are after a few observations.
    fn judge_one(&mut self, shape: Shape, filled: &[Histogram]) {
        let hopeless = hopeless(self.least);
        let mut total = prior(shape);
        let mut losses = Vec::new();
        for (sample, filled) in self.samples.iter().zip(filled) {
            let loss = sample.weight
                * (misses(filled, shape.ways, shape.policy) - sample.height)
                    .abs()
                    .min(WORST);
            total += loss;
            if total > hopeless {
                return;
            }
            losses.push(loss);
        }
        self.least = self.least.min(total);
        self.judged.push((total, shape, losses));
    }

    /// The best shape, then those that the observations do not rule out against it.
    fn rivals(&mut self) -> Vec<Shape> {
        self.judged.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.judged.dedup_by_key(|judged| judged.1);
        let Some((least, _, best)) = self.judged.first() else {
            return Vec::new();
        };
        self.judged
            .iter()
            .filter(|(total, _, losses)| {
                let square: f64 = losses
                    .iter()
                    .zip(best)
                    .map(|(rival, best)| (rival - best).powi(2))
                    .sum();
                total - least <= CLEARLY * square.sqrt()
            })
            .map(|(_, shape, _)| *shape)
            .collect()
    }

    fn misfit(&self, shape: Shape) -> f64 {
        let losses = self
            .judged
            .iter()
            .find(|judged| judged.1 == shape)
            .map_or(&[][..], |judged| &judged.2);
        let telling = self
            .samples
            .iter()
            .zip(losses)
            .filter(|(sample, loss)| sample.height > 0.05 || **loss > 0.05);
        let (loss, weight) = telling.fold((0.0, 0.0), |sum, (sample, loss)| (sum.0 + loss, sum.1 + sample.weight));
        if weight > 0.0 { loss / weight } else { 0.0 }
    }
}

/// The loss beyond which no shape can be a rival of one with loss `least`: a rival is worse by less than [`CLEARLY`] times
/// the root of the sum of squared differences, which is at most [`WORST`] times the sum of both losses.
fn hopeless(least: f64) -> f64 {
    let factor = CLEARLY * CLEARLY * WORST;
    // Solves (x - least)^2 = factor (x + least).
    least + factor / 2.0 + (factor * factor / 4.0 + 2.0 * factor * least).sqrt() + 0.5
}

/// Between equals the plainer shape is taken: true LRU, lowest bits, fewer sets. Less than half a point in all.
fn prior(shape: Shape) -> f64 {
    let policy = if shape.policy == Policy::Lru { 0.0 } else { 0.15 };
    let index = if shape.index == Index::Linear { 0.0 } else { 0.15 };
    policy + index + 0.001 * f64::from(shape.sets.ilog2())
}

#[cfg(test)]
mod tests {
    use super::{Fit, Policy, Sample, Shape, fit};
    use crate::tlb::occupancy::{Occupancy, misses};
    use crate::tlb::probe::Layout;
    use model::tlb::{Index, Ways};

    fn observe(shape: Shape, strides: u32) -> Vec<Sample> {
        let mut occupancy = Occupancy::default();
        (0..strides)
            .flat_map(|stride| (1..160).map(move |pages| (Layout::strided(stride), pages)))
            .map(|(layout, pages)| Sample {
                layout,
                pages,
                height: misses(
                    occupancy.of(layout, pages, shape.sets, shape.index),
                    shape.ways,
                    shape.policy,
                ),
                weight: 1.0,
            })
            .collect()
    }

    fn found(samples: &[Sample]) -> Fit {
        fit(samples, 16, 200, &mut Occupancy::default()).expect("observations")
    }

    #[test]
    fn a_clean_observation_has_one_explanation() {
        for (sets, ways, index) in [
            (16, 6, Index::Linear),
            (8, 4, Index::Linear),
            (1, 72, Index::Linear),
            (16, 6, Index::Xor),
        ] {
            let shape = Shape {
                sets,
                ways,
                index,
                policy: Policy::Lru,
            };
            let fit = found(&observe(shape, 7));
            assert_eq!(fit.shape, shape, "{fit:?}");
            assert!(fit.entries.is_exact(), "{fit:?}");
            assert_eq!(fit.ways, Some(shape.associativity()));
            assert!(fit.misfit < 1e-9);
        }
    }

    #[test]
    fn one_stride_alone_tells_entries_but_not_ways() {
        let shape = Shape {
            sets: 1,
            ways: 64,
            index: Index::Linear,
            policy: Policy::Lru,
        };
        let samples: Vec<Sample> = observe(shape, 1)
            .into_iter()
            .filter(|sample| sample.pages % 64 < 2)
            .collect();
        let fit = found(&samples);
        assert_eq!(fit.entries.value, 64);
        assert_eq!(fit.ways, None, "two points cannot tell sets from ways: {fit:?}");
        assert_eq!(shape.associativity(), Ways::Full);
    }

    #[test]
    fn nonsense_fits_badly() {
        let noise = observe(
            Shape {
                sets: 16,
                ways: 6,
                index: Index::Linear,
                policy: Policy::Lru,
            },
            5,
        )
        .into_iter()
        .enumerate()
        .map(|(n, sample)| Sample {
            height: f64::from((n * 7919 % 101) as u32) / 100.0,
            ..sample
        })
        .collect::<Vec<_>>();
        assert!(found(&noise).misfit > 0.2);
    }
}
