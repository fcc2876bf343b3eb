//! What may be said of a level after fitting: is the fit an explanation, and could there have been contention all the time?

use std::iter::once;

use model::tlb::Entries;

use super::Search;
use super::view::View;
use crate::tlb::fit::{Eviction, Fit, Shape};
use crate::tlb::knee::soft;
use crate::tlb::plan::{SHARE, beyond, drawn_edges, draws, short_of};
use crate::tlb::probe::{Layout, Oracle, Probe};

/// The widest range that LRU makes of a knee: with two ways half of all accesses miss at 1.2 times the pages that fit.
const SOFT: f64 = 1.4;
/// Fewer of the passes than that fit just below the edge, and there may have been contention all the time: what the fewest
/// passes saw is then no edge but luck.
const LEAST_FREE: f64 = 0.3;
/// The same where the shape does not explain all that was seen.
const LEAST_FREE_IF_OFF: f64 = 0.45;
/// If more pages than there are entries fit in this share of the passes, there are more entries.
const NOW_AND_THEN: f64 = 0.03;
/// So many probes that fit in one pass although they are too many prove that there are more entries.
const TOGETHER: usize = 2;
/// What is too much shows that only where at least this share must miss.
const TELLING: f64 = 0.2;
/// Costs that are off by more than this share hide the few misses of an array that just overflows.
const CLEAR: f64 = 0.025;

/// Behind a knee a miss costs the same for a while: more by more than this factor, and more and more pages miss there.
const UNEVEN: f64 = 1.5;

/// What may be said of a level.
pub(super) enum Belief {
    /// The fit is the answer; all its entries were free in this share of the passes.
    Sure(f64),
    /// Only where costs begin to rise, and where half of all accesses miss, is known.
    Soft(Entries),
    /// The fit explains too little of what was seen, and why no more is known.
    Unexplained(String),
    /// Contention lasted all the time, or another reason that no other fit removes hides the level.
    Unknown(String),
}

