//! Runs a study's cases on all CPUs, and turns counts into results.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use model::Bytes;

use super::cost::{Choice, DIMENSIONS, MIDDLE, Weights};
use super::{Case, Cycles, MachineFacts, PageEntries, Range, Sensitivity, Setting, Simulation, Study, Sweep, Unknown};
use crate::access::ADDRESS_BITS;
use crate::engine::{Counts, Engine};
use crate::machine::Machine;
use crate::patterns::SMALLEST;
use crate::setting::{HUGE, Mode};
use crate::walk::caches::Shared;
use crate::walk::radix::WalkCaches;
use crate::walk::spec::WalkerSpec;

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The machine cannot map such pages.
    #[error("{machine} has no pages of {page} (it has {known})")]
    NoSuchPage {
        machine: String,
        page: String,
        known: String,
    },
    /// The machine walks one dimension only.
    #[error("{0} has no nested paging: simulate it with --mode shadow")]
    NotNested(String),
    /// More than addresses have bits for.
    #[error("a working set of {0} is larger than simulated addresses reach ({1})")]
    TooLarge(Bytes, Bytes),
    /// Less than any pattern needs.
    #[error("a working set of {0} is too small: expected at least {1}")]
    TooSmall(Bytes, Bytes),
    /// The baseline is not among the settings.
    #[error("the baseline is not among the simulated modes and pages")]
    NoBaseline,
}

/// Walk caches that stand for unknown ones, and the nested TLB beside them: small, middle, large. The middle ones are ChampSim's.
const SWEPT: [(WalkCaches, u32); 3] = [
    (WalkCaches([4, 2, 1, 1]), 4),
    (WalkCaches([32, 8, 4, 2]), 32),
    (WalkCaches([64, 32, 16, 8]), 96),
];

/// The walkers that a machine is simulated with, the middle one first.
pub fn walkers(machine: &Machine) -> Vec<WalkerSpec> {
    let spec = |(caches, nested_tlb): (WalkCaches, u32)| WalkerSpec {
        levels: machine.page_levels,
        host_levels: machine.host_page_levels,
        caches: machine.walk_caches.unwrap_or(caches),
        nested_tlb: machine.nested_tlb.unwrap_or(nested_tlb),
        scatter: machine.scatter,
        data_caches: machine.caches.clone(),
        shared: Shared::InOrder,
        fetches_ahead: machine.fetches_ahead,
    };
    let [small, middle, large] = SWEPT.map(spec);
    let others: Vec<WalkerSpec> = [small, large].into_iter().filter(|walker| *walker != middle).collect();
    std::iter::once(middle).chain(others).collect()
}

