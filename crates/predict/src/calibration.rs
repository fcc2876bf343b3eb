//! Runs of a program as a scale for its simulated waits: its time is a curve over these waits, and runs on some pages show its slope and how it bends.
//!
//! Linear models through runs on base and on 2 MiB pages were found to be off by up to 25 to 192 % on other pages. A model that bounds the error below 3 % takes many
//! mixes of pages (Agbarya et al., "Predicting Execution Times With Partial Simulations in Virtual Memory Research", MICRO 2020). Here is one mix, of half and half: three
//! places are the best ones for a curve with one bend, and of runs that differ by 2 to 5 % more mixes in the same time are no nearer
//! (`benches/results/predict-calibrated-zen5-guest.md`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::Bytes;
use translation::study::{Range, Setting};

use crate::open::{MODEL, NORMAL};

/// How the program ran on other pages than base pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// What it is called.
    pub arm: String,
    /// The share of its memory on huge pages, 0 to 1.
    pub coverage: f64,
    /// The share of its time on base pages that it saved, with a 95 % interval.
    pub saves: Range,
}

/// What the waits of a program were scaled by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// The setting of the base pages that it ran on.
    pub base: Setting,
    /// Its runs on other pages.
    pub observed: Vec<Observed>,
    /// By run: what the curve says that it saved, with what huge pages save besides waits.
    pub fitted: Vec<f64>,
    /// The slope of the curve up to huge pages, with a 95 % interval: 1 is that of the model alone.
    pub slope: Range,
    /// How far runs lie from the curve, as a share of the time, if their intervals do not reach it: they saved something else than these waits.
    #[serde(default)]
    pub unexplained: f64,
}

/// Before any run the slope is that of the model, and this many times itself uncertain: of compared programs the model was off by up to five times.
const PRIOR: f64 = 2.0;
/// Likewise time is a line, and may bend by this part of its slope: then the first waits that are spared count three times as much as the last ones.
const BEND: f64 = 0.5;
/// No program is faster than this share of its time, whatever the curve says.
const LEAST: f64 = 0.02;
/// Runs on several kinds of pages are held against the same runs on base pages, so that together they know less than they seem to.
const SHARED: f64 = 1.15;
/// A run on so much of huge pages, and of base pages, shows how time bends.
const MIXED: f64 = 0.2;

/// A curve through runs.
pub(crate) struct Curve {
    base: Setting,
    /// The places of the base pages and of huge pages everywhere among the settings.
    place: usize,
    huge: usize,
    /// By setting: the share on huge pages, where it is a mix of those two.
    shares: Vec<Option<f64>>,
    /// By setting: how much is on larger pages than the base pages that it ran on, 0 to 1.
    larger: Vec<f64>,
    observed: Vec<Observed>,
    /// The slope by the model.
    prior: f64,
}

/// What a curve comes to by some waits.
pub(crate) struct Fit {
    /// The waits that huge pages spare.
    huge: f64,
    /// The slope up to there, and the bend.
    terms: [f64; 2],
    /// Their variances and covariance.
    spread: [[f64; 2]; 2],
    /// What larger pages everywhere save besides these waits, and its standard error.
    rest: [f64; 2],
}

impl Curve {
    pub(crate) fn new(settings: &[Setting], base: Setting, observed: Vec<Observed>, prior: f64) -> Self {
        let place = |page: Bytes| {
            let is_it =
                |setting: &Setting| is_alike(setting, &base) && (setting.guest_page, setting.share) == (page, None);
            settings.iter().position(is_it).unwrap_or(0)
        };
        let share = |setting: &Setting| {
            let percent = setting.share.filter(|_| is_alike(setting, &base));
            percent.map(|percent| f64::from(percent) / 100.0)
        };
        let larger = |setting: &Setting| match is_alike(setting, &base) {
            true => share(setting).unwrap_or(f64::from(setting.guest_page > base.guest_page)),
            false => 0.0,
        };
        Self {
            base,
            larger: settings.iter().map(larger).collect(),
            place: place(base.guest_page),
            huge: place(Bytes::mib(2)),
            shares: settings.iter().map(share).collect(),
            observed,
            prior,
        }
    }

    /// The place of the base pages that a setting could take the place of where the program ran.
    pub(crate) fn base_of(&self, setting: &Setting) -> Option<usize> {
        is_alike(setting, &self.base).then_some(self.place)
    }

    /// Did the program run on such pages, or on more and on less of them? To all others the curve is only supposed to go on.
    pub(crate) fn is_run(&self, setting: &Setting) -> bool {
        let ran = |least: f64, most: f64| self.observed.iter().any(|run| (least..=most).contains(&run.coverage));
        let is_known = match (setting.share, setting.guest_page) {
            (Some(_), _) => ran(MIXED, 1.0 - MIXED),
            (None, page) if page == self.base.guest_page => true,
            (None, page) => page == Bytes::mib(2) && ran(1.0 - MIXED, 1.0),
        };
        is_alike(setting, &self.base) && is_known
    }

    /// Waits that huge pages spare.
    fn whole(&self, waits: &[f64]) -> f64 {
        waits[self.place] - waits[self.huge]
    }

    /// Waits that a setting spares. A share of all ranges spares that share of it: which ranges a short trace has on huge pages is chance, and where it is no
    /// such share, runs on a mix show it as a bend.
    fn spared(&self, waits: &[f64], place: usize) -> f64 {
        match self.shares[place] {
            Some(share) => share * self.whole(waits),
            None => waits[self.place] - waits[place],
        }
    }

