//! Finds the levels of a machine's TLB for one page kind: where costs rise, by how much, and which arrays explain it.

use model::tlb::{Entries, Index, Ways};

use super::fit::{self, Fit, Replacement, Sample, Shape};
use super::knee::{Knee, knee, lower_quartile, median};
use super::plan::{edges, far_dense, far_strided, near_probes, telling};
use super::probe::{Layout, Oracle, Probe, Sweep};
use super::survey::Survey;

mod belief;

use belief::Belief;

/// How much work to put in.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Passes over all probes.
    pub passes: u32,
    /// Passes over the probes of each closer look at a knee: these are few, and what they show decides.
    pub refined: u32,
}

impl Effort {
    /// A few seconds.
    pub const QUICK: Self = Self {
        passes: 10,
        refined: 110,
    };
    /// Ten seconds: long enough for a neighbour to pause.
    pub const FULL: Self = Self {
        passes: 20,
        refined: 160,
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

/// Costs are off by this share however quiet it is.
const LEAST_BLUR: f64 = 0.01;
/// Closer looks at a knee, at the fewest and at the most.
const LOOKS: std::ops::RangeInclusive<u32> = 2..=8;
/// Why a shape that misses explain is not told.
const DISAGREED: &str = "where misses begin and how they spread speak for different arrays; measure again";

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
    /// The same far from the knee.
    flat: f64,
}

impl View {
    /// The entries that are looked for.
    fn range(&self) -> (u32, u32) {
        (self.knee.pages / 2, self.knee.pages * 2)
    }
}

impl Search<'_> {
    fn levels(&mut self) -> (f64, Vec<Found>) {
        let near = self.oracle.limits(Sweep::Near);
        self.sweep(&near_probes(near), |search| search.before(Sweep::Near, 1, 8));
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
        let flat = |search: &Self| search.before(Sweep::Far, start, start.saturating_mul(3) / 2);
        self.sweep(&far_dense(far, start), flat);
        if let Some(knee) = self.knee(Sweep::Far, flat(self)) {
            // Hashed pages fill an array at any stride, others sooner.
            self.sweep(&far_strided(far, start, knee.pages.saturating_mul(4) / 3), flat);
            let number = levels.len() as u8 + 1;
            let (found, _) = self.level(self.view(Sweep::Far, knee, start, before), number);
            levels.push(found);
        }
        (hit, levels)
    }

    /// Asks all probes in some passes, and in the others those that do not clearly fit yet.
    fn sweep(&mut self, probes: &[Probe], flat: impl Fn(&Self) -> f64) {
        let first = self.effort.passes.div_ceil(3);
        self.ask(probes, first);
        let fits = (1.0 + LEAST_BLUR) * flat(self);
        let open = |probe: &&Probe| self.survey.all(**probe).iter().filter(|&&cost| cost < fits).count() < 2;
        let open: Vec<Probe> = probes.iter().filter(open).copied().collect();
        self.ask(&open, self.effort.passes - first);
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
        let off = |from: u32, to: u32| {
            let flat = self.flat(sweep, from.max(start), to);
            median(flat.into_iter().map(|cost| (cost / knee.before - 1.0).abs()).collect())
        };
        let flat = LEAST_BLUR.max(2.0 * off(start, knee.pages * 2 / 3));
        View {
            sweep,
            knee,
            start,
            before,
            flat,
            // Just before the knee a neighbour shows who takes an entry now and then in all passes.
            blur: flat.max(2.0 * off(knee.pages * 4 / 5, knee.pages - 1)),
        }
    }

    /// Fits arrays replaced by LRU, whose misses tell most; where they do not explain what was seen, or where other
    /// replacement explains it far better, only the edges count. The shape is returned where it is certain.
    fn level(&mut self, view: View, level: u8) -> (Found, Option<Shape>) {
        let Some(fit) = self.narrowed(view, Replacement::Lru) else {
            let why = "no point of the curve tells anything".to_owned();
            return (self.unknown(view, level, why), None);
        };
        let belief = self.verdict(view, &fit);
        match belief {
            Belief::Sure if self.edge_was_seen(view, &fit) => return (self.found(view, level, &fit), Some(fit.shape)),
            Belief::Unknown(why) => return (self.unknown(view, level, why), None),
            _ => {}
        }
        // A knee that is gentle says nothing of how far costs are off.
        let view = View {
            blur: view.flat,
            ..view
        };
        if let Some(fit) = self.narrowed(view, Replacement::Any)
            && matches!(self.verdict(view, &fit), Belief::Sure)
        {
            return (self.found(view, level, &fit), Some(fit.shape));
        }
        match belief {
            Belief::Soft(entries) => (self.soft(view, level, entries), None),
            Belief::Unexplained(why) => (self.unknown(view, level, why), None),
            _ => (self.unknown(view, level, DISAGREED.to_owned()), None),
        }
    }

    /// Fits, and asks what tells the rivals apart until one is left.
    fn narrowed(&mut self, view: View, replacement: Replacement) -> Option<Fit> {
        let mut fit = fit::fit(&self.samples(view), replacement, view.range())?;
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
            let hopeless = replacement == Replacement::Lru && !fit.misfit(&samples).explains();
            if self.stopped || look >= *LOOKS.start() && (stays || hopeless) {
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

/// Which points of one layout's curve miss the level before altogether: all of them if nothing is known of it.
fn beyond(before: Option<Shape>, curve: &[(Probe, f64)]) -> Vec<bool> {
    let Some(before) = before else {
        return vec![true; curve.len()];
    };
    let pages = curve.iter().map(|(probe, _)| probe.pages);
    let shares = before.misses(curve[0].0.layout, pages);
    shares.into_iter().map(|share| share >= 1.0).collect()
}

#[cfg(test)]
#[path = "discover_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
