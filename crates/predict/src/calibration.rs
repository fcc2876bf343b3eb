//! Runs of a program as a scale for its simulated waits: its time is a line, a + b x waits, and runs on some pages show its slope.
//!
//! Linear models through runs on base and on 2 MiB pages were found to be off by up to 25 to 192 % on other pages. A model that bounds the error below 3 % takes many
//! mixes of pages (Agbarya et al., "Predicting Execution Times With Partial Simulations in Virtual Memory Research", MICRO 2020). Here is one mix, and waits come from
//! a trace. So only pages that were run have the small error of the model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use model::Bytes;
use translation::study::{Range, Setting};

use crate::open::NORMAL;

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
    /// By run: what the line says that it saved.
    pub fitted: Vec<f64>,
    /// The slope of the line, with a 95 % interval: 1 is that of the model alone.
    pub slope: Range,
}

/// Before any run the slope is that of the model, and this many times itself uncertain: of compared programs the model was off by up to five times.
const PRIOR: f64 = 2.0;
/// No program is faster than this share of its time, whatever the line says.
const LEAST: f64 = 0.02;
/// Runs on several kinds of pages are held against the same runs on base pages, so that together they know less than they seem to.
const SHARED: f64 = 1.15;

/// A line through runs.
pub(crate) struct Line {
    base: Setting,
    /// The place of the base pages among the settings.
    place: usize,
    /// Shares on huge pages that were simulated, and their places, from none on.
    shares: Vec<(f64, usize)>,
    observed: Vec<Observed>,
    /// The slope by the model.
    prior: f64,
}

impl Line {
    pub(crate) fn new(settings: &[Setting], base: Setting, observed: Vec<Observed>, prior: f64) -> Self {
        let share = |(place, setting): (usize, &Setting)| {
            let is_alike = is_alike(setting, &base);
            let share = match (setting.share, setting.guest_page) {
                (Some(percent), _) => f64::from(percent) / 100.0,
                (None, page) if page == base.guest_page => 0.0,
                (None, page) if page == Bytes::mib(2) => 1.0,
                _ => return None,
            };
            is_alike.then_some((share, place))
        };
        let mut shares: Vec<(f64, usize)> = settings.iter().enumerate().filter_map(share).collect();
        shares.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self {
            base,
            place: shares.first().map_or(0, |&(_, place)| place),
            shares,
            observed,
            prior,
        }
    }

    /// The place of the base pages that a setting could take the place of where the program ran.
    pub(crate) fn base_of(&self, setting: &Setting) -> Option<usize> {
        is_alike(setting, &self.base).then_some(self.place)
    }

    /// Did the program run on such pages? On all others the line is only supposed to go on.
    pub(crate) fn is_run(&self, setting: &Setting) -> bool {
        is_alike(setting, &self.base) && setting.share.is_none() && setting.guest_page <= Bytes::mib(2)
    }

    /// Waits that a share on huge pages spares, between simulated shares in proportion.
    fn spared(&self, waits: &[f64], share: f64) -> f64 {
        let share = share.clamp(0.0, 1.0);
        let pair = self.shares.windows(2).find(|pair| share <= pair[1].0);
        let at = match pair {
            Some(&[(from, one), (to, other)]) => {
                let part = (share - from) / (to - from);
                waits[one] + part * (waits[other] - waits[one])
            }
            _ => waits[self.place],
        };
        waits[self.place] - at
    }

    /// The slope and its standard error: by least squares with the model's as one more observation, so that runs that spare no waits leave it there. If runs
    /// lie farther from the line than their intervals, the error is wider by as much.
    pub(crate) fn slope(&self, waits: &[f64]) -> (f64, f64) {
        let weight = |error: f64| error.max(1e-4).powi(-2);
        let of_prior = weight(PRIOR * self.prior);
        let (mut products, mut squares) = (of_prior * self.prior, of_prior);
        let runs: Vec<[f64; 3]> = self.observed.iter().map(|run| self.run(waits, run)).collect();
        for [spared, saved, error] in &runs {
            products += weight(*error) * spared * saved;
            squares += weight(*error) * spared.powi(2);
        }
        let slope = products / squares;
        let far = |[spared, saved, error]: &[f64; 3]| weight(*error) * (saved - slope * spared).powi(2);
        let far: f64 = runs.iter().map(far).sum::<f64>() / runs.len().max(1) as f64;
        let shared = if runs.len() > 1 { SHARED } else { 1.0 };
        (slope, shared * far.max(1.0).sqrt() / squares.sqrt())
    }

