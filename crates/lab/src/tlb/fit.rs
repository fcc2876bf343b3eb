//! Which array of entries explains the misses of all layouts at once: a robust joint fit, with the rivals it cannot rule out.

use model::tlb::{Entries, Index, Ways};

use super::occupancy::{Histogram, capacity, fill, misses};
use super::probe::Layout;

/// One array of entries, replaced by LRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Entries in a set.
    pub ways: u32,
    /// How a page finds its set.
    pub index: Index,
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

    /// The most pages of a layout, up to `most`, that all fit.
    pub fn capacity(self, layout: Layout, most: u32) -> u32 {
        capacity(layout, self.sets, self.ways, self.index, most)
    }

    /// Share of accesses that miss at each of these numbers of pages, which ascend.
    pub fn misses(self, layout: Layout, pages: impl Iterator<Item = u32>) -> Vec<f64> {
        let filled = fill(layout, self.sets, self.index, pages);
        filled.iter().map(|filled| misses(filled, self.ways)).collect()
    }

    /// Arrays that are easily taken for this one: a way more or less, the same entries in twice or half as many sets, and the
    /// other index.
    pub fn kin(self) -> impl Iterator<Item = Self> {
        let other = if self.index == Index::Linear {
            Index::Xor
        } else {
            Index::Linear
        };
        let sized = |sets: u32, ways: u32| Self { sets, ways, ..self };
        [
            sized(self.sets, self.ways + 1),
            sized(self.sets, self.ways - 1),
            sized(self.sets * 2, self.ways.div_ceil(2)),
            sized((self.sets / 2).max(1), self.ways * 2),
            Self { index: other, ..self },
        ]
        .into_iter()
        .filter(|kin| kin.ways >= FEWEST_WAYS && kin.sets <= MOST_SETS && kin.is_plain())
    }

    /// One set alone has no index to speak of.
    fn is_plain(self) -> bool {
        self.sets > 1 || self.index == Index::Linear
    }
}

/// One observation: the share of accesses that seem to miss, in the least disturbed passes.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Where the pages were.
    pub layout: Layout,
    /// How many.
    pub pages: u32,
    /// 0: costs as little as a hit; 1: as much as a miss, or more.
    pub height: f64,
    /// How far it may be off.
    pub slack: f64,
    /// How many passes stand behind it.
    pub passes: u32,
}

impl Sample {
    /// How much this observation speaks against a share of misses, in units of surprise (as a logarithm of odds).
    ///
    /// Nothing but hits is proof that the pages fit: nothing makes an access cheaper. Misses may be a neighbour's doing, the
    /// less likely the more passes saw them.
    pub fn against(&self, share: f64) -> f64 {
        let off = (self.height - share) / self.slack_at(share);
        let most = match off {
            // A neighbour who makes a few accesses miss is likelier than one who makes all miss.
            _ if off > 0.0 => {
                f64::from(self.passes.min(MOST_PASSES)) / 4.0 * (2.0 * (self.height - share)).clamp(0.25, 1.0)
            }
            _ if self.fits() => IMPOSSIBLE,
            _ => LUCKY,
        };
        (off.abs() - 1.0).clamp(0.0, most)
    }

    /// Does everything hit?
    fn fits(&self) -> bool {
        self.height < 2.0 * self.slack
    }

    /// Does everything hit although a share clearly above none should miss?
    fn refutes(&self, share: f64) -> bool {
        self.fits() && share > 0.1 + 3.0 * self.slack_at(share)
    }

    /// Is it off by more than noise makes it? Whatever the slack: what is forgiven in a rival may still be no explanation.
    fn is_off(&self, share: f64) -> bool {
        const NOISE: f64 = 0.15;
        (self.height - share).abs() > NOISE
    }

    /// What the next level costs varies with where its entries are, so that a share of misses is known less well than none.
    fn slack_at(&self, share: f64) -> f64 {
        self.slack + 0.06 * share
    }
}

/// The best explanation and what else would do.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The best shape.
    pub shape: Shape,
    /// The shapes that the observations do not rule out, the best first.
    pub rivals: Vec<Shape>,
}

/// How well a shape explains what was seen.
#[derive(Clone, Copy, Debug)]
pub struct Misfit {
    /// The usual distance of the observations from the shape where either says that something misses, 0 to 1.
    pub usual: f64,
    /// Share of these observations that are off by more than noise makes them.
    pub off: f64,
    /// Observations in which all fits that by this shape cannot.
    pub refuting: usize,
}

