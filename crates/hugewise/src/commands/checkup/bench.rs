//! The measurements of a checkup: the headline in stretches, between them TLBs, guests, and the curve with what is left of the time.

use std::time::{Duration, Instant};

use anyhow::bail;
use host::Snapshot;
use measure::latency::Spec;
use measure::latency::paired::Paired;
use model::guest::Guest;
use model::headline::Headline;
use model::latency::Latency;
use model::tlb::Tlb;
use model::{Bytes, PageKind};

use super::super::latency::{self, FROM};
use super::super::measuring::{Measured, room};
use super::super::session::Session;
use super::super::{guest, tlb};
use super::parts::Parts;
use crate::cli::args::{self, Part};

/// Time for everything, if none is typed.
const USUAL: Duration = Duration::from_secs(60);
const QUICK: Duration = Duration::from_secs(20);
/// What is kept back for memory that comes in slowly, and for writing the report.
const KEPT_BACK: f64 = 0.08;
const QUICK_KEPT_BACK: f64 = 0.12;
/// The headline's share of the time. TLBs take as long with little time as with much.
const HEADLINE: f64 = 0.55;
const QUICK_HEADLINE: f64 = 0.3;
/// It is measured in so many stretches: at the beginning, in between and at the end.
const STRETCHES: u32 = 3;
const QUICK_STRETCHES: u32 = 2;
/// Beyond the TLB reach of base pages on most machines, and warm within a second or two under shadow paging.
const GUEST_SIZE: Bytes = Bytes::mib(256);
const GUEST_BUDGET: Duration = Duration::from_secs(4);
/// A guest is left out if less than this share of the time is left, and the curve ends early with less than the second: both take
/// seconds to set up, more of them on a busy machine.
const LEAST_LEFT: [f64; 2] = [0.2, 0.1];
/// Working sets of the headline beyond the TLB reach of base pages, as far as memory allows: the largest, and a quarter of it. Page
/// tables of more lie in shared caches, so that contention changes the saving within seconds; the curve has it.
const LARGEST: Bytes = Bytes::mib(256);
const QUICK_LARGEST: Bytes = Bytes::mib(128);
/// The curve ends here.
const CURVE: Bytes = Bytes::gib(1);
/// One within the reach of the first level of every CPU of the table, and in its private cache: what is shown there is not the TLB's.
const WITHIN_REACH: Bytes = Bytes::kib(128);
/// Working sets are of whole huge pages.
const PAGE: Bytes = Bytes::mib(8);
/// The curve of a quick one ends here, since bringing pages in takes longest.
const QUICK_CURVE: Bytes = QUICK_LARGEST;

/// What each measurement of a checkup needs.
pub(super) struct Bench<'a> {
    session: &'a Session<'a>,
    args: &'a args::Checkup,
    snapshot: &'a Snapshot,
    budget: Duration,
    /// When everything is to be done.
    end: Instant,
}