    /// The waits that a run spared, what it saved, and the standard error of that.
    fn run(&self, waits: &[f64], run: &Observed) -> [f64; 3] {
        let Range { low, middle, high } = run.saves;
        [self.spared(waits, run.coverage), middle, (high - low) / 2.0 / NORMAL]
    }

    /// The time in one setting relative to that in another.
    pub(crate) fn relative(&self, waits: &[f64], slope: f64, place: usize, base: usize) -> f64 {
        let time = |place: usize| (1.0 - slope * (waits[self.place] - waits[place])).max(LEAST);
        time(place) / time(base)
    }

    /// What a result says of it.
    pub(crate) fn calibration(&self, waits: &[f64]) -> Calibration {
        let (slope, error) = self.slope(waits);
        let fitted = |run: &Observed| slope * self.spared(waits, run.coverage);
        let at = |times: f64| (slope + times * error) / self.prior;
        Calibration {
            base: self.base,
            fitted: self.observed.iter().map(fitted).collect(),
            observed: self.observed.clone(),
            slope: Range::new(at(-NORMAL), at(0.0), at(NORMAL)),
        }
    }
}

fn is_alike(setting: &Setting, base: &Setting) -> bool {
    (setting.mode, setting.host_page) == (base.mode, base.host_page)
}

#[cfg(test)]
mod tests {
    use model::Bytes;
    use translation::Mode;
    use translation::study::{Range, Setting};

    use super::{Line, Observed};

    const BASE: Setting = Setting {
        mode: Mode::Native,
        guest_page: Bytes::kib(4),
        host_page: None,
        share: None,
    };

    fn settings() -> Vec<Setting> {
        let large = Setting {
            guest_page: Bytes::mib(2),
            ..BASE
        };
        vec![BASE, BASE.with_share(50), large]
    }

    fn run(coverage: f64, saved: f64, half: f64) -> Observed {
        Observed {
            arm: "a".to_owned(),
            coverage,
            saves: Range::new(saved - half, saved, saved + half),
        }
    }

    #[test]
    fn runs_tell_the_slope_and_the_model_does_where_they_spare_nothing() {
        let line = |observed| Line::new(&settings(), BASE, observed, 0.5);
        // 0.4 of waits are spared by huge pages, and 0.25 by half of them; they save half as much as that.
        let waits = [0.8, 0.55, 0.4];
        let fitted = line(vec![run(0.5, 0.125, 0.004), run(1.0, 0.2, 0.004)]);
        let (slope, error) = fitted.slope(&waits);
        assert!((slope - 0.5).abs() < 0.01 && error < 0.01, "{slope} {error}");
        assert!((fitted.relative(&waits, slope, 2, 0) - 0.8).abs() < 0.005);
        let huge = |page| Setting {
            guest_page: page,
            ..BASE
        };
        let ran = [BASE, huge(Bytes::mib(2)), huge(Bytes::gib(1)), BASE.with_share(50)].map(|one| fitted.is_run(&one));
        assert_eq!(ran, [true, true, false, false]);
        // Three quarters lie between.
        assert!((fitted.spared(&waits, 0.75) - 0.325).abs() < 1e-9);
        // Five times as much as the model says is believed.
        let (steep, _) = line(vec![run(1.0, 1.0, 0.02)]).slope(&waits);
        assert!((steep - 2.5).abs() < 0.05, "{steep}");
        // Waits that are not spared show nothing, and nothing is saved.
        let still = [0.8, 0.8, 0.7999];
        let (slope, _) = line(vec![run(1.0, 0.01, 0.02)]).slope(&still);
        assert!((slope - 0.5).abs() < 0.05, "{slope}");
        assert!((fitted.relative(&still, slope, 2, 0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn runs_that_are_no_line_widen_it() {
        let waits = [0.8, 0.6, 0.4];
        let error = |half_saved: f64| {
            let runs = vec![run(0.5, half_saved, 0.004), run(1.0, 0.2, 0.004)];
            Line::new(&settings(), BASE, runs, 0.5).slope(&waits).1
        };
        assert!(error(0.0) > 5.0 * error(0.1), "{} {}", error(0.0), error(0.1));
    }
}
