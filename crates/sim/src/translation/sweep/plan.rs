//! The points of a sweep: numbered once for all shards.

use model::Bytes;

use super::file::Sweep;
use super::head::{Digest, Head, Source};
use super::parameters::Parameters;
use super::shard::Shard;
use super::typed::{SweepError, Typed};
use super::{LeftOut, Point, SweepResult, SweptMachine};
use crate::translation::machine::{Machine, MachineError};
use crate::translation::patterns::Pattern;
use crate::translation::study::{MachineFacts, Setting, possible, unknown};

/// A sweep has at most so many points: their lines are read whole.
pub const MOST_POINTS: u64 = 100_000;

/// Where the accesses of a point come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A pattern.
    Pattern(Pattern),
    /// A trace's file.
    Trace(String),
}

impl Input {
    /// As the sweep names it.
    pub fn name(&self) -> &str {
        match self {
            Self::Pattern(pattern) => pattern.name(),
            Self::Trace(name) => name,
        }
    }
}

/// Everything that a sweep simulates.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The head of the file of points, of the whole sweep.
    pub head: Head,
    pub(super) sweep: Sweep,
    pub(super) machines: Vec<Machine>,
    pub(super) inputs: Vec<Input>,
    pub(super) units: Vec<Unit>,
    left_out: Vec<LeftOut>,
}

/// Points that share a simulation: they differ in what weighs its counts.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) machine: usize,
    pub(super) input: usize,
    pub(super) working_set: Option<Bytes>,
    pub(super) setting: Setting,
    /// The parameters of each point.
    pub(super) points: Vec<Parameters>,
    /// The number of the first one.
    pub(super) first: u64,
}

impl Unit {
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.points.len() as u64
    }
}

impl Plan {
    /// The points of a sweep; `machine` knows machines by name, `digest` traces.
    ///
    /// # Errors
    /// With file and line, if a machine or trace is not there, a value fits no machine, or there are too many points.
    pub fn new<E: std::fmt::Display, F: std::fmt::Display>(
        sweep: Sweep,
        seed: u64,
        machine: impl Fn(&str) -> Result<Machine, E>,
        digest: impl Fn(&str) -> Result<Digest, F>,
    ) -> Result<Self, SweepError> {
        limit(&sweep)?;
        let known = |typed: &Typed<String>| {
            let found = machine(&typed.value);
            found.map_err(|why| sweep.wrong(typed.line, format!("machines: {why}")))
        };
        let machines = sweep.machines.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        let source = |typed: &Typed<String>| {
            let digest = digest(&typed.value).map_err(|why| sweep.wrong(typed.line, format!("traces: {why}")))?;
            Ok(Source::new(&typed.value, digest))
        };
        let traces = sweep
            .traces
            .iter()
            .map(source)
            .collect::<Result<Vec<_>, SweepError>>()?;
        let patterns = sweep.patterns.iter().map(|&pattern| Input::Pattern(pattern));
        let files = sweep.traces.iter().map(|trace| Input::Trace(trace.value.clone()));
        let inputs: Vec<Input> = patterns.chain(files).collect();
        let (units, left_out) = units(&sweep, &machines, &inputs)?;
        let points = units.iter().map(|unit| unit.points.len() as u64).sum();
        Ok(Self {
            head: Head::new(&sweep, &machines, traces, seed, points),
            sweep,
            machines,
            inputs,
            units,
            left_out,
        })
    }

    /// Numbers of the points of a shard, or of all.
    pub fn numbers(&self, shard: Option<Shard>) -> impl Iterator<Item = u64> + '_ {
        self.units_of(shard).flat_map(Unit::numbers)
    }

    pub(super) fn units_of(&self, shard: Option<Shard>) -> impl Iterator<Item = &Unit> {
        let is_in = move |number: usize| shard.is_none_or(|shard| shard.has(number));
        let units = self.units.iter().enumerate();
        units.filter(move |(number, _)| is_in(*number)).map(|(_, unit)| unit)
    }

    /// Is that line the point that this sweep has under its number?
    pub fn has(&self, point: &Point) -> bool {
        let after = self.units.partition_point(|unit| unit.first <= point.point);
        let Some(unit) = after.checked_sub(1).map(|place| &self.units[place]) else {
            return false;
        };
        let parameters = usize::try_from(point.point - unit.first).ok();
        let parameters = parameters.and_then(|place| unit.points.get(place));
        parameters.is_some_and(|parameters| parameters.is_same(&point.parameters))
            && point.seed == self.head.seed
            && point.machine == self.sweep.machines[unit.machine].value
            && point.input == self.inputs[unit.input].name()
            && (point.working_set, point.setting) == (unit.working_set, unit.setting)
    }

    /// The result with these points.
    pub fn result(&self, shard: Option<Shard>, points: Vec<Point>) -> SweepResult {
        let settings: Vec<Setting> = self.sweep.settings.iter().map(|setting| setting.value).collect();
        let machine = |(machine, name): (&Machine, &Typed<String>)| SweptMachine {
            name: name.value.clone(),
            facts: MachineFacts::of(machine),
            unknown: unknown(machine, &settings),
        };
        SweepResult {
            sweep: Head {
                shard,
                ..self.head.clone()
            },
            baseline: self.sweep.baseline,
            machines: self.machines.iter().zip(&self.sweep.machines).map(machine).collect(),
            left_out: self.left_out.clone(),
            points,
        }
    }
}

