//! Finds the levels of a machine's TLB for one page kind: where costs rise, by how much, and which arrays explain it.

use model::tlb::{Entries, Index, Ways};

use super::fit::{self, Fit, Sample, Shape};
use super::knee::{Knee, knee, lower_quartile, median, soft};
use super::plan::{far_probes, near_probes, telling};
use super::probe::{Layout, Oracle, Probe, Sweep};
use super::survey::Survey;

/// How much work to put in.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Passes over all probes.
    pub passes: u32,
    /// Passes over the probes of each closer look at a knee.
    pub refined: u32,
}

impl Effort {
    /// Enough on a quiet machine.
    pub const QUICK: Self = Self {
        passes: 12,
        refined: 24,
    };
    /// Enough beside a busy neighbour.
    pub const FULL: Self = Self {
        passes: 24,
        refined: 48,
    };
}

/// One level.
#[derive(Clone, Debug)]
pub struct Found {
    /// 1 or 2.
    pub level: u8,
    /// How many pages it holds; `None` when it cannot be told.
    pub entries: Option<Entries>,
    /// Associativity, when it can be told.
    pub ways: Option<Ways>,
    /// Index, when it can be told.
    pub index: Option<Index>,
    /// Added core cycles of a miss, one value per point of the plateau behind the knee.
    pub penalty: Vec<f64>,
    /// Why something is missing.
    pub not_told: Option<String>,
}

/// What was found for one page kind.
#[derive(Debug)]
pub struct Discovery {
    /// Core cycles of an access that hits everywhere.
    pub hit: f64,
    /// Levels, first level first.
    pub levels: Vec<Found>,
    /// All that was measured.
    pub survey: Survey,
    /// The user stopped it before it was done.
    pub stopped: bool,
}

/// A shape usually further from what was seen explains nothing.
const MISFIT: f64 = 0.1;
/// A shape that is off at more than this share of the observations is not the shape.
const OFTEN_OFF: f64 = 0.09;
/// The widest range that LRU makes of a knee: with two ways half of all accesses miss at 1.2 times the pages that fit.
const SOFT: f64 = 1.4;
/// Closer looks at a knee, at the fewest and at the most.
const LOOKS: std::ops::RangeInclusive<u32> = 2..=6;
/// Fewer of the passes than that fit just below the edge, and a neighbour may have been there all the time: what the fewest
/// passes saw is then no edge but luck.
const SELDOM: f64 = 0.3;
/// The same where the shape does not explain all that was seen.
const SELDOM_AND_OFF: f64 = 0.45;

/// Looks for the levels.
pub fn discover(oracle: &mut dyn Oracle, effort: Effort, stop: &dyn Fn() -> bool) -> Discovery {
    let mut search = Search {
        oracle,
        effort,
        stop,
        survey: Survey::default(),
        stopped: false,
    };
    let (hit, levels) = search.levels();
    Discovery {
        hit,
        levels,
        stopped: search.stopped,
        survey: search.survey,
    }
}

struct Search<'a> {
    oracle: &'a mut dyn Oracle,
    effort: Effort,
    stop: &'a dyn Fn() -> bool,
    survey: Survey,
    stopped: bool,
}

/// The part of a sweep that one level is fitted to.
#[derive(Clone, Copy)]
struct View {
    sweep: Sweep,
    knee: Knee,
    /// Fewest pages that are looked at.
    start: u32,
    /// The level before, where it is known: pages that it holds say nothing of this one.
    before: Option<Shape>,
    /// How far costs may be off, as a share.
    blur: f64,
}

