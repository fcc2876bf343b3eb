//! One look at one level: which arrays explain the costs around a knee, and what separates the rivals.

use model::tlb::Entries;

use super::belief::Belief;
use super::{Found, Judged, LEAST_BLUR, Search};
use crate::tlb::fit::{self, Fit, Replacement, Sample, Shape};
use crate::tlb::knee::{Knee, hidden};
use crate::tlb::plan::{edges, telling};
use crate::tlb::probe::{Oracle, Probe, Sweep};

/// Closer looks at a knee, at the fewest in the first round and at the most.
const LOOKS: std::ops::RangeInclusive<u32> = 2..=8;
/// Random pages need more page directories and more lines of page-table entries than adjacent ones do, which costs a little by
/// itself, as a share of what a miss adds. One set too full of the few dozen of a first level costs several times that.
const SCATTERED: f64 = 0.02;
/// Why a shape that misses explain is not named.
const DISAGREED: &str = "where misses begin and how they spread speak for different arrays; measure again";

/// The part of a sweep that one level is fitted to.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) sweep: Sweep,
    pub(super) knee: Knee,
    /// Fewest pages that are looked at.
    pub(super) start: u32,
    /// The level before, where it is known: pages that it holds say nothing of this one.
    pub(super) before: Option<Shape>,
    /// How far costs may be off, as a share.
    pub(super) blur: f64,
    /// The same far from the knee.
    pub(super) flat: f64,
}

impl View {
    /// The entries that are looked for.
    pub(super) fn range(&self) -> (u32, u32) {
        (self.knee.pages / 2, self.knee.pages * 2)
    }
}

