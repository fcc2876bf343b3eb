//! Finds the levels of a machine's TLB for one page kind: where costs rise, by how much, and which arrays explain it.

use model::tlb::{Entries, Index, Ways};

use super::fit::{self, Fit, Sample};
use super::occupancy::{Occupancy, Policy};
use super::plan::{closer, far_probes, near_probes};
use super::probe::{Layout, Oracle, Probe, Sweep};
use super::survey::{self, Part, Survey};

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
    /// The replacement policy that explains best; a hint, not a finding.
    pub policy: Policy,
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

/// A shape whose distance from what was seen is more than this on average explains nothing.
const MISFIT: f64 = 0.13;
/// A curve whose neighbouring points usually differ by more than this share of its rise is noise.
const ROUGH: f64 = 0.12;
/// A knee that takes longer than this factor from its begin to its half is soft.
const SOFT: f64 = 1.18;
/// Beside a busy neighbour, a range wider than this share of its value may miss the truth altogether.
const UNSETTLED: f64 = 0.04;
/// Closer looks at a knee; each narrows the range some eightfold.
const LOOKS: usize = 3;

/// Looks for the levels.
pub fn discover(oracle: &mut dyn Oracle, effort: Effort, stop: &dyn Fn() -> bool) -> Discovery {
    let mut search = Search {
        oracle,
        effort,
        stop,
        survey: Survey::default(),
        occupancy: Occupancy::default(),
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

/// A knee in the cost of neighbouring pages, and what lies before and behind it.
#[derive(Clone, Copy, Debug)]
struct Knee {
    before: f64,
    rise: f64,
    pages: u32,
}

struct Search<'a> {
    oracle: &'a mut dyn Oracle,
    effort: Effort,
    stop: &'a dyn Fn() -> bool,
    survey: Survey,
    occupancy: Occupancy,
    stopped: bool,
}

impl Search<'_> {
    fn levels(&mut self) -> (f64, Vec<Found>) {
        let near = self.oracle.limits(Sweep::Near);
        self.ask(&near_probes(near), self.effort.passes);
        let hit = self.before(Sweep::Near, 1, 8);
        let mut levels = Vec::new();
        let first = self.level(Sweep::Near, hit, 1);
        let start = first.as_ref().map_or(8, |(knee, found)| beyond(*knee, found));
        levels.extend(first.map(|(_, found)| found));
        let far = self.oracle.limits(Sweep::Far);
        self.ask(&far_probes(far, start), self.effort.passes);
        let before = self.before(Sweep::Far, start, start.saturating_mul(2).max(32));
        let number = levels.len() as u8 + 1;
        levels.extend(self.level(Sweep::Far, before, number).map(|(_, found)| found));
        (hit, levels)
    }

    fn ask(&mut self, probes: &[Probe], passes: u32) {
        if !self.stopped {
            self.stopped = !self.survey.run(self.oracle, probes, passes, self.stop);
        }
    }

    /// The cost before any knee: the lower half's median over a few points, where disturbance shows least.
    fn before(&self, sweep: Sweep, from: u32, to: u32) -> f64 {
        let curve = self.survey.curve(sweep, Layout::DENSE, Part::All);
        let costs = curve
            .iter()
            .filter(|(pages, _)| (from..=to).contains(pages))
            .map(|&(_, cost)| cost);
        lower_quartile(costs.collect()).unwrap_or(0.0)
    }

    fn level(&mut self, sweep: Sweep, before: f64, level: u8) -> Option<(Knee, Found)> {
        self.survey.take(survey::BUSY);
        let knee = knee(&self.survey.curve(sweep, Layout::DENSE, Part::All), before)?;
        let quiet = self.is_quiet(sweep, knee);
        self.survey.take(if quiet { survey::QUIET } else { survey::BUSY });
        let range = (knee.pages / 2, knee.pages.saturating_mul(2));
        let mut fit = self.fit(sweep, knee, Part::All, range)?;
        for _ in 0..LOOKS {
            let probes = closer(sweep, fit.entries, self.oracle.limits(sweep));
            self.ask(&probes, self.effort.refined / LOOKS as u32);
            fit = self.fit(sweep, knee, Part::All, range)?;
        }
        if let Some(least) = self.fit(sweep, knee, Part::Least, range).filter(|_| !quiet) {
            widen(&mut fit, &least);
        }
        let soft = soft(&self.survey.curve(sweep, Layout::DENSE, Part::All), knee);
        let unsettled = !quiet && soft.is_none() && spread(fit.entries) > UNSETTLED;
        let not_told = self
            .reason_to_doubt(sweep, knee, &fit)
            .or_else(|| unsettled.then(|| busy(fit.entries)));
        if let Some((first, half)) = soft.filter(|_| not_told.is_none()) {
            fit.entries.low = fit.entries.low.min(first);
            // Half of all accesses miss up to a third beyond what fits; neighbours pull both marks down.
            fit.entries.high = fit.entries.high.max(half + half / 8);
            fit.ways = None;
        }
        Some((
            knee,
            found(level, &fit, not_told, self.plateau(sweep, knee, fit.entries.value)),
        ))
    }

    /// Do most passes read the cost of a hit just before the knee, where the smallest disturbance would show?
    fn is_quiet(&self, sweep: Sweep, knee: Knee) -> bool {
        let just_before = knee.pages * 7 / 10..knee.pages * 19 / 20;
        let (mut clean, mut all) = (0, 0);
        for (probe, _) in self.survey.points(sweep, Part::All) {
            if probe.layout == Layout::DENSE && just_before.contains(&probe.pages) {
                let costs = self.survey.all(probe);
                all += costs.len();
                clean += costs
                    .iter()
                    .filter(|&&cost| cost < knee.before + 0.1 * knee.rise)
                    .count();
            }
        }
        4 * clean > 3 * all
    }

    fn fit(&mut self, sweep: Sweep, knee: Knee, part: Part, (from, to): (u32, u32)) -> Option<Fit> {
        let points: Vec<(Probe, f64)> = self.survey.points(sweep, part).collect();
        let samples: Vec<Sample> = points
            .chunk_by(|a, b| a.0.layout == b.0.layout)
            .flat_map(|curve| samples(curve, knee))
            .collect();
        fit::fit(&samples, from.max(1), to, &mut self.occupancy)
    }

    /// Why this fit should not be believed: it explains badly, is not clearly better than its rivals, or passes disagree.
    fn reason_to_doubt(&mut self, sweep: Sweep, knee: Knee, fit: &Fit) -> Option<String> {
        if self.stopped {
            return Some("stopped before it was done".to_owned());
        }
        if fit.misfit > MISFIT {
            return Some(format!(
                "no geometry explains the costs (mean distance {:.2}); measure again on a quieter machine",
                fit.misfit
            ));
        }
        let curve = self.survey.curve(sweep, Layout::DENSE, Part::All);
        let rough = roughness(&curve) / knee.rise;
        if rough > ROUGH {
            return Some(format!(
                "neighbouring points of the curve differ by {:.0} % of its rise; measure again on a quieter machine",
                100.0 * rough
            ));
        }
        let Entries { value, low, high } = fit.entries;
        if spread(fit.entries) > 0.25 {
            return Some(format!(
                "anything from {low} to {high} entries explains the costs nearly as well as {value}"
            ));
        }
        let around = (low.min(value - value / 3), high.max(value + value / 3));
        let parts: Vec<u32> = (0..3)
            .filter_map(|third| self.fit(sweep, knee, Part::Third(third), around))
            .map(|fit| fit.entries.value)
            .collect();
        // A neighbour only takes entries away: a part that saw fewer does not contradict, one that saw more does.
        let tolerance = if soft(&curve, knee).is_some() { 7 } else { 20 };
        let near = |part: u32| part.abs_diff(value) * tolerance <= value;
        let agree = parts.iter().any(|&part| near(part)) && parts.iter().all(|&part| part < value || near(part));
        (!agree)
            .then(|| format!("passes disagree ({parts:?} entries against {value}); measure again on a quieter machine"))
    }

    /// What a miss adds, at each point where all pages miss and the next knee is far.
    fn plateau(&self, sweep: Sweep, knee: Knee, entries: u32) -> Vec<f64> {
        let from = entries + entries / 2;
        self.survey
            .curve(sweep, Layout::DENSE, Part::All)
            .into_iter()
            .filter(|&(pages, _)| pages >= from && pages <= from.saturating_mul(2))
            .map(|(_, cost)| cost - knee.before)
            .collect()
    }
}

