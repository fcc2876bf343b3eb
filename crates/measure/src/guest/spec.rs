//! What to measure of guests, and how the time is shared out.

use std::time::Duration;

use host::snapshot::Mmu;
use model::guest::GuestPage;
use model::latency::{Access, Pattern};
use model::{Bytes, PageKind, Reading};
use stats::rounds;

use crate::{Error, distinct};

#[derive(Clone, Debug)]
pub struct Spec {
    /// Page sizes of the guest's own tables.
    pub guest_pages: Vec<GuestPage>,
    pub kinds: Vec<PageKind>,
    /// Working sets, at most [`MOST_SIZES`].
    pub sizes: Vec<Bytes>,
    /// Order of visits.
    pub pattern: Pattern,
    /// Loads only, or loads and stores.
    pub access: Access,
    /// Time for the timed walks, set-up and warming not included; `None`: [`TIME_PER_POINT`] for each point.
    pub budget: Option<Duration>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Pin the timed thread here instead of where it happens to run.
    pub cpu: Option<u32>,
    /// Bind memory to this NUMA node.
    pub node: Option<u32>,
    /// Memory that may be taken without harm (MemAvailable).
    pub available: Bytes,
    /// How this machine's KVM translates guest addresses.
    pub mmu: Reading<Mmu>,
}

/// One ring stands in each slot of a line, and one slot is for the sanity check.
pub const MOST_SIZES: usize = chase::ring::SLOTS - 1;

/// The least working set: what the sanity check walks, half of a usual first-level cache.
pub(super) const SMALLEST: Bytes = Bytes::kib(16);

/// Time for one point if no budget is given: six rounds by turns, 50 ms for each side.
pub const TIME_PER_POINT: Duration = Duration::from_millis(600);

/// Turns that both sides take; each gives one pair for the ratio. Those of one point follow each other, so that each finds the state
/// that the last one left; an interval therefore speaks of that minute, and cells compare by the ratio to the native side.
pub(super) const ROUNDS: u32 = 6;

impl Spec {
    /// The same without repetitions, if it can be measured at all.
    pub(super) fn checked(&self) -> Result<Self, Error> {
        let spec = Self {
            guest_pages: distinct(self.guest_pages.iter().copied()),
            kinds: distinct(self.kinds.iter().copied()),
            sizes: distinct(self.sizes.iter().copied()),
            ..self.clone()
        };
        let refuse = |why: String| Err(Error::Spec(why));
        let Some(&largest) = spec.sizes.last() else {
            return refuse("give at least one working set".to_owned());
        };
        if spec.guest_pages.is_empty() || spec.kinds.is_empty() {
            return refuse("give at least one guest page size and one page kind".to_owned());
        }
        if spec.sizes.len() > MOST_SIZES {
            return refuse(format!("{} working sets, {MOST_SIZES} is the most", spec.sizes.len()));
        }
        if spec.sizes[0] < SMALLEST {
            return refuse(format!("{} is too small, {} is the least", spec.sizes[0], SMALLEST));
        }
        // One kind at a time; a fifth is left for everyone else.
        let limit = Bytes(spec.available.0 / 5 * 4);
        if largest > limit && spec.kinds.iter().any(|kind| kind.pool().is_none()) {
            return refuse(format!(
                "a working set of {largest} does not fit into the {limit} that may be taken without harm"
            ));
        }
        Ok(spec)
    }

    /// Time for one turn of one side in one round.
    pub(super) fn slice(&self) -> Duration {
        let points = (self.kinds.len() * self.guest_pages.len() * self.sizes.len()) as u32;
        let budget = self.budget.unwrap_or(TIME_PER_POINT * points);
        (budget / points / ROUNDS / 2).clamp(Duration::from_millis(5), Duration::from_millis(100))
    }

    /// A rough guess: timed walks, and as much again for taking and warming memory.
    pub(super) fn left(&self, done: f64) -> Duration {
        let points = (self.kinds.len() * self.guest_pages.len() * self.sizes.len()) as u32;
        (self.slice() * 4 * ROUNDS * points).mul_f64(1.0 - done)
    }

    /// Guest page sizes in a seeded random order that differs from kind to kind.
    pub(super) fn shuffled_pages(&self, kind: usize) -> Vec<GuestPage> {
        let order = rounds::order(self.guest_pages.len(), self.seed, kind as u32);
        order.into_iter().map(|at| self.guest_pages[at]).collect()
    }
}
