//! What of a sweep one level is seen by: the costs around its knee, as shares of misses, and those behind it.

use super::{LEAST_BLUR, Search};
use crate::tlb::fit::{Sample, Shape};
use crate::tlb::knee::Knee;
use crate::tlb::probe::{Oracle, Probe, Sweep};

/// Random pages need more page directories and more lines of page-table entries than adjacent ones do, which costs a little by
/// itself, as a share of what a miss adds. One set too full of the few dozen of a first level costs several times that.
const SCATTERED: f64 = 0.02;

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