/// The least cost of all passes shows the most that can fit: a neighbour who is seldom quiet leaves fewer entries to the usual
/// cost. What lies between both cannot be told apart.
fn widen(fit: &mut Fit, least: &Fit) {
    // A tenth of all orders of visit may be lucky with a page or two too many.
    fit.entries.low = fit
        .entries
        .low
        .min(least.entries.value)
        .min(fit.entries.value - fit.entries.value / 32);
    fit.entries.high = fit.entries.high.max(least.entries.value);
    if least.shape.associativity() != fit.shape.associativity() {
        fit.ways = None;
    }
    if least.shape.index != fit.shape.index {
        fit.index = None;
    }
}

fn spread(entries: Entries) -> f64 {
    f64::from(entries.high - entries.low) / f64::from(entries.value)
}

fn busy(Entries { value, low, high }: Entries) -> String {
    format!(
        "a neighbour was busy most of the time: {value} ({low}-{high}) entries are the least there may be; measure again"
    )
}

/// The observations of one layout, each weighted by the part of the curve that it stands for.
fn samples(curve: &[(Probe, f64)], knee: Knee) -> impl Iterator<Item = Sample> + '_ {
    const USUAL: f64 = 0.08;
    const LEAST: f64 = 0.15;
    let pages = move |at: usize| f64::from(curve[at.min(curve.len() - 1)].0.pages);
    curve.iter().enumerate().map(move |(at, &(probe, cost))| Sample {
        layout: probe.layout,
        pages: probe.pages,
        height: ((cost - knee.before) / knee.rise).clamp(0.0, 1.0),
        weight: ((pages(at + 1) / pages(at.saturating_sub(1))).ln() / 2.0 / USUAL).clamp(LEAST, 1.0),
    })
}

