//! Costs collected over passes that are spread out in time, so that contention that disturbs one pass spares another.

use std::collections::BTreeMap;

use stats::rounds;

use super::probe::{Layout, Oracle, Probe, Sweep};

/// Costs by probe, one per undisturbed pass.
#[derive(Debug, Default)]
pub struct Survey {
    costs: BTreeMap<Probe, Costs>,
    passes: u32,
    /// Attempts that were thrown away.
    pub disturbed: u64,
}

#[derive(Debug, Default)]
struct Costs {
    /// The least first.
    sorted: Vec<f64>,
    /// With their passes, in order.
    by_pass: Vec<(u32, f64)>,
}

/// From so many passes on, the very least is left out: a clock that changed unnoticed may have made it.
const ENOUGH: usize = 6;
/// One more is left out for each so many: of very many passes, some find a gentle replacement in a lucky state.
const LUCKY: usize = 64;

impl Survey {
    /// Asks every probe once per pass, each pass in another order. Ends at once when stopped, and then returns `false`.
    pub fn run(&mut self, oracle: &mut dyn Oracle, probes: &[Probe], passes: u32, stop: &dyn Fn() -> bool) -> bool {
        for _ in 0..passes {
            for index in rounds::order(probes.len(), self.passes.into(), 0) {
                if stop() {
                    self.passes += 1;
                    return false;
                }
                let probe = probes[index];
                match oracle.cost(probe, self.passes) {
                    Some(cost) => self.keep(probe, cost),
                    None => self.disturbed += 1,
                }
            }
            self.passes += 1;
        }
        true
    }

    fn keep(&mut self, probe: Probe, cost: f64) {
        let Costs { sorted, by_pass } = self.costs.entry(probe).or_default();
        sorted.insert(sorted.partition_point(|&other| other < cost), cost);
        by_pass.push((self.passes, cost));
    }

    /// What a probe costs undisturbed: disturbance only adds.
    pub fn floor(&self, probe: Probe) -> Option<f64> {
        let costs = self.all(probe);
        let left_out = if costs.len() < ENOUGH {
            0
        } else {
            1 + costs.len() / LUCKY
        };
        costs.get(left_out).copied()
    }

    /// `(pages, cost)` of one layout, by pages.
    pub fn curve(&self, sweep: Sweep, layout: Layout) -> Vec<(u32, f64)> {
        self.points(sweep)
            .filter(|(probe, _)| probe.layout == layout)
            .map(|(probe, cost)| (probe.pages, cost))
            .collect()
    }

    /// All probes of a sweep with their floors, by layout and pages.
    pub fn points(&self, sweep: Sweep) -> impl Iterator<Item = (Probe, f64)> + '_ {
        self.costs
            .keys()
            .filter(move |probe| probe.sweep == sweep)
            .filter_map(|&probe| Some((probe, self.floor(probe)?)))
    }

    /// Every pass's cost of one probe, the least first.
    pub fn all(&self, probe: Probe) -> &[f64] {
        self.costs.get(&probe).map_or(&[], |costs| &costs.sorted)
    }

    /// The same as `(pass, cost)`, in the order of the passes.
    pub fn by_pass(&self, probe: Probe) -> &[(u32, f64)] {
        self.costs.get(&probe).map_or(&[], |costs| &costs.by_pass)
    }
}
