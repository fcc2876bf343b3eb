//! TLB geometry, walk costs and the host's page size, from timing alone.

pub mod backing;
pub mod discover;
pub mod fit;
mod knee;
pub mod live;
pub mod occupancy;
mod plan;
pub mod probe;
#[cfg(test)]
mod recording;
mod result;
pub mod sampled;
mod sharing;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod simulated_tlb;
mod spec;
pub mod survey;
pub mod walks;

use std::time::{Duration, Instant};

use chase::clock::{Calibration, CoreClock};
use chase::thread::Pinned;
use model::tlb::{Entries, Level, Tlb};
use model::{Bytes, Estimate, PageKind, Progress, Warning, time_left};

pub use spec::Spec;

use crate::Error;
use backing::Split;
use discover::{Effort, Search};
use live::Live;
use result::{contention, curves, level_of, splintered, unknown};
use sampled::Sampled;

/// All of it, at the most, but for what is under way then.
const FULL: Duration = Duration::from_millis(26_500);
/// The same when it must be quick.
const QUICK: Duration = Duration::from_millis(8_800);
/// The share of the time by which the first round over small pages ends, and over large ones.
const FIRST: f64 = 0.6;
const FIRST_LARGE: f64 = 0.75;
/// Huge pages sampled for the host's backing.
const SAMPLED: u64 = 32;
/// Lines to sample with when the first level is unknown: beyond any known first level.
const LINES_ANYWAY: u32 = 200;

/// Finds levels, walk costs, sharing and host backing. What could not be measured is a warning, not an error.
///
/// # Errors
/// [`Error::Interrupted`] when stopped, else when nothing can be measured at all.
pub fn run(spec: &Spec, progress: &mut dyn Progress, stop: &dyn Fn() -> bool) -> Result<(Tlb, Vec<Warning>), Error> {
    if spec.kinds.is_empty() {
        return Err(Error::Spec(
            "name at least one page kind, such as base or thp".to_owned(),
        ));
    }
    let begun = Instant::now();
    let pinned = Pinned::to(spec.cpu).map_err(Error::Pin)?;
    let calibration = Calibration::start();
    let clock = CoreClock::new();
    let mut job = Job {
        spec,
        stop,
        begun,
        clock: &clock,
        searches: Vec::new(),
        warnings: Vec::new(),
        tlb: Tlb {
            known: spec.known.clone(),
            cpu: pinned.cpu,
            ..Tlb::default()
        },
        cycles_per_tick: Vec::new(),
    };
    let steps = spec.kinds.len() + 4;
    job.steps(&mut |done, what| {
        let share = done as f64 / steps as f64;
        progress.step(share, time_left(begun.elapsed(), share), what);
        Error::if_stopped(stop)
    })?;
    Ok(job.finish(calibration.ticks_per_ns()))
}

struct Job<'a> {
    spec: &'a Spec,
    stop: &'a dyn Fn() -> bool,
    begun: Instant,
    clock: &'a CoreClock,
    /// What looks for the levels of each kind that has any.
    searches: Vec<(PageKind, Search<'a, Live<'a>>)>,
    warnings: Vec<Warning>,
    tlb: Tlb,
    cycles_per_tick: Vec<f64>,
}

impl<'a> Job<'a> {
    /// All measurements, each announced with the number of those before it. The backing of huge pages comes early: it
    /// decides whether there is anything to be counted of them. Levels that stay open are looked at again in between, and as
    /// long as there is time: contention comes and goes.
    fn steps(&mut self, at: &mut dyn FnMut(usize, &str) -> Result<(), Error>) -> Result<(), Error> {
        let (large, small): (Vec<PageKind>, Vec<PageKind>) = self.spec.kinds.iter().partition(|kind| kind.is_large());
        let mut done = 0..;
        let mut next = |what: &str| at(done.next().unwrap_or(0), what);
        for kind in small {
            next(&format!("TLB levels for {kind} pages"))?;
            self.levels(kind);
        }
        next("what backs huge pages")?;
        self.backing();
        for kind in large {
            next(&format!("TLB levels for {kind} pages"))?;
            self.large_levels(kind);
        }
        next("page-table walks")?;
        self.walks();
        next("levels that are still open")?;
        self.look_again();
        next("what kinds share")?;
        self.sharing();
        next("done")
    }

