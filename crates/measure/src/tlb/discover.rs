//! Finds the levels of a machine's TLB for one page kind: where costs rise, by how much, and which arrays explain it.

use std::time::Instant;

use model::tlb::{Entries, Index, Ways};

use super::fit::Shape;
use super::knee::{Knee, knee, lower_quartile};
use super::plan::{far_dense, far_strided, near_probes};
use super::probe::{Layout, Oracle, Probe, Sweep};
use super::survey::Survey;

mod belief;
mod level;
mod view;

/// How much work to put in.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Passes over all probes in the first round.
    pub passes: u32,
    /// Passes over the probes of each closer look at a knee: these are few, and what they show decides.
    pub refined: u32,
}

impl Effort {
    /// A few seconds.
    pub const QUICK: Self = Self { passes: 8, refined: 90 };
    /// Ten seconds: long enough for contention to pause.
    pub const FULL: Self = Self {
        passes: 14,
        refined: 130,
    };
}

#[derive(Clone, Debug, Default)]
pub struct Found {
    /// How many pages it holds; `None` when unknown.
    pub entries: Option<Entries>,
    /// Associativity, if known.
    pub ways: Option<Ways>,
    pub index: Option<Index>,
    /// Added core cycles of a miss, one value per point of the plateau behind the knee.
    pub penalty: Vec<f64>,
    /// In which share of the passes all entries were free, where known: the less, the more contention there was.
    pub free: Option<f64>,
    /// Why something is missing.
    pub not_told: Option<String>,
}

/// Costs are off by this share however quiet it is.
const LEAST_BLUR: f64 = 0.01;
/// What part of the first round's passes over all probes later rounds make over those that are open.
const LATER: u32 = 5;

/// A search that can be taken up again: what is asked later adds to what was seen before, since contention comes in bursts.
pub struct Search<'a, O> {
    pub oracle: O,
    effort: Effort,
    stop: &'a dyn Fn() -> bool,
    /// The next rounds end at that time, whatever is known by then.
    pub until: Option<Instant>,
    pub survey: Survey,
    stopped: bool,
    /// Nothing was finished yet where the level is looked for now.
    first: bool,
    near: Place,
    far: Place,
}

/// Where one level is looked for.
#[derive(Default)]
struct Place {
    /// A round was finished here.
    looked: bool,
    level: Option<Judged>,
}

/// A level, and the array behind it where that is certain.
struct Judged {
    found: Found,
    /// Pages from which on costs rise, and by how many cycles.
    knee: u32,
    rise: f64,
    shape: Option<Shape>,
}

impl Place {
    /// May another round show more?
    fn is_open(&self) -> bool {
        !self.looked || self.level.as_ref().is_some_and(|level| !level.found.is_told())
    }

    /// Keeps what a round saw; if it was cut short, only where nothing was seen before.
    fn keep(&mut self, seen: Option<Judged>, whole: bool) {
        if whole || self.level.is_none() {
            self.level = seen;
        }
        self.looked |= whole;
    }
}

impl Found {
    /// One number and the array that it belongs to.
    fn is_told(&self) -> bool {
        self.ways.is_some() && self.entries.is_some_and(Entries::is_exact)
    }
}