impl Search<'_> {
    fn levels(&mut self) -> (f64, Vec<Found>) {
        let near = self.oracle.limits(Sweep::Near);
        self.ask(&near_probes(near), self.effort.passes);
        let hit = self.before(Sweep::Near, 1, 8);
        let mut levels = Vec::new();
        let knee = self
            .knee(Sweep::Near, hit)
            .filter(|knee| knee.pages <= near.pages * 5 / 8);
        let mut before = None;
        let mut start = 8;
        if let Some(knee) = knee {
            let (found, shape) = self.level(self.view(Sweep::Near, knee, 1, None), 1);
            start = 2 * found.entries.map_or(knee.pages, |entries| entries.high);
            before = shape;
            levels.push(found);
        }
        let far = self.oracle.limits(Sweep::Far);
        self.ask(&far_probes(far, start), self.effort.passes);
        let flat = self.before(Sweep::Far, start, start.saturating_mul(3) / 2);
        if let Some(knee) = self.knee(Sweep::Far, flat) {
            let number = levels.len() as u8 + 1;
            let (found, _) = self.level(self.view(Sweep::Far, knee, start, before), number);
            levels.push(found);
        }
        (hit, levels)
    }

    fn ask(&mut self, probes: &[Probe], passes: u32) {
        if !self.stopped {
            self.stopped = !self.survey.run(self.oracle, probes, passes, self.stop);
        }
    }

    /// The cost before any knee: the lower quartile over a few points, where disturbance shows least.
    fn before(&self, sweep: Sweep, from: u32, to: u32) -> f64 {
        lower_quartile(self.flat(sweep, from, to)).unwrap_or(0.0)
    }

    fn flat(&self, sweep: Sweep, from: u32, to: u32) -> Vec<f64> {
        let curve = self.survey.curve(sweep, Layout::DENSE);
        let flat = curve.iter().filter(|(pages, _)| (from..=to).contains(pages));
        flat.map(|&(_, cost)| cost).collect()
    }

    fn knee(&self, sweep: Sweep, before: f64) -> Option<Knee> {
        knee(&self.survey.curve(sweep, Layout::DENSE), before)
    }

    fn view(&self, sweep: Sweep, knee: Knee, start: u32, before: Option<Shape>) -> View {
        const LEAST: f64 = 0.01;
        let off = |from: u32, to: u32| {
            let flat = self.flat(sweep, from.max(start), to);
            median(flat.into_iter().map(|cost| (cost / knee.before - 1.0).abs()).collect())
        };
        // Just before the knee a neighbour shows who takes an entry now and then in all passes.
        let blur = off(start, knee.pages * 2 / 3).max(off(knee.pages * 4 / 5, knee.pages - 1));
        View {
            sweep,
            knee,
            start,
            before,
            blur: LEAST.max(2.0 * blur),
        }
    }

    /// Fits, and asks what tells the rivals apart until one is left. The shape is returned where it is certain.
    fn level(&mut self, view: View, level: u8) -> (Found, Option<Shape>) {
        let range = (view.knee.pages / 2, view.knee.pages * 2);
        let Some(mut fit) = fit::fit(&self.samples(view), range) else {
            return (
                self.unknown(view, level, "no point of the curve tells anything".to_owned()),
                None,
            );
        };
        for look in 1..=*LOOKS.end() {
            if self.stopped || fit.is_decided() && look > *LOOKS.start() {
                break;
            }
            let probes = telling(view.sweep, &fit, self.oracle.limits(view.sweep), view.start);
            self.ask(&probes, self.effort.refined / 2);
            match fit::again(&self.samples(view), &fit, range) {
                Some(closer) => fit = closer,
                None => break,
            }
        }
        match self.verdict(view, &fit) {
            Belief::Sure => (self.found(view, level, &fit), Some(fit.shape)),
            Belief::Soft(entries) => (self.soft(view, level, entries), None),
            Belief::None(why) => (self.unknown(view, level, why), None),
        }
    }

    /// What the least disturbed passes saw, as shares of misses.
    fn samples(&self, view: View) -> Vec<Sample> {
        let points: Vec<(Probe, f64)> = self.survey.points(view.sweep).collect();
        points
            .chunk_by(|a, b| a.0.layout == b.0.layout)
            .flat_map(|curve| {
                let beyond = beyond(view.before, curve);
                let beyond = curve.iter().zip(beyond).filter(|(_, beyond)| *beyond);
                beyond.map(|(&(probe, cost), _)| self.sample(view, probe, cost))
            })
            .collect()
    }

    fn sample(&self, view: View, probe: Probe, cost: f64) -> Sample {
        Sample {
            layout: probe.layout,
            pages: probe.pages,
            height: view.knee.height(cost).clamp(0.0, 1.0),
            slack: view.blur * cost.min(view.knee.before + view.knee.rise) / view.knee.rise,
            passes: self.survey.all(probe).len() as u32,
        }
    }

    fn verdict(&self, view: View, fit: &Fit) -> Belief {
        if self.stopped {
            return Belief::None("stopped before it was done".to_owned());
        }
        let misfit = fit.misfit(&self.samples(view));
        let explained = misfit.off <= OFTEN_OFF && misfit.usual <= MISFIT && !self.is_soft(view);
        if misfit.refuting == 0 && !explained {
            return self.gentle(view);
        }
        let entries = fit.entries();
        let share = self.fitting(view, fit.shape);
        let needed = if misfit.off > 0.0 { SELDOM_AND_OFF } else { SELDOM };
        if misfit.refuting > 0 || share < needed || self.contradicted(view, fit) {
            return Belief::None(format!(
                "a neighbour was busy most of the time ({:.0} % of the passes fit {entries} entries): there may be more; measure again",
                100.0 * share
            ));
        }
        if spread(entries) > 0.25 {
            return Belief::None(format!(
                "anything from {} to {} entries explains the costs nearly as well; measure again on a quieter machine",
                entries.low, entries.high
            ));
        }
        Belief::Sure
    }

    /// Replacement that is far from LRU, or a neighbour who always holds a part: a range, if passes agree on the curve.
    fn gentle(&self, view: View) -> Belief {
        let curve = self.survey.curve(view.sweep, Layout::DENSE);
        let apart = self.disagreement(view);
        match soft(&curve, view.knee) {
            Some(entries) if apart < 0.25 && spread(entries) < 0.6 => Belief::Soft(entries),
            _ => Belief::None(format!(
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
        let share = |rival: &Shape| rival.misses(Layout::DENSE, std::iter::once(pages))[0];
        fit.rivals.iter().all(|rival| share(rival) > 0.9)
    }

    /// The usual range of the middle half of the passes around the knee, as a share of the rise.
    fn disagreement(&self, view: View) -> f64 {
        let around = view.knee.pages / 2..view.knee.pages * 2;
        let points = self.survey.points(view.sweep);
        let dense = points.filter(|(probe, _)| probe.layout == Layout::DENSE && around.contains(&probe.pages));
        let apart = dense.filter_map(|(probe, _)| {
            let mut costs = self.survey.all(probe).to_vec();
            costs.sort_unstable_by(f64::total_cmp);
            let (low, high) = (costs.get(costs.len() / 4)?, costs.get(costs.len() * 3 / 4)?);
            Some((high - low) / view.knee.rise)
        });
        median(apart.collect())
    }

    /// Share of the passes in which what should just fit does so rather than behave as what is too much; in layouts that use
    /// most of the entries, where a neighbour shows most.
    fn fitting(&self, view: View, shape: Shape) -> f64 {
        let limits = self.oracle.limits(view.sweep);
        let (mut fit, mut all) = (0, 0);
        for (probe, _) in self.survey.points(view.sweep) {
            let edge = shape.capacity(probe.layout, limits.pages);
            let just_fits = (edge - edge / 32).max(view.start)..=edge;
            if 2 * edge < shape.entries() || !just_fits.contains(&probe.pages) {
                continue;
            }
            let beyond = shape.misses(probe.layout, std::iter::once(edge + 1 + edge / 16));
            let costs = self.survey.all(probe);
            all += costs.len();
            fit += costs
                .iter()
                .filter(|&&cost| view.knee.height(cost) < beyond[0] / 2.0)
                .count();
        }
        fit as f64 / all.max(1) as f64
    }

    fn found(&self, view: View, level: u8, fit: &Fit) -> Found {
        let entries = fit.entries();
        Found {
            level,
            entries: Some(entries),
            ways: fit.ways(),
            index: fit.index(),
            penalty: self.plateau(view, entries.value),
            not_told: fit
                .ways()
                .is_none()
                .then(|| "several associativities explain it".to_owned()),
        }
    }

    fn soft(&self, view: View, level: u8, entries: Entries) -> Found {
        Found {
            level,
            entries: Some(entries),
            ways: None,
            index: None,
            penalty: self.plateau(view, entries.value),
            not_told: Some("the knee is soft: replacement is gentler than LRU, or a neighbour holds a part".to_owned()),
        }
    }

    fn unknown(&self, view: View, level: u8, why: String) -> Found {
        Found {
            level,
            entries: None,
            ways: None,
            index: None,
            penalty: self.plateau(view, view.knee.pages),
            not_told: Some(why),
        }
    }

    /// What a miss adds, at each point where all pages miss and the next knee is far.
    fn plateau(&self, view: View, entries: u32) -> Vec<f64> {
        let from = entries + entries / 2;
        let plateau = self.flat(view.sweep, from, from.saturating_mul(2));
        plateau.into_iter().map(|cost| cost - view.knee.before).collect()
    }
}

/// What may be said of a level.
enum Belief {
    Sure,
    Soft(Entries),
    None(String),
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

fn spread(entries: Entries) -> f64 {
    f64::from(entries.high - entries.low) / f64::from(entries.value)
}

#[cfg(test)]
#[path = "discover_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
