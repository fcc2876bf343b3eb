//! Counters of a run: which are available on this machine, why the others are not, and what their counts mean.

use chase::counters::NOT_BACKED;
use chase::counters::program::{Countable, Event};
use host::snapshot::Cpu;
use host::{Distances, Snapshot};
use model::compare::Metric;
use placement::{Collector, MOST_CPUS};
use process::Process;

use crate::Error;

/// Intel's DTLB_LOAD_MISSES.WALK_ACTIVE (before Skylake WALK_DURATION) by family-6 model, in perf's raw form, from the event
/// lists that Intel publishes (github.com/intel/perfmon). Hybrid CPUs are left out: their two kinds of cores differ.
const WALK_CYCLES: [(u64, &[u32]); 3] = [
    // Haswell, Broadwell.
    (0x1008, &[0x3c, 0x3d, 0x3f, 0x45, 0x46, 0x47, 0x4f, 0x56]),
    // Skylake to Rocket Lake and Ice Lake servers.
    (
        0x0100_1008,
        &[
            0x4e, 0x55, 0x5e, 0x66, 0x6a, 0x6c, 0x7d, 0x7e, 0x8c, 0x8d, 0x8e, 0x9e, 0xa5, 0xa6, 0xa7,
        ],
    ),
    // Sapphire, Emerald and Granite Rapids.
    (0x0100_1012, &[0x8f, 0xad, 0xae, 0xcf]),
];

#[derive(Clone, Debug, Default)]
pub struct Counting {
    /// What is counted: what a program opens counters for.
    pub(super) events: Vec<Countable>,
    /// What is not, and why.
    not: Vec<(Metric, String)>,
    /// The CPUs on which the time of a program is counted, by a clock for each; none on a machine with too many.
    pub(super) cpus: Vec<u32>,
    distances: Distances,
}

impl Counting {
    /// Where a program runs, and no events.
    pub(crate) fn places(snapshot: &Snapshot) -> Self {
        let cpus = snapshot.topology.cpus.iter().map(|cpu| cpu.cpu);
        Self {
            cpus: Some(cpus.collect())
                .filter(|cpus: &Vec<u32>| cpus.len() <= MOST_CPUS)
                .unwrap_or_default(),
            distances: Distances::of(&snapshot.topology),
            ..Self::default()
        }
    }

    /// Tries every event.
    pub fn here(snapshot: &Snapshot) -> Self {
        let walks = walk_cycles(&snapshot.cpu)
            .map(Event::WalkCycles)
            .ok_or_else(|| "no event for the cycles of page walks is known for this CPU".to_owned());
        let places = Self::places(snapshot);
        // What collects where a program runs counts its moves.
        let migrations = places
            .cpus
            .is_empty()
            .then_some((Metric::Migrations, Ok(Event::Migrations)));
        let hardware = [
            (Metric::Instructions, Ok(Event::Instructions)),
            (Metric::DtlbMisses, Ok(Event::DtlbMisses)),
            (Metric::WalkCycles, walks),
        ];
        let Self { events, not, .. } = Self::of(migrations.into_iter().chain(hardware), Countable::probe);
        Self { events, not, ..places }
    }

    fn of(
        wanted: impl IntoIterator<Item = (Metric, Result<Event, String>)>,
        probe: impl Fn(Event) -> Result<Countable, String>,
    ) -> Self {
        let mut counting = Self::default();
        for (metric, event) in wanted {
            match event.and_then(&probe) {
                Ok(countable) => counting.events.push(countable),
                Err(why) => counting.not.push((metric, why)),
            }
        }
        counting
    }

    /// Are all of these metrics that need counters counted here?
    ///
    /// # Errors
    /// Why the first that is not cannot be.
    pub(crate) fn must_count<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        names.try_for_each(
            |name| match Metric::named(name).and_then(|metric| self.why_not(metric)) {
                Some(why) => Err(Error::asked(format!("--metric {name}"), why)),
                None => Ok(()),
            },
        )
    }

    /// Why a metric is not counted here; `None` if it is, or needs no counter.
    fn why_not(&self, metric: Metric) -> Option<&str> {
        let needs: &[Metric] = match metric {
            Metric::DtlbMpki => &[Metric::Instructions, Metric::DtlbMisses],
            Metric::Instructions | Metric::DtlbMisses | Metric::WalkCycles => &[metric],
            _ => &[],
        };
        let lacks = self.not.iter().find(|(lacking, _)| needs.contains(lacking));
        lacks.map(|(_, why)| why.as_str())
    }

    /// What a reader of the counts must know: that there are none, which is missing, or what they leave out.
    pub(crate) fn note(&self) -> Option<String> {
        let hardware: Vec<&Countable> = self
            .events
            .iter()
            .filter(|countable| countable.event.is_hardware())
            .collect();
        let first = self.not.iter().find(|(metric, _)| metric.is_hardware());
        match first {
            Some((_, why)) if hardware.is_empty() => return Some(why.clone()),
            Some((metric, why)) => return Some(format!("no {}: {why}", metric.name())),
            None => {}
        }
        let user_only = hardware.iter().any(|countable| countable.user_only);
        user_only.then(|| {
            "hardware counters count user mode only: lower kernel.perf_event_paranoid to 1 or run with sudo for the rest".to_owned()
        })
    }

    /// What collects where a program runs, if it opened its clocks.
    pub(super) fn collector(&self, process: &mut Process) -> Option<Collector> {
        Collector::of(process, &self.cpus, &self.distances)?.ok()
    }

    /// Likewise of a process that runs, from now on.
    pub(crate) fn collector_of_running(&self, pid: u32) -> Option<Collector> {
        let is_wanted = !self.cpus.is_empty();
        is_wanted.then(|| Collector::of_running(pid, &self.cpus, &self.distances).ok())?
    }
}

/// The code of this CPU's event for cycles of page walks.
fn walk_cycles(cpu: &Cpu) -> Option<u64> {
    let is_intel = cpu.vendor.known().is_some_and(|vendor| vendor == "GenuineIntel") && cpu.family.known() == Some(&6);
    let model = cpu.model.known().filter(|_| is_intel)?;
    let known = WALK_CYCLES.iter().find(|(_, models)| models.contains(model));
    known.map(|(code, _)| *code)
}

/// Counts as metrics. Hardware that saw no instruction counted nothing at all; that is said instead.
pub(super) fn metrics(counts: &[(Event, f64)]) -> (Vec<(Metric, f64)>, Option<&'static str>) {
    let of = |wanted: fn(&Event) -> bool| counts.iter().find(|(event, _)| wanted(event)).map(|(_, count)| *count);
    let instructions = of(|event| *event == Event::Instructions);
    let misses = of(|event| *event == Event::DtlbMisses);
    let mut metrics: Vec<(Metric, Option<f64>)> = vec![(Metric::Migrations, of(|event| *event == Event::Migrations))];
    let is_dead = instructions == Some(0.0);
    if !is_dead {
        let mpki = misses
            .zip(instructions)
            .map(|(misses, instructions)| misses / instructions * 1e3);
        metrics.extend([
            (Metric::Instructions, instructions),
            (Metric::DtlbMisses, misses),
            (Metric::DtlbMpki, mpki),
            (Metric::WalkCycles, of(|event| matches!(event, Event::WalkCycles(_)))),
        ]);
    }
    let there = metrics.into_iter().filter_map(|(metric, value)| Some((metric, value?)));
    (there.collect(), is_dead.then_some(NOT_BACKED))
}

#[cfg(test)]
#[path = "counted_tests.rs"]
mod tests;
