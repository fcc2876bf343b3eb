//! Costs collected over passes that are spread out in time, so that a neighbour who disturbs one pass spares another.

use std::collections::BTreeMap;

use super::occupancy::shuffled;
use super::probe::{Layout, Oracle, Probe, Sweep};

/// Which passes to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    All,
    /// The least of all of them: as few misses as any order of visits and any quiet moment gave.
    Least,
    /// Every third one, from that one on: three parts that share nothing.
    Third(usize),
}

/// Costs by probe, one per undisturbed pass.
#[derive(Debug)]
pub struct Survey {
    costs: BTreeMap<Probe, Vec<f64>>,
    passes: u32,
    disturbed: u64,
    rank: f64,
}

/// With a neighbour who may be there most of the time: the cost that a tenth of the passes undercut.
pub const BUSY: f64 = 0.1;
/// When most passes are quiet: nearly the median, which luck does not move.
pub const QUIET: f64 = 0.4;

impl Default for Survey {
    fn default() -> Self {
        Self {
            costs: BTreeMap::new(),
            passes: 0,
            disturbed: 0,
            rank: BUSY,
        }
    }
}

impl Survey {
    /// Which share of the passes undercuts what is taken as the cost from now on: [`BUSY`] or [`QUIET`].
    pub fn take(&mut self, rank: f64) {
        self.rank = rank;
    }

    /// Asks every probe once per pass, each pass in another order. Ends early when told to stop, which is `false`.
    pub fn run(&mut self, oracle: &mut dyn Oracle, probes: &[Probe], passes: u32, stop: &dyn Fn() -> bool) -> bool {
        for _ in 0..passes {
            for index in shuffled(probes.len(), self.passes.into()) {
                let probe = probes[index];
                match oracle.cost(probe, self.passes) {
                    Some(cost) => self.costs.entry(probe).or_default().push(cost),
                    None => self.disturbed += 1,
                }
            }
            self.passes += 1;
            if stop() {
                return false;
            }
        }
        true
    }

    /// Attempts that were thrown away.
    pub fn disturbed(&self) -> u64 {
        self.disturbed
    }

    /// What a probe costs when nobody disturbs it. Disturbance only adds, but the very smallest may be a lucky order of visits
    /// just beyond what fits: it is the value that a share of the passes undercuts, as [`Survey::take`] says.
    pub fn floor(&self, probe: Probe, part: Part) -> Option<f64> {
        let costs = self.costs.get(&probe)?;
        let mut chosen: Vec<f64> = match part {
            Part::All | Part::Least => costs.clone(),
            Part::Third(first) => costs.iter().skip(first).step_by(3).copied().collect(),
        };
        chosen.sort_unstable_by(f64::total_cmp);
        let rank = if part == Part::Least {
            0
        } else {
            (chosen.len() as f64 * self.rank) as usize
        };
        chosen.get(rank).copied()
    }

    /// `(pages, cost)` of one layout, by pages.
    pub fn curve(&self, sweep: Sweep, layout: Layout, part: Part) -> Vec<(u32, f64)> {
        self.points(sweep, part)
            .filter(|(probe, _)| probe.layout == layout)
            .map(|(probe, cost)| (probe.pages, cost))
            .collect()
    }

    /// All probes of a sweep with their floors.
    pub fn points(&self, sweep: Sweep, part: Part) -> impl Iterator<Item = (Probe, f64)> + '_ {
        self.costs
            .keys()
            .filter(move |probe| probe.sweep == sweep)
            .filter_map(move |&probe| Some((probe, self.floor(probe, part)?)))
    }

    /// Every pass's cost of one probe.
    pub fn all(&self, probe: Probe) -> &[f64] {
        self.costs.get(&probe).map_or(&[], Vec::as_slice)
    }
}
