//! Which array of entries explains the misses of all layouts at once: a robust joint fit, with the rivals it cannot rule out.

use model::tlb::{Entries, Hash, Index, Ways};

use super::occupancy::{Histogram, capacity, fill, least_misses, misses};
use super::probe::Layout;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The least recently used entry goes: going round an overfull set always misses.
    Lru,
    /// Anything from a random entry to that one: only where costs begin to rise is known, not how fast.
    Any,
}

/// The shares of misses that an observation may show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    pub least: f64,
    pub most: f64,
}

impl Eviction {
    /// The shares of misses in sets so filled.
    pub(super) fn shares(self, filled: &Histogram, ways: u32) -> Shares {
        let most = misses(filled, ways);
        let least = match self {
            Self::Lru => most,
            Self::Any => least_misses(filled, ways),
        };
        Shares { least, most }
    }

    /// The numbers of ways, from the fewest to the most, at which the shares of misses change: most arrays are far too large
    /// or far too small for a number of pages, and alike in that.
    fn steps(self, filled: &Histogram, fewest: u32, most: u32) -> Vec<u32> {
        let mut counts = filled.iter().map(|&(pages, _)| pages);
        match self {
            Self::Lru => {
                let within = counts.filter(|pages| (fewest + 1..=most).contains(pages));
                std::iter::once(fewest).chain(within).collect()
            }
            Self::Any => (fewest..=counts.next_back().unwrap_or(0).clamp(fewest, most)).collect(),
        }
    }
}

impl Shares {
    /// The share within that comes closest.
    fn nearest(self, height: f64) -> f64 {
        height.clamp(self.least, self.most)
    }

    /// How far two are apart; 0 where they meet.
    pub fn apart(self, other: Self) -> f64 {
        (self.least - other.most).max(other.least - self.most).max(0.0)
    }
}

/// One array of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Entries in a set.
    pub ways: u32,
    /// How a page finds its set.
    pub hash: Hash,
}

/// What decides which pages share a set: sets and hash.
pub(super) type Row = (u32, Hash);

impl Shape {
    /// Shapes of one row fill alike.
    pub(super) fn row(self) -> Row {
        (self.sets, self.hash)
    }

    pub fn entries(self) -> u32 {
        self.sets * self.ways
    }

    pub fn associativity(self) -> Ways {
        if self.sets == 1 {
            Ways::Full
        } else {
            Ways::Count(self.ways)
        }
    }

    /// The most pages of a layout, up to `most`, that all fit.
    pub fn capacity(self, layout: Layout, most: u32) -> u32 {
        capacity(layout, self.sets, self.ways, self.hash, most)
    }

    /// Share of accesses that miss under LRU at each of these numbers of pages, which ascend.
    pub fn misses(self, layout: Layout, pages: impl Iterator<Item = u32>) -> Vec<f64> {
        let shares = self.shares(Eviction::Lru, layout, pages);
        shares.into_iter().map(|shares| shares.most).collect()
    }

    pub fn shares(self, eviction: Eviction, layout: Layout, pages: impl Iterator<Item = u32>) -> Vec<Shares> {
        let filled = fill(layout, self.sets, self.hash, pages);
        filled.iter().map(|filled| eviction.shares(filled, self.ways)).collect()
    }

    /// Arrays that are easily taken for this one: a way more or less, the same entries in twice or half as many sets, and the
    /// other index.
    pub fn kin(self) -> impl Iterator<Item = Self> {
        let others = hashes(self.sets).filter(move |&hash| hash != self.hash);
        let sized = |sets: u32, ways: u32| Self { sets, ways, ..self };
        [
            sized(self.sets, self.ways + 1),
            sized(self.sets, self.ways - 1),
            sized(self.sets * 2, self.ways.div_ceil(2)),
            sized((self.sets / 2).max(1), self.ways * 2),
        ]
        .into_iter()
        .chain(others.map(move |hash| Self { hash, ..self }))
        .filter(|kin| kin.ways >= FEWEST_WAYS && kin.sets <= MOST_SETS && kin.is_plain())
    }

    /// One set alone has no index to speak of.
    fn is_plain(self) -> bool {
        self.sets > 1 || self.hash == Hash::Linear
    }
}

/// One observation: the share of accesses that seem to miss, in the least disturbed passes.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub layout: Layout,
    pub pages: u32,
    /// 0: costs as little as a hit; 1: as much as a miss, or more.
    pub height: f64,
    /// How far it may be off.
    pub slack: f64,
    /// How many passes stand behind it.
    pub passes: u32,
}