/// Is it small enough, before anything is made of it?
fn limit(sweep: &Sweep) -> Result<(), SweepError> {
    let inputs = (sweep.patterns.len() as u64)
        .checked_mul(sweep.working_sets.len() as u64)
        .and_then(|patterns| patterns.checked_add(sweep.traces.len() as u64));
    let axes = [
        inputs,
        Some(sweep.machines.len() as u64),
        Some(sweep.settings.len() as u64),
        sweep.parameters.count(),
    ];
    let all = axes
        .into_iter()
        .try_fold(1_u64, |product, count| product.checked_mul(count?));
    match all {
        Some(count) if count <= MOST_POINTS => Ok(()),
        _ => Err(SweepError::Missing {
            file: sweep.file.clone(),
            why: format!("the axes have more than {MOST_POINTS} combinations: write several files with shorter axes"),
        }),
    }
}

/// Every combination that its machine can do, in the order of the file's axes.
fn units(sweep: &Sweep, machines: &[Machine], inputs: &[Input]) -> Result<(Vec<Unit>, Vec<LeftOut>), SweepError> {
    let (mut units, mut left_out, mut first) = (Vec::new(), Vec::new(), 0);
    let mut is_used = vec![false; sweep.settings.len()];
    for (number, machine) in machines.iter().enumerate() {
        let name = &sweep.machines[number].value;
        let settings = possible_settings(sweep, machine, name, &mut is_used, &mut left_out);
        let structures = possible_structures(sweep, machine, name, &mut left_out);
        for (place, input) in inputs.iter().enumerate() {
            for working_set in working_sets(sweep, input) {
                for &setting in &settings {
                    for &structure in &structures {
                        let points = sweep.parameters.costs(structure);
                        let unit = Unit {
                            machine: number,
                            input: place,
                            working_set,
                            setting,
                            first,
                            points,
                        };
                        first = unit.numbers().end;
                        units.push(unit);
                    }
                }
            }
        }
    }
    let mut settings = sweep.settings.iter().zip(&is_used);
    if let Some((setting, _)) = settings.find(|(_, used)| !**used) {
        let why = left_out.iter().find(|left| left.what == setting.value.to_string());
        let why = why.map_or("no machine can do it", |left| &left.why);
        return Err(sweep.wrong(setting.line, format!("{}: {why}", setting.value)));
    }
    match units.is_empty() {
        true => Err(sweep.wrong(1, "no machine has a second-level TLB that can be of any of l2_tlb_size")),
        false => Ok((units, left_out)),
    }
}

fn working_sets(sweep: &Sweep, input: &Input) -> Vec<Option<Bytes>> {
    match input {
        Input::Pattern(_) => sweep.working_sets.iter().copied().map(Some).collect(),
        Input::Trace(_) => vec![None],
    }
}

fn possible_settings(
    sweep: &Sweep,
    machine: &Machine,
    name: &str,
    is_used: &mut [bool],
    left_out: &mut Vec<LeftOut>,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (setting, used) in sweep.settings.iter().zip(is_used) {
        match possible(machine, setting.value) {
            Ok(()) => {
                *used = true;
                settings.push(setting.value);
            }
            Err(why) => left_out.push(LeftOut {
                machine: name.to_owned(),
                what: setting.value.to_string(),
                why: why.to_string(),
            }),
        }
    }
    settings
}

fn possible_structures(sweep: &Sweep, machine: &Machine, name: &str, left_out: &mut Vec<LeftOut>) -> Vec<Parameters> {
    let (can, cannot): (Vec<Parameters>, Vec<Parameters>) = sweep
        .parameters
        .structures()
        .into_iter()
        .partition(|structure| structure.applied(machine).is_some());
    left_out.extend(cannot.into_iter().map(|structure| LeftOut {
        machine: name.to_owned(),
        what: structure.words(),
        why: "its second-level TLB would have no whole number of sets".to_owned(),
    }));
    can
}

/// Machines without a file: those of the CPU table.
impl Plan {
    /// The points of a sweep over CPUs of the table and patterns alone.
    ///
    /// # Errors
    /// As [`Self::new`]; files are not read.
    pub fn of_table(sweep: Sweep, seed: u64) -> Result<Self, SweepError> {
        let machine = |name: &str| -> Result<Machine, MachineError> { Machine::by_id(name) };
        Self::new(sweep, seed, machine, |_| Err::<Digest, _>("no file is read here"))
    }
}