/// Fewest ways that are looked for.
const FEWEST_WAYS: u32 = 2;
/// Most sets of a TLB that is looked for.
const MOST_SETS: u32 = 1024;
/// A cost far below what a shape allows is as good as proof against it; not quite, since a clock may err.
const IMPOSSIBLE: f64 = 8.0;
/// Fewer misses than a shape allows, but some: real replacement is not quite LRU, and an order of visits may be lucky.
const LUCKY: f64 = 4.0;
/// Passes beyond which another one that saw misses adds nothing: whoever disturbed all of them disturbs that one too.
const MOST_PASSES: u32 = 32;
/// A rival is ruled out when it is less likely than the best by this logarithm of odds: one in four hundred.
const CLEARLY: f64 = 6.0;

/// Fits shapes with entries in `from..=to` to observations that ascend by layout and pages. `None` without any.
pub fn fit(samples: &[Sample], (from, to): (u32, u32)) -> Option<Fit> {
    let rows = rows().map(|(sets, index)| (sets, index, from.div_ceil(sets).max(FEWEST_WAYS), to / sets));
    judge(samples, rows)
}

/// The same among shapes near those that were left over before.
pub fn again(samples: &[Sample], before: &Fit, (from, to): (u32, u32)) -> Option<Fit> {
    let rows = rows().filter_map(|(sets, index)| {
        let ways = || {
            let shapes = before.rivals.iter().copied().chain(before.shape.kin());
            shapes
                .filter(move |shape| (shape.sets, shape.index) == (sets, index))
                .map(|shape| shape.ways)
        };
        let (least, most) = (ways().min()?, ways().max()?);
        // Twice as wide as what was left, since later passes may show that more fits.
        let around = (most - least + 1).max(most / 16);
        let fewest = least.saturating_sub(around).max(from.div_ceil(sets)).max(FEWEST_WAYS);
        Some((sets, index, fewest, (most + around).min(to / sets)))
    });
    judge(samples, rows)
}

/// Sets and index functions that are tried.
fn rows() -> impl Iterator<Item = (u32, Index)> {
    let sets = (0..=MOST_SETS.ilog2()).map(|bits| 1 << bits);
    sets.flat_map(|sets| [(sets, Index::Linear), (sets, Index::Xor)])
        .filter(|&(sets, index)| sets > 1 || index == Index::Linear)
}

/// Judges shapes, given as `(sets, index, fewest ways, most ways)`.
fn judge(samples: &[Sample], rows: impl Iterator<Item = (u32, Index, u32, u32)>) -> Option<Fit> {
    if samples.is_empty() {
        return None;
    }
    let mut judged: Vec<(f64, Shape)> = Vec::new();
    let mut least = f64::INFINITY;
    for (sets, index, fewest, most) in rows {
        let filled = filled(samples, sets, index);
        for ways in fewest..=most {
            if let Some(loss) = loss(samples, &filled, ways, least + CLEARLY) {
                least = least.min(loss);
                judged.push((loss, Shape { sets, ways, index }));
            }
        }
    }
    judged.retain(|&(loss, _)| loss <= least + CLEARLY);
    judged.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let rivals: Vec<Shape> = judged.into_iter().map(|(_, shape)| shape).collect();
    let shape = *rivals.first()?;
    Some(Fit { shape, rivals })
}

fn filled(samples: &[Sample], sets: u32, index: Index) -> Vec<Histogram> {
    samples
        .chunk_by(|a, b| a.layout == b.layout)
        .flat_map(|curve| fill(curve[0].layout, sets, index, curve.iter().map(|sample| sample.pages)))
        .collect()
}

/// How much all observations together speak against that many ways; `None` once it is more than `most`.
fn loss(samples: &[Sample], filled: &[Histogram], ways: u32, most: f64) -> Option<f64> {
    let mut total = 0.0;
    for (sample, filled) in samples.iter().zip(filled) {
        total += sample.against(misses(filled, ways));
        if total > most {
            return None;
        }
    }
    Some(total)
}

impl Fit {
    /// The entries that rivals have: one number if they agree.
    pub fn entries(&self) -> Entries {
        let entries = || self.rivals.iter().map(|rival| rival.entries());
        let value = self.shape.entries();
        Entries {
            value,
            low: entries().min().unwrap_or(value),
            high: entries().max().unwrap_or(value),
        }
    }

    /// Associativity, if all rivals agree.
    pub fn ways(&self) -> Option<Ways> {
        let ways = self.shape.associativity();
        self.rivals
            .iter()
            .all(|rival| rival.associativity() == ways)
            .then_some(ways)
    }