impl Sample {
    /// How much this observation speaks against shares of misses, in units of surprise (as a logarithm of odds).
    ///
    /// Nothing but hits is proof that the pages fit: nothing makes an access cheaper. Misses may come from contention, the
    /// less likely the more passes saw them.
    pub fn against(&self, shares: Shares, eviction: Eviction) -> f64 {
        let share = shares.nearest(self.height);
        let off = (self.height - share) / self.slack_at(share);
        let seen = f64::from(self.passes.min(MOST_PASSES)) / 4.0;
        let most = match off {
            // Where few misses may be all that an overfull set shows, few must count.
            _ if off > 0.0 && eviction == Eviction::Any => seen / 2.0,
            // Contention that makes a few accesses miss is likelier than contention that makes all miss.
            _ if off > 0.0 => seen * (2.0 * (self.height - share)).clamp(0.25, 1.0),
            _ if self.fits() => IMPOSSIBLE,
            _ => LUCKY,
        };
        (off.abs() - 1.0).clamp(0.0, most)
    }

    /// Does everything hit?
    pub fn fits(&self) -> bool {
        self.height < 2.0 * self.slack
    }

    /// Does everything hit although a share clearly above none should miss?
    fn refutes(&self, shares: Shares) -> bool {
        self.fits() && shares.least > 0.1 + 3.0 * self.slack_at(shares.least)
    }

    fn off(&self, shares: Shares) -> f64 {
        (self.height - shares.nearest(self.height)).abs()
    }

    /// What the next level costs varies with where its entries are, so that a share of misses is known less well than none.
    fn slack_at(&self, share: f64) -> f64 {
        self.slack + 0.06 * share
    }
}

