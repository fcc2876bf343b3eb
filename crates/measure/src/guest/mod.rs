//! The same rings through a hypervisor: guest page size x host backing, each with the native walk beside it.

mod cell;
mod field;
mod kept;
mod operations;
mod outcome;
mod readings;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use host::snapshot::Mmu;
use model::guest::{Guest, GuestPage};
use model::latency::{Access, Pattern};
use model::{Bytes, PageKind, Reading, Warning};
use vm::Hypervisor;

use crate::{Error, distinct};
use cell::{Cell, Run};
use field::Field;
use model::Progress;
use outcome::Outcome;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Page sizes of the guest's own tables.
    pub guest_pages: Vec<GuestPage>,
    /// Page kinds behind its memory.
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
    /// The machine's base page.
    pub base_page: Bytes,
    /// Its PMD-mapped page.
    pub pmd_page: Bytes,
    /// Memory that may be taken without harm (MemAvailable).
    pub available: Bytes,
    /// How this machine's KVM translates guest addresses.
    pub mmu: Reading<Mmu>,
}

/// One ring stands in each slot of a line, and one slot is for the sanity check.
pub const MOST_SIZES: usize = chase::ring::SLOTS - 1;

/// Time for one point if no budget is given: six rounds by turns, 50 ms for each side.
pub const TIME_PER_POINT: Duration = Duration::from_millis(600);

/// Can guests be run here at all?
///
/// # Errors
/// What [`run`] would say.
pub fn can_run() -> Result<(), Error> {
    Hypervisor::open().map(drop).map_err(Error::Vm)
}

/// Memory of a kind that a working set takes, with the guest's page tables: what a pool must have.
pub fn memory(largest: Bytes, kind: PageKind) -> Bytes {
    field::with_tables(largest, kind)
}

/// Measures the matrix, the price of first touches, round trips and page-table operations. Combinations that are not available
/// come back without a number and with the reason.
///
/// # Errors
/// [`Error`]; every guest and all memory are given back in each case.
pub fn run(spec: &Spec, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<(Guest, Vec<Warning>), Error> {
    let begun = Instant::now();
    let spec = spec.checked()?;
    let hypervisor = Hypervisor::open()?;
    let pinned = chase::thread::Pinned::to(spec.cpu).map_err(Error::Pin)?;
    let calibration = chase::clock::Calibration::start();
    let mut outcome = Outcome::default();
    for (done, &kind) in spec.kinds.iter().enumerate() {
        let share = |page: usize| (done as f64 + page as f64 / spec.guest_pages.len() as f64) / spec.kinds.len() as f64;
        progress.step(0.9 * share(0), spec.left(share(0)), &format!("{kind}: taking memory"));
        let mut field = Field::take(&spec, kind);
        for (at, page) in spec.shuffled_pages(done).into_iter().enumerate() {
            let mut run = Run {
                hypervisor: &hypervisor,
                spec: &spec,
                page,
                stop,
            };
            progress.step(
                0.9 * share(at),
                spec.left(share(at)),
                &format!("guest {page} on {kind}"),
            );
            outcome.cells.push(Cell::measure(&mut run, &mut field)?);
        }
    }
    progress.step(0.9, Duration::from_secs(2), "exits and page-table operations");
    outcome.operations = operations::all(&hypervisor, stop)?;
    let ticks_per_ns = calibration.ticks_per_ns();
    let guest = outcome.publish(&spec, ticks_per_ns, pinned.cpu(), begun);
    let warnings = outcome.warnings(&guest);
    Ok((guest, warnings))
}

impl Spec {
    /// The same without repetitions, if it can be measured at all.
    fn checked(&self) -> Result<Self, Error> {
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
        if spec.sizes[0] < field::SMALLEST {
            return refuse(format!(
                "{} is too small, {} is the least",
                spec.sizes[0],
                field::SMALLEST
            ));
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
    fn slice(&self) -> Duration {
        let points = (self.kinds.len() * self.guest_pages.len() * self.sizes.len()) as u32;
        let budget = self.budget.unwrap_or(TIME_PER_POINT * points);
        (budget / points / cell::ROUNDS / 2).clamp(Duration::from_millis(5), Duration::from_millis(100))
    }

    /// A rough guess: timed walks, and as much again for taking and warming memory.
    fn left(&self, done: f64) -> Duration {
        let points = (self.kinds.len() * self.guest_pages.len() * self.sizes.len()) as u32;
        (self.slice() * 4 * cell::ROUNDS * points).mul_f64(1.0 - done)
    }

    /// Guest page sizes in a seeded random order that differs from kind to kind.
    fn shuffled_pages(&self, kind: usize) -> Vec<GuestPage> {
        use rand::SeedableRng;
        use rand::seq::SliceRandom;
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(self.seed.wrapping_add(kind as u64));
        let mut pages = self.guest_pages.clone();
        pages.shuffle(&mut rng);
        pages
    }
}