    /// Index, if all rivals agree and there is more than one set.
    pub fn index(&self) -> Option<Index> {
        let same = self
            .rivals
            .iter()
            .all(|rival| rival.index == self.shape.index && rival.sets > 1);
        same.then_some(self.shape.index)
    }

    /// Is there one explanation only?
    pub fn is_decided(&self) -> bool {
        self.rivals.len() == 1
    }

    /// How well the best shape explains the observations.
    pub fn misfit(&self, samples: &[Sample]) -> Misfit {
        let filled = filled(samples, self.shape.sets, self.shape.index);
        let shares: Vec<f64> = filled.iter().map(|filled| misses(filled, self.shape.ways)).collect();
        let telling = || {
            let both = samples.iter().zip(&shares).map(|(sample, &share)| (sample, share));
            both.filter(|(sample, share)| share.max(sample.height) > 0.05)
        };
        let mut off: Vec<f64> = telling().map(|(sample, share)| (sample.height - share).abs()).collect();
        off.sort_unstable_by(f64::total_cmp);
        let is_off = telling().filter(|(sample, share)| sample.is_off(*share));
        Misfit {
            usual: off.get(off.len() / 2).copied().unwrap_or(0.0),
            off: is_off.count() as f64 / off.len().max(1) as f64,
            refuting: telling().filter(|(sample, share)| sample.refutes(*share)).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fit, Sample, Shape, fit};
    use crate::tlb::probe::Layout;
    use model::tlb::{Index, Ways};

    fn shape(sets: u32, ways: u32, index: Index) -> Shape {
        Shape { sets, ways, index }
    }

    fn observe(shape: Shape, strides: u32) -> Vec<Sample> {
        (0..strides)
            .map(Layout::strided)
            .flat_map(|layout| {
                let shares = shape.misses(layout, 1..160);
                (1..160).zip(shares).map(move |(pages, height)| Sample {
                    layout,
                    pages,
                    height,
                    slack: 0.01,
                    passes: 12,
                })
            })
            .collect()
    }

    fn found(samples: &[Sample]) -> Fit {
        fit(samples, (16, 200)).expect("observations")
    }

    #[test]
    fn a_clean_observation_has_one_explanation() {
        for shape in [
            shape(16, 6, Index::Linear),
            shape(8, 4, Index::Linear),
            shape(1, 72, Index::Linear),
            shape(16, 6, Index::Xor),
            shape(4, 13, Index::Xor),
        ] {
            let samples = observe(shape, 7);
            let fit = found(&samples);
            assert_eq!(fit.shape, shape, "{fit:?}");
            assert!(fit.is_decided() && fit.entries().is_exact(), "{fit:?}");
            assert_eq!(fit.ways(), Some(shape.associativity()));
            assert!(fit.misfit(&samples).usual < 1e-9);
        }
    }

    #[test]
    fn one_stride_alone_tells_entries_but_not_ways() {
        let full = shape(1, 64, Index::Linear);
        let samples: Vec<Sample> = observe(full, 1)
            .into_iter()
            .filter(|sample| [1, 64, 128].contains(&sample.pages))
            .collect();
        let fit = found(&samples);
        assert!(fit.entries().low <= 64 && fit.entries().high >= 64 && !fit.entries().is_exact());
        assert_eq!(fit.ways(), None, "three points cannot tell sets from ways: {fit:?}");
        assert_eq!(full.associativity(), Ways::Full);
    }

    #[test]
    fn hits_that_were_seen_count_more_than_misses_that_a_neighbour_may_have_made() {
        let samples: Vec<Sample> = observe(shape(1, 64, Index::Linear), 3)
            .into_iter()
            .map(|sample| Sample {
                // At two strides of three somebody holds a fifth of it.
                height: if sample.layout.stride > 0 && sample.pages > 51 {
                    1.0
                } else {
                    sample.height
                },
                ..sample
            })
            .collect();
        assert_eq!(found(&samples).entries().value, 64);
    }

    #[test]
    fn nonsense_fits_badly() {
        let noise: Vec<Sample> = (0..)
            .zip(observe(shape(16, 6, Index::Linear), 5))
            .map(|(n, sample): (u32, Sample)| Sample {
                height: f64::from(n * 7919 % 101) / 100.0,
                ..sample
            })
            .collect();
        assert!(found(&noise).misfit(&noise).usual > 0.2);
    }
}