/// The best explanation and what else would do.
#[derive(Clone, Debug)]
pub struct Fit {
    pub shape: Shape,
    /// The shapes that the observations do not rule out, the best first.
    pub rivals: Vec<Shape>,
    pub eviction: Eviction,
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

/// A shape usually further from what was seen explains nothing.
const MISFIT: f64 = 0.1;
/// A shape that is off at more than this share of the observations is not the shape.
const OFTEN_OFF: f64 = 0.09;

impl Misfit {
    /// Is the shape an explanation at all?
    pub fn explains(self) -> bool {
        self.off <= OFTEN_OFF && self.usual <= MISFIT
    }
}

/// Fewest ways that are looked for.
const FEWEST_WAYS: u32 = 2;
/// Most sets of a TLB that is looked for.
const MOST_SETS: u32 = 1024;
/// A cost far below what a shape allows is as good as proof against it; not quite, since a clock may err.
const IMPOSSIBLE: f64 = 8.0;
/// Fewer misses than a shape allows, but some: real replacement is not quite LRU, and an order of visits may be lucky.
const LUCKY: f64 = 4.0;
/// Passes beyond which another one that saw misses adds nothing: what disturbed all of them disturbs that one too.
const MOST_PASSES: u32 = 32;
/// A rival is ruled out when it is less likely than the best by this logarithm of odds: one in four hundred.
const CLEARLY: f64 = 6.0;

/// Fits shapes with entries in `from..=to` to observations that ascend by layout and pages. `None` without any.
pub fn fit(samples: &[Sample], eviction: Eviction, (from, to): (u32, u32)) -> Option<Fit> {
    let rows = rows().map(|(sets, hash)| (sets, hash, from.div_ceil(sets).max(FEWEST_WAYS), to / sets));
    judge(samples, eviction, rows)
}

/// The same among shapes near those that were left over before.
pub fn again(samples: &[Sample], before: &Fit, (from, to): (u32, u32)) -> Option<Fit> {
    let rows = rows().filter_map(|(sets, hash)| {
        let ways = || {
            let shapes = before.rivals.iter().copied().chain(before.shape.kin());
            shapes
                .filter(move |shape| shape.row() == (sets, hash))
                .map(|shape| shape.ways)
        };
        let (least, most) = (ways().min()?, ways().max()?);
        // Twice as wide as what was left, since later passes may show that more fits.
        let around = (most - least + 1).max(most / 16);
        let fewest = least.saturating_sub(around).max(from.div_ceil(sets)).max(FEWEST_WAYS);
        Some((sets, hash, fewest, (most + around).min(to / sets)))
    });
    judge(samples, before.eviction, rows)
}

/// Sets and hashes that are tried.
fn rows() -> impl Iterator<Item = Row> {
    let sets = (0..=MOST_SETS.ilog2()).map(|bits| 1 << bits);
    sets.flat_map(|sets| hashes(sets).map(move |hash| (sets, hash)))
}

/// The hashes that may spread pages over so many sets. There are more in the world: random draws of pages show whether an array
/// has one of these.
fn hashes(sets: u32) -> impl Iterator<Item = Hash> {
    let bits = sets.ilog2() as u8;
    let shift = |by: u8| Hash::Shift { by, parts: 2 };
    let xor = [Hash::Fold, shift(bits), shift(bits + 1)];
    let xor = xor.into_iter().filter(move |_| bits > 0);
    std::iter::once(Hash::Linear).chain(xor)
}

/// Judges shapes, given as `(sets, hash, fewest ways, most ways)`.
fn judge(samples: &[Sample], eviction: Eviction, rows: impl Iterator<Item = (u32, Hash, u32, u32)>) -> Option<Fit> {
    if samples.is_empty() {
        return None;
    }
    let mut judged: Vec<(f64, Shape)> = Vec::new();
    let mut least = f64::INFINITY;
    for (sets, hash, fewest, most) in rows.filter(|&(.., fewest, most)| fewest <= most) {
        for (ways, loss) in (fewest..).zip(losses(samples, eviction, (sets, hash), (fewest, most))) {
            least = least.min(loss);
            if loss <= least + CLEARLY {
                judged.push((loss, Shape { sets, ways, hash }));
            }
        }
    }
    judged.retain(|&(loss, _)| loss <= least + CLEARLY);
    judged.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let rivals: Vec<Shape> = judged.into_iter().map(|(_, shape)| shape).collect();
    let shape = *rivals.first()?;
    Some(Fit {
        shape,
        rivals,
        eviction,
    })
}

fn filled(samples: &[Sample], sets: u32, hash: Hash) -> Vec<Histogram> {
    samples
        .chunk_by(|a, b| a.layout == b.layout)
        .flat_map(|curve| fill(curve[0].layout, sets, hash, curve.iter().map(|sample| sample.pages)))
        .collect()
}

/// How much all observations together speak against each number of ways, from the fewest to the most.
fn losses(samples: &[Sample], eviction: Eviction, (sets, hash): Row, (fewest, most): (u32, u32)) -> Vec<f64> {
    let mut losses = vec![0.0; (most - fewest + 1) as usize];
    for (sample, filled) in samples.iter().zip(filled(samples, sets, hash)) {
        let steps = eviction.steps(&filled, fewest, most);
        let ends = steps.iter().skip(1).copied().chain([most + 1]);
        for (&from, to) in steps.iter().zip(ends) {
            let against = sample.against(eviction.shares(&filled, from), eviction);
            let alike = &mut losses[(from - fewest) as usize..(to - fewest) as usize];
            alike.iter_mut().for_each(|loss| *loss += against);
        }
    }
    losses
}

impl Fit {
    /// The entries that rivals have: one number if they agree.
    pub fn entries(&self) -> Entries {
        let entries = || self.rivals.iter().map(|rival| rival.entries());
        let best = self.shape.entries();
        Entries {
            low: entries().min().unwrap_or(best),
            high: entries().max().unwrap_or(best),
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
        let index = self.shape.hash.index();
        let same = |rival: &Shape| rival.hash.index() == index && rival.sets > 1;
        self.rivals.iter().all(same).then_some(index)
    }

    /// Is there one explanation only?
    pub fn is_decided(&self) -> bool {
        self.rivals.len() == 1
    }

    /// How well the best shape explains the observations.
    pub fn misfit(&self, samples: &[Sample]) -> Misfit {
        /// Noise makes no more of a difference than this, whatever the slack: what is forgiven in a rival may still be no
        /// explanation.
        const NOISE: f64 = 0.15;
        let filled = filled(samples, self.shape.sets, self.shape.hash);
        let shares = filled
            .iter()
            .map(|filled| self.eviction.shares(filled, self.shape.ways));
        let telling: Vec<(&Sample, Shares)> = samples
            .iter()
            .zip(shares)
            .filter(|(sample, shares)| shares.most.max(sample.height) > 0.05)
            .collect();
        let off: Vec<f64> = telling.iter().map(|(sample, shares)| sample.off(*shares)).collect();
        let far_off = off.iter().filter(|&&off| off > NOISE);
        Misfit {
            usual: stats::median(&off).unwrap_or(0.0),
            off: far_off.count() as f64 / off.len().max(1) as f64,
            refuting: telling
                .iter()
                .filter(|(sample, shares)| sample.refutes(*shares))
                .count(),
        }
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