impl<O: Oracle> Search<'_, O> {
    pub(super) fn view(&self, sweep: Sweep, knee: Knee, start: u32, before: Option<Shape>) -> View {
        let off = |from: u32, to: u32| {
            let flat = self.flat(sweep, from.max(start), to);
            let off: Vec<f64> = flat.iter().map(|cost| (cost / knee.before - 1.0).abs()).collect();
            stats::median(&off).unwrap_or(0.0)
        };
        let flat = LEAST_BLUR.max(2.0 * off(start, knee.pages * 2 / 3));
        View {
            sweep,
            knee,
            start,
            before,
            flat,
            // Just before the knee, contention shows that takes an entry now and then in all passes.
            blur: flat.max(2.0 * off(knee.pages * 4 / 5, knee.pages - 1)),
        }
    }

    /// Fits arrays replaced by LRU, whose misses show most; where they do not explain what was seen, or where other
    /// replacement explains it far better, only the edges count. The shape is given where it is certain.
    pub(super) fn level(&mut self, view: View) -> Judged {
        let judged = |found: Found, shape: Option<Shape>| Judged {
            found,
            knee: view.knee.pages,
            rise: view.knee.rise,
            shape,
        };
        let Some(fit) = self.narrowed(view, Replacement::Lru) else {
            let why = "no point of the curve is conclusive".to_owned();
            return judged(self.unknown(view, why), None);
        };
        let belief = self.verdict(view, &fit);
        match belief {
            Belief::Sure(free) if self.edge_was_seen(view, &fit) => {
                return judged(self.sure(view, &fit, free), Some(fit.shape));
            }
            Belief::Unknown(why) => return judged(self.unknown(view, why), None),
            _ => {}
        }
        // A knee that is gentle says nothing of how far costs are off.
        let view = View {
            blur: view.flat,
            ..view
        };
        if let Some(fit) = self.narrowed(view, Replacement::Any)
            && let Belief::Sure(free) = self.verdict(view, &fit)
        {
            return judged(self.sure(view, &fit, free), Some(fit.shape));
        }
        let found = match belief {
            Belief::Soft(entries) => self.soft(view, entries),
            Belief::Unexplained(why) => self.unknown(view, why),
            _ => self.unknown(view, DISAGREED.to_owned()),
        };
        judged(found, None)
    }

    /// Fits, and asks what separates the rivals until one is left.
    fn narrowed(&mut self, view: View, replacement: Replacement) -> Option<Fit> {
        let mut fit = fit::fit(&self.samples(view), replacement, view.range())?;
        let hopeless =
            |fit: &Fit, samples: &[Sample]| replacement == Replacement::Lru && !fit.misfit(samples).explains();
        let fewest = if self.first { *LOOKS.start() } else { 1 };
        if !self.first && hopeless(&fit, &self.samples(view)) {
            return Some(fit);
        }
        for look in 1..=*LOOKS.end() {
            let limits = self.oracle.limits(view.sweep);
            let mut probes = telling(view.sweep, &fit, limits, view.start);
            probes.extend(edges(view.sweep, fit.shape, limits, view.start));
            self.ask(&probes, self.effort.refined / 2);
            let samples = self.samples(view);
            let Some(closer) = fit::again(&samples, &fit, view.range()) else {
                break;
            };
            // A shape that is new has not been held against those that are easily taken for it.
            let stays = closer.is_decided() && closer.shape == fit.shape;
            fit = closer;
            if self.stopped || look >= fewest && (stays || hopeless(&fit, &samples)) {
                break;
            }
        }
        Some(fit)
    }

    /// Were as many pages as fit by this shape ever seen to fit? Misses that spread more slowly than under LRU let it seem larger.
    fn edge_was_seen(&self, view: View, found: &Fit) -> bool {
        let limits = self.oracle.limits(view.sweep);
        let at_edge = |sample: &Sample| sample.pages == found.shape.capacity(sample.layout, limits.pages);
        self.samples(view).iter().any(|sample| at_edge(sample) && sample.fits())
    }

    /// What the least disturbed passes saw, as shares of misses.
    pub(super) fn samples(&self, view: View) -> Vec<Sample> {
        // An earlier round may have looked at fewer pages.
        let points = self
            .survey
            .points(view.sweep)
            .filter(|(probe, _)| probe.pages >= view.start);
        let points: Vec<(Probe, f64)> = points.collect();
        points
            .chunk_by(|a, b| a.0.layout == b.0.layout)
            .flat_map(|curve| {
                let beyond = beyond(view.before, curve);
                let beyond = curve.iter().zip(beyond).filter(|(_, beyond)| *beyond);
                beyond.map(|(&(probe, cost), _)| self.sample(view, probe, cost))
            })
            .collect()
    }

    pub(super) fn sample(&self, view: View, probe: Probe, cost: f64) -> Sample {
        let scattered = if probe.layout.is_drawn() { SCATTERED } else { 0.0 };
        Sample {
            layout: probe.layout,
            pages: probe.pages,
            height: view.knee.height(cost).clamp(0.0, 1.0),
            slack: view.blur * cost.min(view.knee.before + view.knee.rise) / view.knee.rise + scattered,
            passes: self.survey.all(probe).len() as u32,
        }
    }

    fn sure(&self, view: View, fit: &Fit, free: f64) -> Found {
        let gentle = fit.replacement == Replacement::Any && fit.shape.sets == 1;
        let entries = if gentle { hidden(fit.entries()) } else { fit.entries() };
        let not_told = match fit.ways() {
            None => Some("several associativities explain it"),
            Some(_) if gentle => Some("replacement is gentler than LRU: a few pages too many hardly ever miss"),
            Some(_) => None,
        };
        Found {
            free: Some(free),
            entries: Some(entries),
            ways: fit.ways(),
            index: fit.index(),
            penalty: self.plateau(view, entries.high),
            not_told: not_told.map(str::to_owned),
        }
    }

    fn soft(&self, view: View, entries: Entries) -> Found {
        Found {
            entries: Some(entries),
            penalty: self.plateau(view, entries.high),
            not_told: Some("the knee is soft: replacement is gentler than LRU, or contention holds a part".to_owned()),
            ..Found::default()
        }
    }

    fn unknown(&self, view: View, why: String) -> Found {
        Found {
            penalty: self.plateau(view, view.knee.pages),
            not_told: Some(why),
            ..Found::default()
        }
    }

    /// What a miss adds, at each point where all pages miss and the next knee is far.
    pub(super) fn plateau(&self, view: View, entries: u32) -> Vec<f64> {
        let from = entries + entries / 2;
        let plateau = self.flat(view.sweep, from, from.saturating_mul(2));
        plateau.into_iter().map(|cost| cost - view.knee.before).collect()
    }
}

/// Which points of one layout's curve miss the level before altogether: all of them if nothing is known of it.
fn beyond(before: Option<Shape>, curve: &[(Probe, f64)]) -> Vec<bool> {
    let Some(before) = before else {
        return vec![true; curve.len()];
    };
    let pages = curve.iter().map(|(probe, _)| probe.pages);
    let shares = before.misses(curve[0].0.layout, pages);
    shares.into_iter().map(|share| share >= 1.0).collect()
}