impl<'a, O: Oracle> Search<'a, O> {
    /// Nothing is asked yet.
    pub fn new(oracle: O, effort: Effort, stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            oracle,
            effort,
            stop,
            until: None,
            survey: Survey::default(),
            stopped: false,
            first: true,
            near: Place::default(),
            far: Place::default(),
        }
    }

    /// Is there a level that another round may show?
    pub fn is_open(&self) -> bool {
        !(self.stop)() && (self.near.is_open() || self.far.is_open())
    }

    /// A round: looks at each level that is open.
    pub fn look(&mut self) {
        self.stopped = false;
        if self.near.is_open() {
            self.first = !self.near.looked;
            let seen = self.near();
            self.near.keep(seen, !self.stopped);
        }
        if self.far.is_open() {
            self.first = !self.far.looked;
            let seen = self.far();
            self.far.keep(seen, !self.stopped);
        }
    }

    /// The levels so far, first level first. Behind a first level of unknown extent a knee may be its own misses spreading on: a
    /// second level is named there only if it has entries of its own to show.
    pub fn levels(&self) -> impl Iterator<Item = &Found> {
        let found = |place: &Place| place.level.as_ref().is_some_and(|level| level.found.entries.is_some());
        let first_is_open = self.near.level.is_some() && !found(&self.near);
        let far = (!first_is_open || found(&self.far)).then_some(&self.far);
        [Some(&self.near), far]
            .into_iter()
            .flatten()
            .filter_map(|place| place.level.as_ref())
            .map(|level| &level.found)
    }

    /// The cost of an access that hits everywhere.
    fn hit(&self) -> f64 {
        self.before(Sweep::Near, 1, 8)
    }

    fn near(&mut self) -> Option<Judged> {
        let limits = self.oracle.limits(Sweep::Near);
        self.sweep(&near_probes(limits), Self::hit);
        let knee = self.knee(Sweep::Near, self.hit())?;
        (knee.pages <= limits.pages * 5 / 8).then(|| self.level(self.view(Sweep::Near, knee, 1, None)))
    }

    fn far(&mut self) -> Option<Judged> {
        let (start, before) = self.near.level.as_ref().map_or((8, None), |near| {
            let most = near.found.entries.map_or(near.knee, |entries| entries.high);
            (2 * most, near.shape)
        });
        let limits = self.oracle.limits(Sweep::Far);
        let flat = |search: &Self| search.before(Sweep::Far, start, start.saturating_mul(3) / 2);
        self.sweep(&far_dense(limits, start), flat);
        let knee = self.knee(Sweep::Far, flat(self)).filter(|knee| self.is_another(knee))?;
        // Hashed pages fill an array at any stride, others sooner.
        self.sweep(&far_strided(limits, start, knee.pages.saturating_mul(4) / 3), flat);
        Some(self.level(self.view(Sweep::Far, knee, start, before)))
    }

    /// Does the knee behind the first one belong to another level? Where entries are replaced gently, misses of the first go
    /// on spreading far beyond it; and a walk is never cheaper than finding an entry in a second level.
    fn is_another(&self, knee: &Knee) -> bool {
        let first = self.near.level.as_ref().map_or(0.0, |near| near.rise);
        knee.rise > first / 2.0
    }

    /// Asks all probes in some passes, unless that was done before, and in others those that do not clearly fit yet.
    fn sweep(&mut self, probes: &[Probe], flat: impl Fn(&Self) -> f64) {
        let passes = self.effort.passes;
        let first = passes.div_ceil(3);
        let (enough, survey) = (first / 2, &self.survey);
        let few = |probe: &&Probe| survey.all(**probe).len() <= enough as usize;
        let new: Vec<Probe> = probes.iter().filter(few).copied().collect();
        self.ask(&new, first);
        let fits = (1.0 + LEAST_BLUR) * flat(self);
        let open = |probe: &&Probe| self.survey.all(**probe).iter().filter(|&&cost| cost < fits).count() < 2;
        let open: Vec<Probe> = probes.iter().filter(open).copied().collect();
        let more = if self.first {
            passes - first
        } else {
            passes.div_ceil(LATER)
        };
        self.ask(&open, more);
    }

    fn ask(&mut self, probes: &[Probe], passes: u32) {
        if !self.stopped {
            let (stop, until) = (self.stop, self.until);
            let over = || stop() || until.is_some_and(|end| Instant::now() >= end);
            self.stopped = !self.survey.run(&mut self.oracle, probes, passes, &over);
        }
    }

    /// The cost before any knee: the lower quartile over a few points, where disturbance shows least.
    fn before(&self, sweep: Sweep, from: u32, to: u32) -> f64 {
        lower_quartile(&self.flat(sweep, from, to)).unwrap_or(0.0)
    }

    fn flat(&self, sweep: Sweep, from: u32, to: u32) -> Vec<f64> {
        let curve = self.survey.curve(sweep, Layout::DENSE);
        let flat = curve.iter().filter(|(pages, _)| (from..=to).contains(pages));
        flat.map(|&(_, cost)| cost).collect()
    }

    fn knee(&self, sweep: Sweep, before: f64) -> Option<Knee> {
        knee(&self.survey.curve(sweep, Layout::DENSE), before)
    }
}

#[cfg(test)]
#[path = "discover_properties_tests.rs"]
mod properties;
#[cfg(test)]
#[path = "discover_replacement_tests.rs"]
mod replacement;
#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
