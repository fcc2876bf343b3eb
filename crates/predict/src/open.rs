//! Time relative to another setting, as a range: where everything that is open leads, and all of it together.

use translation::study::{Range, Sensitivity, Unknown};

/// What the model itself is off by, as a share of the time, to each side: the fewest whole points that hold 27 of 29 programs compared on a Zen 5 guest (nine in ten of 30). On another
/// machine they hold 15 of 16, which was known when they were chosen (`benches/results/predict-held-out-xeon-guest.md`).
pub(crate) const MODEL: f64 = 0.09;
/// The same of pages that the program was run on, where runs are off by their own interval. Supposed, and not chosen by compared programs.
pub(crate) const MODEL_CALIBRATED: f64 = 0.02;
/// Resamples behind an interval.
pub(crate) const RESAMPLES: usize = 400;

/// Time relative to another setting: in the middle, and where everything that is open leads by itself.
pub(crate) struct Open {
    pub(crate) middle: f64,
    pub(crate) unknown: Vec<(Unknown, Vec<f64>)>,
    pub(crate) others: Vec<Vec<f64>>,
}

impl Open {
    /// The middle, and to each side the root of the sum of the squares of what each unknown alone does, of what the windows leave open, of runs, and of
    /// errors of the model. Unknowns that have nothing to do with each other are rarely all at their worst.
    pub(crate) fn range(&self) -> Range {
        let open = || self.unknown.iter().map(|(_, ratios)| ratios).chain(&self.others);
        let off = |side: f64| {
            let farthest = |ratios: &Vec<f64>| {
                ratios
                    .iter()
                    .map(|ratio| side * (ratio - self.middle))
                    .fold(0.0, f64::max)
            };
            open().map(|ratios| farthest(ratios).powi(2)).sum::<f64>().sqrt()
        };
        Range::new((self.middle - off(-1.0)).max(0.0), self.middle, self.middle + off(1.0))
    }

    /// What each unknown alone does to what is saved.
    pub(crate) fn sensitivity(&self) -> Vec<Sensitivity> {
        let range = |(unknown, ratios): &(Unknown, Vec<f64>)| {
            let Range { low, high, .. } = saved(Range::of(ratios[0], ratios.iter().copied()));
            let unknown = *unknown;
            Sensitivity { unknown, low, high }
        };
        let ranges = self.unknown.iter().map(range);
        ranges.filter(|alone| alone.high - alone.low > 0.0005).collect()
    }
}

/// The 95 % interval of a ratio over windows, from resamples of them. Few of them spread less than all would: Student's t widens it. One alone shows
/// nothing of the others.
pub(crate) fn interval(middle: f64, mut resampled: Vec<f64>, windows: usize) -> Vec<f64> {
    resampled.sort_by(f64::total_cmp);
    let count = windows as f64;
    let wider = match windows {
        1 => 1.0,
        _ => students(count - 1.0) / NORMAL * (count / (count - 1.0)).sqrt(),
    };
    let ends = [resampled[RESAMPLES / 40], resampled[RESAMPLES - 1 - RESAMPLES / 40]];
    ends.map(|end| (middle + wider * (end - middle)).max(0.0)).to_vec()
}

/// The first times relative to the second ones.
pub(crate) fn ratio(times: &[[f64; 2]]) -> f64 {
    let sum = |which: usize| times.iter().map(|each| each[which]).sum::<f64>();
    sum(0) / sum(1)
}

/// 97.5 % of the normal distribution lie below.
pub(crate) const NORMAL: f64 = 1.96;

/// Likewise of Student's t with so many degrees of freedom; between them the larger one.
fn students(freedom: f64) -> f64 {
    const KNOWN: [(f64, f64); 8] = [
        (1.0, 12.71),
        (2.0, 4.30),
        (3.0, 3.18),
        (4.0, 2.78),
        (5.0, 2.57),
        (8.0, 2.31),
        (15.0, 2.13),
        (30.0, 2.04),
    ];
    let found = KNOWN.iter().rev().find(|known| known.0 <= freedom);
    found.map_or(NORMAL, |known| known.1)
}

/// From relative time to what is saved of it.
pub(crate) fn saved(time: Range) -> Range {
    Range::new(1.0 - time.high, 1.0 - time.middle, 1.0 - time.low)
}
