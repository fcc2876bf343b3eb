//! One look at one level: which arrays explain the costs around a knee, and what separates the rivals.

use model::tlb::Entries;

use super::belief::Belief;
use super::view::View;
use super::{Found, Judged, Search};
use crate::tlb::fit::{self, Eviction, Fit, Sample, Shape};
use crate::tlb::knee::hidden;
use crate::tlb::plan::{edges, telling};
use crate::tlb::probe::Oracle;

/// Closer looks at a knee, at the fewest in the first round and at the most.
const LOOKS: std::ops::RangeInclusive<u32> = 2..=8;
/// Why a shape that misses explain is not named.
const DISAGREED: &str = "where misses begin and how they spread speak for different arrays; measure again";

impl<O: Oracle> Search<'_, O> {
    /// Fits arrays replaced by LRU, whose misses show most; where they do not explain what was seen, or where other
    /// replacement explains it far better, only the edges count. The shape is given where it is certain.
    pub(super) fn level(&mut self, view: View) -> Judged {
        let judged = |found: Found, shape: Option<Shape>| Judged {
            found,
            knee: view.knee.pages,
            rise: view.knee.rise,
            shape,
        };
        let Some(fit) = self.narrowed(view, Eviction::Lru) else {
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
        if let Some(fit) = self.narrowed(view, Eviction::Any)
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
    fn narrowed(&mut self, view: View, eviction: Eviction) -> Option<Fit> {
        let mut fit = fit::fit(&self.samples(view), eviction, view.range())?;
        let hopeless = |fit: &Fit, samples: &[Sample]| eviction == Eviction::Lru && !fit.misfit(samples).explains();
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

    fn sure(&self, view: View, fit: &Fit, free: f64) -> Found {
        let gentle = fit.eviction == Eviction::Any && fit.shape.sets == 1;
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
}