/// Simulates every case; `progress` hears how many of how many are done.
///
/// # Errors
/// If the machine cannot do what is asked, or a working set is too large.
pub fn run(study: &Study, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Simulation, StudyError> {
    result(study, &counted(study, progress)?)
}

/// Every case: a working set, then its settings.
fn cases(study: &Study) -> Vec<(Bytes, Setting)> {
    let settings = |&size: &Bytes| study.settings.iter().map(move |&setting| (size, setting));
    study.working_sets.iter().flat_map(settings).collect()
}

/// What every case counts, in their order.
///
/// # Errors
/// As [`run`].
pub fn counted(study: &Study, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Vec<Counts>, StudyError> {
    study.check()?;
    let counted = on_all_cpus(&cases(study), progress, |&(size, setting)| {
        let mut accesses = study.pattern.threads(size, study.seed, study.machine.vcpus);
        engine(&study.machine, setting).run_pattern(&mut accesses, study.warm_up, study.accesses)
    });
    Ok(counted)
}

/// The counts of all cases as a result.
///
/// # Errors
/// If the baseline is not among the settings.
pub fn result(study: &Study, counted: &[Counts]) -> Result<Simulation, StudyError> {
    let cases = cases(study);
    let each = study.settings.len();
    let base = study.settings.iter().position(|&setting| setting == study.baseline);
    let base = base.ok_or(StudyError::NoBaseline)?;
    let case = |number: usize| {
        let (size, setting) = cases[number];
        let baseline = (&counted[number / each * each + base], study.baseline);
        weighed(&study.machine, Some(size), setting, &counted[number], baseline)
    };
    Ok(Simulation {
        machine: MachineFacts::of(&study.machine),
        input: study.pattern.name().to_owned(),
        is_dependent: study.pattern.is_dependent(),
        accesses: study.accesses,
        warm_up: study.warm_up,
        baseline: study.baseline,
        unknown: unknown(&study.machine, &study.settings),
        cases: (0..cases.len()).map(case).collect(),
        published: Vec::new(),
        curves: Vec::new(),
    })
}

impl Study {
    fn check(&self) -> Result<(), StudyError> {
        let most = Bytes(1 << ADDRESS_BITS);
        if let Some(&size) = self.working_sets.iter().find(|&&size| size > most) {
            return Err(StudyError::TooLarge(size, most));
        }
        if let Some(&size) = self.working_sets.iter().find(|&&size| size < SMALLEST) {
            return Err(StudyError::TooSmall(size, SMALLEST));
        }
        self.settings
            .iter()
            .try_for_each(|&setting| possible(&self.machine, setting))
    }
}

/// Can the machine do that?
///
/// # Errors
/// What it cannot.
pub fn possible(machine: &Machine, setting: Setting) -> Result<(), StudyError> {
    let huge = setting.share.map(|_| HUGE);
    let pages = [Some(setting.guest_page), huge, setting.host_page]
        .into_iter()
        .flatten();
    for page in pages {
        if !machine.maps(page) {
            let known: Vec<String> = machine.pages.iter().map(|page| page.exact()).collect();
            return Err(StudyError::NoSuchPage {
                machine: machine.id.clone(),
                page: page.exact(),
                known: known.join(", "),
            });
        }
    }
    if setting.mode == Mode::Nested && machine.nested_paging == Some(false) {
        return Err(StudyError::NotNested(machine.id.clone()));
    }
    Ok(())
}

/// A cold machine with its virtual CPUs.
pub fn engine(machine: &Machine, setting: Setting) -> Engine {
    Engine::new(&machine.arrays, setting, &walkers(machine)).with_vcpus(machine.vcpus.into())
}

/// Does something with every item on as many threads as there are CPUs; results keep their order.
pub fn on_all_cpus<T, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator + Send>,
    progress: &(dyn Fn(usize, usize) + Sync),
    each: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = items.into_iter();
    let all = items.len();
    let (next, done, results) = (
        Mutex::new(items.enumerate()),
        AtomicUsize::new(0),
        Mutex::new(Vec::new()),
    );
    let work = || {
        loop {
            let Some((number, item)) = lock(&next).next() else {
                return;
            };
            let result = each(item);
            lock(&results).push((number, result));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
        }
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        // This thread works, too, so that one item alone starts no other.
        (1..cpus.min(all)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A thread that panicked has ended the whole scope; its lock is not asked again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A case with what its counts cost, beside those of the baseline.
pub fn weighed(
    machine: &Machine,
    working_set: Option<Bytes>,
    setting: Setting,
    counts: &Counts,
    baseline: (&Counts, Setting),
) -> Case {
    let weights = Weights::of(machine);
    let walkers = counts.walkers.len();
    let corners = weights.corners(walkers);
    let ratio = |at: &Choice| {
        let baseline = weights.cycles(baseline.0, baseline.1.mode, at);
        weights.cycles(counts, setting.mode, at) / baseline
    };
    let causes = |at: &Choice| weights.causes(counts, setting.mode, at);
    let middle = (0, MIDDLE);
    let per = |walker: usize, of: u64| counts.walkers[walker].references() as f64 / of.max(1) as f64;
    let references = |of: u64| Range::of(per(0, of), (0..walkers).map(|walker| per(walker, of)));
    let accesses = counts.accesses;
    let entry = setting.entry();
    Case {
        working_set,
        setting,
        entry,
        reach: machine.reach(entry),
        accesses,
        miss_rates: counts
            .levels
            .iter()
            .map(|level| level.misses as f64 / accesses.max(1) as f64)
            .collect(),
        references_per_walk: references(counts.walkers[0].walks),
        references: references(accesses),
        exits: counts.exits,
        shootdowns: counts.shootdowns,
        cycles: Cycles::of(causes(&middle), &corners.iter().map(causes).collect::<Vec<_>>()),
        relative: Range::of(ratio(&middle), corners.iter().map(ratio)),
        sensitivity: sensitivity(&weights, walkers, ratio),
    }
}

/// What each unknown alone does to a ratio.
fn sensitivity(weights: &Weights, walkers: usize, ratio: impl Fn(&Choice) -> f64) -> Vec<Sensitivity> {
    let alone = |dimension: usize, position: u8| {
        let mut point = MIDDLE;
        point[dimension] = position;
        ratio(&(0, point))
    };
    let latencies = (0..DIMENSIONS).filter_map(|dimension| {
        let unknown = weights.unknown(dimension)?;
        Some((
            unknown,
            Range::of(
                alone(dimension, 1),
                [0, 2].map(|position| alone(dimension, position)).into_iter(),
            ),
        ))
    });
    let caches = Range::of(ratio(&(0, MIDDLE)), (0..walkers).map(|walker| ratio(&(walker, MIDDLE))));
    std::iter::once((Unknown::WalkCaches, caches))
        .chain(latencies)
        .filter(|(_, range)| range.high - range.low > 0.0005)
        .map(|(unknown, Range { low, high, .. })| Sensitivity { unknown, low, high })
        .collect()
}

/// What was swept for a machine, as far as the settings need it.
pub fn unknown(machine: &Machine, settings: &[Setting]) -> Vec<Sweep> {
    let weights = Weights::of(machine);
    let caches = machine.walk_caches.is_none().then(|| {
        let entries = |size: usize| f64::from(SWEPT[size].0.0[0]);
        Sweep {
            unknown: Unknown::WalkCaches,
            values: Range::new(entries(0), entries(1), entries(2)),
        }
    });
    let has = |is_one: &dyn Fn(Mode) -> bool| settings.iter().any(|setting| is_one(setting.mode));
    let is_used = |unknown: &Unknown| match unknown {
        Unknown::Exit if machine.vcpus > 1 => has(&|mode| mode != Mode::Native),
        Unknown::Exit => has(&|mode| mode == Mode::Shadow),
        Unknown::IpiExits => has(&|mode| mode != Mode::Native),
        Unknown::L3Latency => machine.caches.len() > 2,
        _ => true,
    };
    let latencies = (0..DIMENSIONS).filter_map(|dimension| {
        let unknown = weights.unknown(dimension).filter(is_used)?;
        let values = weights.range(dimension);
        Some(Sweep { unknown, values })
    });
    caches.into_iter().chain(latencies).collect()
}

impl MachineFacts {
    /// What a result says of a machine.
    pub fn of(machine: &Machine) -> Self {
        let entries = |&page: &Bytes| PageEntries {
            page,
            entries: machine.entries(page),
        };
        let has_entries = |row: &PageEntries| row.entries.iter().any(|&entries| entries > 0);
        Self {
            id: machine.id.clone(),
            name: machine.name.clone(),
            page_levels: machine.page_levels,
            entries: machine.pages.iter().map(entries).filter(has_entries).collect(),
            readings: machine.readings.clone(),
            source: machine.source.clone(),
        }
    }
}