    /// A kind of another page size, for what must not take entries from the pages that are counted.
    fn other(kind: PageKind) -> PageKind {
        if kind.is_large() { PageKind::Base } else { PageKind::Thp }
    }

    fn warning(&mut self, code: &str, text: String) {
        self.warnings.push(Warning::new(code, text));
    }

    fn levels(&mut self, kind: PageKind) {
        self.cycles_per_tick
            .extend((0..50).map(|_| self.clock.cycles_per_tick()));
        let live = match Live::new(kind, Self::other(kind), self.clock, self.room()) {
            Ok(live) => live,
            Err(error) => return self.warning("tlb-not-measured", format!("{kind} pages were not measured: {error}")),
        };
        let effort = if self.spec.quick { Effort::QUICK } else { Effort::FULL };
        let mut search = Search::new(live, effort, self.stop);
        let first = if kind.is_large() { FIRST_LARGE } else { FIRST };
        search.until = Some(self.begun + self.time().mul_f64(first));
        search.look();
        self.keep(kind, &search);
        self.searches.push((kind, search));
    }

    /// Memory that may be taken beside that of the searches so far, which is kept until the end.
    fn room(&self) -> Bytes {
        let taken: u64 = self.searches.iter().map(|(_, search)| search.oracle.takes.0).sum();
        Bytes(self.spec.memory.0.saturating_sub(taken))
    }

    fn time(&self) -> Duration {
        if self.spec.quick { QUICK } else { FULL }
    }

    /// Goes on, until the time is over, with all searches that have an open level, by turns.
    fn look_again(&mut self) {
        let end = self.begun + self.time();
        let mut searches = std::mem::take(&mut self.searches);
        for (_, search) in &mut searches {
            search.until = Some(end);
        }
        while Instant::now() < end && searches.iter().any(|(_, search)| search.is_open()) {
            for (kind, search) in searches.iter_mut().filter(|(_, search)| search.is_open()) {
                search.look();
                self.keep(*kind, search);
            }
        }
        self.searches = searches;
    }

    /// A splintered page takes an entry for each part that is touched: there is no number of such pages that a TLB holds.
    fn large_levels(&mut self, kind: PageKind) {
        match self.splintered(kind) {
            Some(parts) => self.tlb.levels.push(splintered(kind, parts)),
            None => self.levels(kind),
        }
    }

    /// The parts that the host splinters pages of a kind into.
    fn splintered(&self, kind: PageKind) -> Option<Bytes> {
        let parts = self.tlb.host_backing.verdict.parts()?;
        (kind.x86_size() > parts).then_some(parts)
    }

    /// What a search found by now, in place of what it had found before.
    fn keep(&mut self, kind: PageKind, search: &Search<'_, Live<'_>>) {
        let levels = &mut self.tlb.levels;
        let at = levels
            .iter()
            .position(|level| level.kind == kind)
            .unwrap_or(levels.len());
        levels.retain(|level| level.kind != kind);
        let told: Vec<Level> = (1..)
            .zip(search.levels())
            .map(|(n, found)| level_of(kind, n, found))
            .collect();
        levels.splice(at..at, told);
    }

    /// The end of a search: all that it measured, and its warnings.
    fn close(&mut self, kind: PageKind, search: &Search<'_, Live<'_>>) {
        if let Some(why) = search.oracle.disproved() {
            self.tlb.levels.retain(|level| level.kind != kind);
            return self.warning("tlb-not-measured", format!("{kind} pages were not measured: {why}"));
        }
        self.tlb.memory.push(search.oracle.memory.clone());
        self.tlb.dropped += search.survey.disturbed;
        self.tlb.curves.extend(curves(kind, &search.survey));
        let numbered = (1..).zip(search.levels());
        self.warnings
            .extend(numbered.filter_map(|(number, level)| contention(kind, number, level)));
        if search.levels().next().is_none() {
            self.warning(
                "tlb-no-knee",
                format!("the cost of {kind} pages never rises: no level shows"),
            );
        }
    }