pub(super) struct Measurements {
    pub(super) headline: Option<Headline>,
    pub(super) latency: Option<Latency>,
    pub(super) tlb: Option<Tlb>,
    pub(super) guest: Option<Guest>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        session: &'a Session<'a>,
        args: &'a args::Checkup,
        snapshot: &'a Snapshot,
        begun: Instant,
    ) -> Self {
        let (usual, kept_back) = match args.quick {
            true => (QUICK, QUICK_KEPT_BACK),
            false => (USUAL, KEPT_BACK),
        };
        let budget = args.budget.unwrap_or(usual);
        Self {
            session,
            args,
            snapshot,
            budget,
            end: begun + budget.mul_f64(1.0 - kept_back),
        }
    }

    /// Each measurement that could be made.
    pub(super) fn all(&self, parts: &mut Parts<'_>) -> anyhow::Result<Measurements> {
        let mut paired = parts.measured(Part::Latency, || self.begin())?;
        let tlb = parts.measured(Part::Tlb, || self.tlb())?;
        let guest = parts.measured(Part::Guest, || self.guest())?;
        if let Some(paired) = paired.as_mut().filter(|_| !self.args.quick) {
            parts.measured(Part::Latency, || self.stretch(paired))?;
        }
        let latency = match &mut paired {
            Some(paired) => {
                let curve = parts.measured(Part::Latency, || self.latency())?;
                parts.measured(Part::Latency, || self.stretch(paired))?;
                curve
            }
            None => None,
        };
        let headline = paired.map(|paired| paired.headline());
        Ok(Measurements {
            headline,
            latency,
            tlb,
            guest,
        })
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// What is left beside the stretches that follow.
    fn left_beside(&self, stretches: u32) -> Duration {
        self.left().saturating_sub(self.stretch_time() * stretches)
    }

    fn is_less(&self, left: Duration, share: f64) -> bool {
        left < self.budget.mul_f64(share)
    }

    /// Page kinds by turns at a few working sets: the first stretch.
    fn begin(&self) -> Measured<Paired> {
        let spec = Spec {
            sizes: self.headline_sizes()?,
            budget: Some(self.headline_time()),
            ..latency::usual(self.snapshot, self.session.seed)?
        };
        let mut paired = Paired::of(&spec)?;
        let ((), warnings) = self.stretch(&mut paired)?;
        Ok((paired, warnings))
    }

    fn stretch(&self, paired: &mut Paired) -> Measured<()> {
        let time = self.stretch_time().min(self.left());
        latency::pair(&self.session.ui, paired, time, self.args.no_pool)
    }

    fn headline_time(&self) -> Duration {
        let share = if self.args.quick { QUICK_HEADLINE } else { HEADLINE };
        self.budget.mul_f64(share)
    }

    fn stretch_time(&self) -> Duration {
        self.headline_time() / if self.args.quick { QUICK_STRETCHES } else { STRETCHES }
    }

    fn headline_sizes(&self) -> anyhow::Result<Vec<Bytes>> {
        let largest = if self.args.quick { QUICK_LARGEST } else { LARGEST };
        let room = room(self.snapshot)?;
        let largest = Bytes(largest.min(room).0 / PAGE.0 * PAGE.0);
        if largest.0 == 0 {
            bail!("a working set of {PAGE} is the least to compare page kinds at, and {room} may be taken");
        }
        let quarter = (!self.args.quick).then_some(Bytes(largest.0 / 4));
        let sizes = [Some(WITHIN_REACH), quarter, Some(largest)].into_iter();
        Ok(sizes.flatten().collect())
    }

    /// The curve by page kind, in whole octaves.
    fn latency(&self) -> Measured<Latency> {
        let is_short = self.args.quick || self.is_less(self.left_beside(1), LEAST_LEFT[1]);
        let largest = if is_short { QUICK_CURVE } else { CURVE };
        let mut sizes = measure::latency::sizes(FROM, largest.min(room(self.snapshot)?).max(FROM));
        sizes.retain(|size: &Bytes| size.0.is_power_of_two());
        let spec = Spec {
            sizes,
            budget: Some(self.left_beside(1)),
            ..latency::usual(self.snapshot, self.session.seed)?
        };
        latency::measure(&self.session.ui, &spec, self.args.no_pool)
    }

    /// Levels, walks and what the host backs; base pages alone if quick, since each kind takes seconds.
    fn tlb(&self) -> Measured<Tlb> {
        let kinds = match self.args.quick {
            true => vec![PageKind::Base],
            false => tlb::usual(self.snapshot),
        };
        tlb::measure(&self.session.ui, &tlb::spec(kinds, true, self.snapshot)?, true)
    }

    /// One working set on the pages that most have: enough to see what a hypervisor keeps of the gain.
    fn guest(&self) -> Measured<Guest> {
        if self.args.quick {
            bail!("skipped by --quick; `hugewise measure guest` measures it");
        }
        if self.is_less(self.left_beside(2), LEAST_LEFT[0]) {
            bail!("no time was left for it (--budget); `hugewise measure guest` measures it");
        }
        let spec = measure::guest::Spec {
            sizes: vec![GUEST_SIZE.min(room(self.snapshot)?)],
            budget: Some(GUEST_BUDGET),
            ..guest::usual(self.snapshot, self.session.seed)?
        };
        guest::measure(&self.session.ui, &spec, self.args.no_pool)
    }
}