    /// Slope and bend by least squares, with those of the model as observations beside the runs: runs that spare no waits leave them there. If runs lie
    /// farther from the curve than their intervals, the errors are wider by as much.
    pub(crate) fn fit(&self, waits: &[f64]) -> Fit {
        let line = self.solved(waits, 0.0);
        let bend = BEND * line.terms[0].abs();
        let mut fit = self.solved(waits, bend);
        let runs = self.observed.len().max(1) as f64;
        let far = |run: &Observed| ((run.saves.middle - fit.of(run)) / error(run)).powi(2);
        let far = self.observed.iter().map(far).sum::<f64>() / runs;
        let shared = if runs > 1.0 { SHARED } else { 1.0 };
        let wider = shared.powi(2) * far.max(1.0);
        fit.spread.iter_mut().flatten().for_each(|each| *each *= wider);
        fit.rest = self.rest(&fit);
        fit
    }

    /// What runs leave over, as a share of larger pages. Before any run it is nothing, and as uncertain as the model: of a program that hardly waits, its runs say all that is
    /// known.
    fn rest(&self, fit: &Fit) -> [f64; 2] {
        let (mut left, mut weights) = (0.0, weight(MODEL / NORMAL));
        for run in &self.observed {
            let weight = weight(error(run)) * run.coverage;
            left += weight * (run.saves.middle - fit.of(run));
            weights += weight * run.coverage;
        }
        [left / weights, weights.sqrt().recip()]
    }

    /// With a bend of so much.
    fn solved(&self, waits: &[f64], bend: f64) -> Fit {
        let of_slope = weight(PRIOR * self.prior);
        let mut fit = Fit {
            huge: self.whole(waits),
            terms: [of_slope * self.prior, 0.0],
            spread: [[of_slope, 0.0], [0.0, weight(bend)]],
            rest: [0.0; 2],
        };
        for run in &self.observed {
            let (terms, weight) = (fit.gradient(run.coverage * fit.huge), weight(error(run)));
            for (row, term) in terms.iter().enumerate() {
                fit.terms[row] += weight * term * run.saves.middle;
                let sums = fit.spread[row].iter_mut().zip(terms);
                sums.for_each(|(sum, other)| *sum += weight * term * other);
            }
        }
        let [[a, b], [_, c]] = fit.spread;
        let whole = a * c - b * b;
        fit.spread = [[c / whole, -b / whole], [-b / whole, a / whole]];
        fit.terms = fit.spread.map(|row| dot(row, fit.terms));
        fit
    }

    /// The time in one setting relative to that in another, and its standard error by the runs.
    pub(crate) fn relative(&self, fit: &Fit, waits: &[f64], place: usize, base: usize) -> (f64, f64) {
        let at = |place: usize| {
            let spared = self.spared(waits, place);
            let saved = fit.saved(spared) + fit.rest[0] * self.larger[place];
            ((1.0 - saved).max(LEAST), fit.gradient(spared))
        };
        let ((time, terms), (of, against)) = (at(place), at(base));
        let ratio = time / of;
        let slope = [0, 1].map(|term| (ratio * against[term] - terms[term]) / of);
        let variance = dot(slope, fit.spread.map(|row| dot(row, slope)));
        // A run shows the sum of both, so that the larger error is that of the sum.
        let rest = fit.rest[1] * (self.larger[place] - self.larger[base]).abs();
        (ratio, variance.max(0.0).sqrt().max(rest))
    }

    /// How far runs lie from the curve, in the time, if their intervals do not reach it: something else than these waits was saved.
    pub(crate) fn unexplained(&self, fit: &Fit) -> f64 {
        let off = |run: &Observed| (run.saves.middle - fit.of(run)).abs();
        let beyond = self.observed.iter().filter(|run| off(run) > NORMAL * error(run));
        beyond.map(off).fold(0.0, f64::max)
    }

    /// What a result says of it.
    pub(crate) fn calibration(&self, waits: &[f64]) -> Calibration {
        let fit = self.fit(waits);
        let error = fit.spread[0][0].sqrt();
        let at = |times: f64| (fit.terms[0] + times * error) / self.prior;
        Calibration {
            base: self.base,
            fitted: self
                .observed
                .iter()
                .map(|run| fit.of(run) + fit.rest[0] * run.coverage)
                .collect(),
            observed: self.observed.clone(),
            slope: Range::new(at(-NORMAL), at(0.0), at(NORMAL)),
            unexplained: self.unexplained(&fit),
        }
    }
}

impl Fit {
    /// The share of the time that is saved where so many waits are spared.
    fn saved(&self, spared: f64) -> f64 {
        dot(self.gradient(spared), self.terms)
    }

    fn of(&self, run: &Observed) -> f64 {
        self.saved(run.coverage * self.huge)
    }

    /// What slope and bend count for there. Beyond the pages that were run the curve goes on straight.
    fn gradient(&self, spared: f64) -> [f64; 2] {
        let bend = match self.huge {
            huge if huge <= 0.0 => 0.0,
            _ if spared < 0.0 => -spared,
            huge if spared > huge => spared - huge,
            huge => spared * (spared - huge) / huge,
        };
        [spared, bend]
    }
}

fn dot(one: [f64; 2], other: [f64; 2]) -> f64 {
    one[0] * other[0] + one[1] * other[1]
}

fn weight(error: f64) -> f64 {
    error.max(1e-4).powi(-2)
}

/// The standard error of what a run saved.
fn error(run: &Observed) -> f64 {
    ((run.saves.high - run.saves.low) / 2.0 / NORMAL).max(1e-4)
}

fn is_alike(setting: &Setting, base: &Setting) -> bool {
    (setting.mode, setting.host_page) == (base.mode, base.host_page)
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
mod tests;