    /// The entries of a level and what a miss adds, in cycles.
    fn entries(&self, kind: PageKind, level: u8) -> Option<(Entries, f64)> {
        let level = self.tlb.level(kind, level)?;
        Some((level.entries?, level.miss_cycles?.median))
    }

    fn walks(&mut self) {
        let thorough = !self.spec.quick;
        for &kind in &self.spec.kinds {
            let mut footprints = walks::footprints(kind, thorough);
            let rounds = if thorough { 12 } else { 6 };
            let other = Self::other(kind);
            // The largest are those of the costliest walks: a small control group has the others.
            let needed = |bytes: &Bytes| walks::takes(kind, other, *bytes);
            if let Some(large) = footprints.iter().copied().find(|bytes| needed(bytes) > self.room()) {
                let why = format!(
                    "walks over {large} of page tables and more take {} of memory, and {} may be taken",
                    needed(&large),
                    self.room()
                );
                self.warning("tlb-walks", format!("{kind} pages: {why}"));
                footprints.retain(|bytes| *bytes < large);
            }
            if footprints.is_empty() {
                continue;
            }
            match walks::walks(kind, other, &footprints, rounds, self.clock) {
                Ok(walks) => self.tlb.walks.extend(walks),
                Err(error) => self.warning("tlb-walks", format!("walks of {kind} pages were not measured: {error}")),
            }
        }
    }

    fn backing(&mut self) {
        if self.spec.is_emulated {
            self.tlb.host_backing = backing::emulated();
            return;
        }
        let large = self.split(PageKind::Thp, PageKind::Base, SAMPLED, [LINES_ANYWAY, 256]);
        // 1 GiB pages only where the pool has one: taking one cannot be made up for.
        let has_huge = self.spec.kinds.contains(&PageKind::HUGETLB_1G);
        let huge = has_huge.then(|| self.split(PageKind::HUGETLB_1G, PageKind::Thp, 1, [LINES_ANYWAY / 2, 128]));
        self.tlb.host_backing = backing::verdict(large, huge.flatten(), self.spec.in_vm);
    }

    /// Visits half as many lines again as the first level has entries for the small pages, `most` at the most; `unknown` where that is not known.
    fn split(&mut self, large: PageKind, small: PageKind, count: u64, [unknown, most]: [u32; 2]) -> Option<Split> {
        let level = self.entries(small, 1);
        let lines = level.map_or(unknown, |(entries, _)| (entries.high * 3 / 2).min(most));
        let mut sampled = match Sampled::new(large, small, count, lines.into(), self.clock, self.room()) {
            Ok(sampled) => sampled,
            Err(error) => {
                self.warning(
                    "tlb-backing",
                    format!("{large} pages were not sampled, host backing is not judged: {error}"),
                );
                return None;
            }
        };
        let passes = if self.spec.quick { 16 } else { 48 };
        Some(backing::sample(&mut sampled, lines, passes, self.stop))
    }

    /// Cycles become ns by the core clock of the whole run.
    fn finish(mut self, ticks_per_ns: f64) -> (Tlb, Vec<Warning>) {
        for (kind, search) in std::mem::take(&mut self.searches) {
            self.close(kind, &search);
        }
        self.cycles_per_tick
            .extend((0..50).map(|_| self.clock.cycles_per_tick()));
        let ghz: Vec<f64> = self.cycles_per_tick.iter().map(|ratio| ratio * ticks_per_ns).collect();
        self.tlb.core_ghz = stats::estimate(&ghz);
        let in_ns = |cycles: Estimate| self.tlb.core_ghz.map(|ghz| cycles.scaled(1.0 / ghz.median));
        for level in &mut self.tlb.levels {
            level.miss_ns = level.miss_cycles.and_then(in_ns);
        }
        for walk in &mut self.tlb.walks {
            walk.ns = in_ns(walk.cycles).unwrap_or(walk.cycles);
        }
        self.tlb.seconds = self.begun.elapsed().as_secs_f64();
        self.warnings.extend(self.tlb.levels.iter().filter_map(unknown));
        self.warnings.extend(self.tlb.disagreements());
        self.tlb.widen();
        self.warnings.extend(self.tlb.unconfirmed());
        (self.tlb, self.warnings)
    }
}