fn found(level: u8, fit: &Fit, not_told: Option<String>, penalty: Vec<f64>) -> Found {
    let told = not_told.is_none();
    Found {
        level,
        entries: told.then_some(fit.entries),
        ways: fit.ways.filter(|_| told),
        index: fit.index.filter(|_| told),
        policy: fit.shape.policy,
        penalty,
        not_told: not_told.or_else(|| {
            fit.ways
                .is_none()
                .then(|| "the knee is soft or several associativities explain it".to_owned())
        }),
    }
}

/// From how many pages on all miss the first level.
fn beyond(knee: Knee, found: &Found) -> u32 {
    let entries = found.entries.map_or(knee.pages, |entries| entries.high);
    entries + entries / 2
}

/// Where the cost rises for good, and by how much.
fn knee(curve: &[(u32, f64)], before: f64) -> Option<Knee> {
    // Smaller than any known penalty (3 cycles), larger than what a disturbed pass leaves after taking floors.
    let least = (0.06 * before).max(1.0);
    let after = curve
        .iter()
        .rposition(|&(_, cost)| cost < before + least)
        .map_or(0, |last| last + 1);
    // A single point at the very end is no knee.
    let &(pages, _) = curve.get(after).filter(|_| after + 2 < curve.len())?;
    let behind = |from: u32, to: u32| {
        let costs = curve
            .iter()
            .filter(|&&(at, _)| at >= from && at <= to)
            .map(|&(_, cost)| cost);
        lower_quartile(costs.collect())
    };
    let double = pages.saturating_mul(2);
    let end = behind(pages + pages * 3 / 5, pages.saturating_mul(3)).or_else(|| behind(pages, double))?;
    Some(Knee {
        before,
        rise: (end - before).max(least),
        pages,
    })
}

/// The usual difference of neighbouring points: next to nothing on a curve that is flat but for its knees.
fn roughness(curve: &[(u32, f64)]) -> f64 {
    let mut steps: Vec<f64> = curve.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs()).collect();
    steps.sort_unstable_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().unwrap_or(0.0)
}

/// Where misses begin and where they are half of all accesses, if that is too far apart for one capacity: replacement that
/// is far from LRU, or a neighbour that always holds a part.
fn soft(curve: &[(u32, f64)], knee: Knee) -> Option<(u32, u32)> {
    let from = |share: f64| {
        let hit = |&&(_, cost): &&(u32, f64)| cost < knee.before + share * knee.rise;
        curve.iter().rev().find(hit).map(|&(pages, _)| pages)
    };
    let (first, half) = (from(0.1)?, from(0.5)?);
    (f64::from(half) > SOFT * f64::from(first)).then_some((first, half))
}

fn lower_quartile(mut costs: Vec<f64>) -> Option<f64> {
    costs.sort_unstable_by(f64::total_cmp);
    costs.get(costs.len() / 4).copied()
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