impl<O: Oracle> Search<'_, O> {
    pub(super) fn verdict(&self, view: View, fit: &Fit) -> Belief {
        if self.stopped {
            return Belief::Unknown("there was no time to be sure; measure again on a quieter machine".to_owned());
        }
        let lru = fit.eviction == Eviction::Lru;
        let misfit = fit.misfit(&self.samples(view));
        if misfit.refuting == 0 && (!misfit.explains() || lru && self.is_soft(view)) {
            return self.gentle(view);
        }
        let entries = fit.entries();
        let rims = self.rims(view, fit);
        let fitting = self.fitting(&rims);
        let needed = if misfit.off > 0.0 {
            LEAST_FREE_IF_OFF
        } else {
            LEAST_FREE
        };
        let pauses = view.blur <= CLEAR && fitting.has_pauses();
        let alone = match fit.eviction {
            Eviction::Lru => (fitting.edge >= needed || pauses) && !self.contradicted(view, fit),
            Eviction::Any => fitting.edge >= LEAST_FREE && pauses,
        } && fitting.more < NOW_AND_THEN
            && !self.more_fit_once(&rims);
        if misfit.refuting > 0 || !alone {
            return Belief::Unknown(format!(
                "there was contention most of the time ({:.0} % of the passes fit {entries} entries): there may be more; measure again",
                100.0 * fitting.edge
            ));
        }
        if spread(entries) > 0.25 {
            return Belief::Unknown(format!(
                "anything from {} to {} entries explains the costs nearly as well; measure again on a quieter machine",
                entries.low, entries.high
            ));
        }
        if self.is_uneven(view, entries) {
            return uneven();
        }
        if !self.survives_draws(view, fit) {
            let why = "random pages do not behave as any array does that explains the others; contention or an unknown hash may be why";
            return Belief::Unexplained(why.to_owned());
        }
        Belief::Sure(fitting.edge)
    }

    /// Do random pages behave as this shape says, wherever they could have refuted it? As many as fit by it must have fitted,
    /// and where a good part must miss, a part must have missed. A hash that is none of those a fit knows fails here, and so
    /// does a single set that is taken for several.
    fn survives_draws(&self, view: View, fit: &Fit) -> bool {
        let limits = self.oracle.limits(view.sweep);
        let expected = |probe: Probe| fit.shape.shares(fit.eviction, probe.layout, once(probe.pages))[0].least;
        let asked = draws(view.sweep, limits).flat_map(|layout| drawn_edges(view.sweep, fit.shape, layout, limits));
        asked.filter(|probe| probe.pages >= view.start).all(|probe| {
            let Some(floor) = self.survey.floor(probe) else {
                return false;
            };
            let sample = self.sample(view, probe, floor);
            match expected(probe) {
                0.0 => sample.fits(),
                missing => sample.height > missing / 2.0,
            }
        })
    }

    /// Do costs go on rising where all pages should miss already? What was taken for the cost of a miss is none then.
    fn is_uneven(&self, view: View, entries: Entries) -> bool {
        let plateau = stats::sorted(&self.plateau(view, entries.high));
        let quartiles = stats::quantile(&plateau, 0.25).zip(stats::quantile(&plateau, 0.75));
        quartiles.is_some_and(|(low, high)| high > UNEVEN * low)
    }

    /// Replacement that is far from LRU, or contention that always holds a part: a range, if passes agree on the curve.
    fn gentle(&self, view: View) -> Belief {
        let curve = self.survey.curve(view.sweep, Layout::DENSE);
        let apart = self.disagreement(view);
        match soft(&curve, view.knee) {
            Some(entries) if self.is_uneven(view, entries) => uneven(),
            Some(entries) if apart < 0.25 && spread(entries) < 0.6 => Belief::Soft(entries),
            _ => Belief::Unexplained(format!(
                "no geometry explains the costs (passes differ by {:.0} % of the rise); measure again on a quieter machine",
                100.0 * apart
            )),
        }
    }

    /// Do misses take longer to spread than in any array replaced by LRU?
    fn is_soft(&self, view: View) -> bool {
        let curve = self.survey.curve(view.sweep, Layout::DENSE);
        soft(&curve, view.knee).is_some_and(|entries| f64::from(entries.high) > SOFT * f64::from(entries.low))
    }

    /// Do fewer than half of all accesses miss where, by every rival, nearly all must?
    fn contradicted(&self, view: View, fit: &Fit) -> bool {
        let curve = self.survey.curve(view.sweep, Layout::DENSE);
        let below = |&&(_, cost): &&(u32, f64)| view.knee.height(cost) < 0.5;
        let Some(&(pages, _)) = curve.iter().rev().find(below) else {
            return false;
        };
        let share = |rival: &Shape| rival.misses(Layout::DENSE, once(pages))[0];
        fit.rivals.iter().all(|rival| share(rival) > 0.9)
    }

    /// The usual range of the middle half of the passes around the knee, as a share of the rise.
    fn disagreement(&self, view: View) -> f64 {
        let around = view.knee.pages / 2..view.knee.pages * 2;
        let points = self.survey.points(view.sweep);
        let dense = points.filter(|(probe, _)| probe.layout == Layout::DENSE && around.contains(&probe.pages));
        let apart = dense.filter_map(|(probe, _)| {
            let costs = self.survey.all(probe);
            Some((stats::quantile(costs, 0.75)? - stats::quantile(costs, 0.25)?) / view.knee.rise)
        });
        stats::median(&apart.collect::<Vec<f64>>()).unwrap_or(0.0)
    }

    /// Where contention shows most: around the edge, in layouts that use most of the entries.
    fn rims(&self, view: View, fit: &Fit) -> Vec<Rim> {
        let limits = self.oracle.limits(view.sweep);
        let rim = |(probe, _): (Probe, f64)| {
            let edge = fit.shape.capacity(probe.layout, limits.pages);
            if probe.pages < view.start || SHARE * edge < fit.shape.entries() {
                return None;
            }
            let missing = |pages: u32| fit.shape.shares(fit.eviction, probe.layout, once(pages))[0].least;
            let near = |pages: u32| (pages - edge / 32..=pages).contains(&probe.pages);
            let of_three = [short_of(edge), edge, beyond(edge)].into_iter().position(near);
            let more = edge < probe.pages && probe.pages < beyond(edge) && missing(probe.pages) > TELLING;
            let (side, missing) = match of_three {
                Some(side) => (side, missing(beyond(edge))),
                None if more => (3, missing(probe.pages)),
                None => return None,
            };
            let fits = view.knee.before + view.knee.rise * missing / 2.0;
            Some(Rim {
                probe,
                side,
                missing,
                fits,
            })
        };
        self.survey.points(view.sweep).filter_map(rim).collect()
    }

    /// Was there a pass in which more fit than by this shape can? A clock errs once; contention that pauses pauses for all probes.
    fn more_fit_once(&self, rims: &[Rim]) -> bool {
        let too_many = rims.iter().filter(|rim| rim.side >= 2 && rim.missing > TELLING);
        let fitting = too_many.flat_map(|rim| {
            let costs = self.survey.by_pass(rim.probe).iter();
            costs.filter(|(_, cost)| *cost < rim.fits).map(|&(pass, _)| pass)
        });
        let mut passes: Vec<u32> = fitting.collect();
        passes.sort_unstable();
        passes.windows(TOGETHER).any(|same| same[0] == same[TOGETHER - 1])
    }

    /// In how many of the passes pages fit rather than behave as what is too much.
    fn fitting(&self, rims: &[Rim]) -> Fitting {
        let mut counts = [(0, 0); 4];
        for rim in rims {
            let costs = self.survey.all(rim.probe);
            counts[rim.side].0 += costs.iter().filter(|&&cost| cost < rim.fits).count();
            counts[rim.side].1 += costs.len();
        }
        let [short, edge, beyond, more] = counts.map(|(fitted, all)| fitted as f64 / all.max(1) as f64);
        Fitting {
            short,
            edge,
            beyond,
            more,
        }
    }
}

/// A probe around the edge.
struct Rim {
    probe: Probe,
    /// 0: a few pages less than fit; 1: as many; 2: some more; 3: fewer more than that.
    side: usize,
    /// Share of accesses that miss there, or on this side of it.
    missing: f64,
    /// Costs below that are those of pages that fit.
    fits: f64,
}

/// Shares of the passes in which pages fit.
#[derive(Clone, Copy, Debug)]
struct Fitting {
    /// A few less than there are entries.
    short: f64,
    edge: f64,
    /// A few more.
    beyond: f64,
    /// Fewer more, of which many must miss.
    more: f64,
}

impl Fitting {
    /// Does contention that comes and goes explain it? When it pauses all entries are free at once; contention that lasts
    /// leaves now more and now less, so that a few less pages fit far more often.
    fn has_pauses(self) -> bool {
        const FEWEST: f64 = 0.1;
        let away = self.edge - self.beyond;
        away >= FEWEST && away >= 2.0 * (self.short - self.edge)
    }
}

fn uneven() -> Belief {
    let why = "what a miss adds goes on rising behind the knee: contention may hold a part of some sets; measure again";
    Belief::Unknown(why.to_owned())
}

fn spread(entries: Entries) -> f64 {
    2.0 * f64::from(entries.high - entries.low) / f64::from(entries.high + entries.low)
}
