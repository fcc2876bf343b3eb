//! What page kinds save against each other at a few working sets: short visits by turns on memory that is taken anew again and again.

mod draws;
mod live;
#[cfg(test)]
mod simulated_tests;

use std::time::Duration;

use chase::clock::Calibration;
use model::headline::{Headline, PairedGain};
use model::latency::Backed;
use model::{Backing, Progress};

use self::draws::{Draws, Grid, Plan};
use self::live::Live;
use super::Spec;
use crate::{Error, distinct};

/// A comparison of the kinds of a spec with the first of them at its sizes, in stretches with other work between them: contention comes
/// and goes for seconds to minutes, and what is spread over a minute has seen more of it.
pub struct Paired {
    pub spec: Spec,
    plan: Plan,
    draws: Draws,
    /// What backed each point in the last draw, and why it has no time.
    proofs: Vec<(Backed, Option<String>)>,
    /// Of each draw: see [`Headline::host_lines`].
    host_lines: Vec<f64>,
    cpu: u32,
    calibration: Calibration,
}

impl Paired {
    /// Nothing is measured yet. The spec's budget (or half a minute) is for all stretches together.
    ///
    /// # Errors
    /// If there is nothing to compare, or no memory for it.
    pub fn of(spec: &Spec) -> Result<Self, Error> {
        let spec = Spec {
            kinds: distinct(spec.kinds.iter().copied()),
            sizes: distinct(spec.sizes.iter().copied()),
            ..spec.clone()
        };
        if spec.kinds.len() < 2 || spec.sizes.is_empty() {
            return Err(Error::Spec("give base pages, a larger kind and a size".to_owned()));
        }
        if super::plan::shifts(&spec).len() > 1 {
            let why = "memory does not suffice for all page kinds at once";
            return Err(Error::Spec(why.to_owned()));
        }
        let nothing = |&asked| {
            let (got, proof) = (Backing::new(), "never mapped".to_owned());
            (Backed { asked, got, proof }, None)
        };
        Ok(Self {
            proofs: spec.sizes.iter().flat_map(|_| spec.kinds.iter().map(nothing)).collect(),
            plan: Plan {
                grid: Grid {
                    sizes: spec.sizes.len(),
                    kinds: spec.kinds.len(),
                },
                seed: spec.seed,
                budget: spec.budget.unwrap_or(USUAL),
            },
            draws: Draws::default(),
            host_lines: Vec::new(),
            cpu: 0,
            calibration: Calibration::start(),
            spec,
        })
    }

    /// Was no memory taken yet?
    pub fn is_new(&self) -> bool {
        self.draws.len() == 0
    }

    /// A stretch of that time, as far as draws of memory fit into it: of the first one at least one does. Kinds whose pages were not
    /// obtained come back without a number and with the reason.
    ///
    /// # Errors
    /// [`Error`]; everything is released in each case.
    pub fn go_on(&mut self, time: Duration, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut bench = Live::new(&self.spec, &mut self.proofs, &mut self.host_lines, stop)?;
        self.cpu = bench.pinned.cpu;
        let mut each = |draws: &Draws, left: Duration| {
            let done = 1.0 - left.as_secs_f64() / time.as_secs_f64().max(1e-9);
            progress.step(done, left, &format!("page kinds compared, draw {}", draws.len() + 1));
        };
        draws::go_on(&mut self.draws, &self.plan, time, &mut bench, &mut each)
    }

    /// What all stretches say together.
    pub fn headline(&self) -> Headline {
        Headline {
            gains: self.gains(),
            draws: self.draws.len() as u32,
            rounds: draws::ROUNDS,
            host_lines: stats::median(&self.host_lines),
            settled: self.draws.is_settled,
            cpu: self.cpu,
            seconds: self.draws.spent.as_secs_f64(),
        }
    }

    /// Every pair of kinds at every working set, the easier kind as what the other is compared with.
    fn gains(&self) -> Vec<PairedGain> {
        let Self { spec, draws, .. } = self;
        let ticks_per_ns = self.calibration.ticks_per_ns();
        let mut gains = Vec::new();
        for (size, &bytes) in spec.sizes.iter().enumerate() {
            for (own, &kind) in spec.kinds.iter().enumerate() {
                for (other, &against) in spec.kinds.iter().enumerate().take(own) {
                    let [point, under] = [own, other].map(|kind| self.plan.grid.point(size, kind));
                    let saved = draws.saved(point, under, stats::CONFIDENCE);
                    let (backing, reason) = self.proofs[point].clone();
                    let other_reason = self.proofs[under].1.clone();
                    let few = || "memory was taken too few times for an interval".to_owned();
                    gains.push(PairedGain {
                        bytes,
                        kind,
                        against,
                        saved,
                        draws: draws.percents(point, under),
                        ns: draws.time(point).map(|ticks| ticks / ticks_per_ns),
                        against_ns: draws.time(under).map(|ticks| ticks / ticks_per_ns),
                        backing,
                        not_measured: saved.is_none().then(|| reason.or(other_reason).unwrap_or_else(few)),
                    });
                }
            }
        }
        gains
    }
}

/// Time for everything if no budget is given.
const USUAL: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::latency::{Access, Pattern};
    use model::{Bytes, PageKind};

    use super::{Paired, Spec};

    #[test]
    fn where_base_pages_lie_is_recorded_if_frame_numbers_are_shown() {
        let spec = Spec {
            kinds: vec![PageKind::Base, PageKind::Thp],
            sizes: vec![Bytes::kib(128), Bytes::mib(8)],
            patterns: vec![Pattern::RandomLine],
            accesses: vec![Access::Read],
            budget: None,
            seed: 1,
            cpu: None,
            node: None,
            one_node: true,
            private_cache: None,
            last_cache: None,
            available: Bytes::mib(512),
        };
        let mut paired = Paired::of(&spec).expect("a plan");
        paired.go_on(Duration::ZERO, &mut (), &|| false).expect("a draw");
        let own = vec![1_u8; 1 << 16];
        let shown = host::processes::frames_of(std::process::id(), own.as_ptr() as u64, own.len() as u64);
        let lines = paired.headline().host_lines;
        assert_eq!(lines.is_some(), shown.known().is_some(), "hidden from both or none");
        match lines {
            Some(lines) => assert!((1.0..=8.0).contains(&lines), "{lines}"),
            None => testing::skipped("frame numbers are hidden"),
        }
    }
}
