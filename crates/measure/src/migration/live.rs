//! A visit on the real machine: passes over a ring on one CPU, a move, and the first pass on the other.

use std::time::{Duration, Instant};

use chase::arena::{Arena, Want};
use chase::order::Order;
use chase::ring::{Rings, Slot};
use chase::thread::{Pinned, current_cpu, involuntary_switches, stay_on};
use model::latency::{Access, Backed, Pattern};
use model::{Bytes, NotMeasured};

use super::spec::Spec;
use crate::Error;
use crate::proof::prove;

/// Passes that bring the memory into the caches of a CPU. Writes also take it out of those of the other.
const WARM_PASSES: u32 = 2;
/// A visit takes so long, and has so many moves at least and at most.
const VISIT: Duration = Duration::from_millis(15);
const LEAST_MOVES: usize = 4;
const MOST_MOVES: usize = 40;

/// Memory of each size with a ring in it.
pub(super) struct Bench {
    fields: Vec<Field>,
    page: model::PageKind,
    /// Gives the thread back the CPUs that it had.
    _pinned: Pinned,
}

struct Field {
    rings: Rings,
    slot: Slot,
    nodes: u64,
    bytes: Bytes,
    /// Of the last visit.
    took: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moved {
    /// A pass where it was, in ns.
    pub(super) stay: f64,
    pub(super) call: f64,
    /// The first pass there.
    pub(super) there: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Visit {
    pub(super) moves: Vec<Moved>,
    pub(super) dropped: u64,
}

impl Bench {
    pub(super) fn new(spec: &Spec) -> Result<Self, Error> {
        let field = |&bytes: &Bytes| Field::new(spec, bytes);
        Ok(Self {
            fields: spec.sizes.iter().map(field).collect::<Result<_, Error>>()?,
            page: spec.page,
            _pinned: Pinned::to(None).map_err(Error::Pin)?,
        })
    }

    /// What backs the memory of a size, and why that may not do.
    pub(super) fn prove(&self, size: usize) -> (Backed, Option<NotMeasured>) {
        let field = &self.fields[size];
        prove(self.page, field.rings.arena().address(), field.bytes)
    }

    /// How long the next visit will take.
    pub(super) fn expected(&self, size: usize) -> Duration {
        self.fields[size].took
    }

    pub(super) fn visit(&mut self, size: usize, pair: [u32; 2]) -> Result<Visit, Error> {
        let field = &mut self.fields[size];
        let begun = Instant::now();
        let mut visit = Visit::default();
        let mut tries = 0;
        let [mut from, mut to] = pair;
        while tries < LEAST_MOVES || (tries < MOST_MOVES && begun.elapsed() < VISIT) {
            match field.moved(from, to)? {
                Some(moved) => visit.moves.push(moved),
                None => visit.dropped += 1,
            }
            tries += 1;
            (from, to) = (to, from);
        }
        field.took = begun.elapsed();
        Ok(visit)
    }
}

impl Field {
    fn new(spec: &Spec, bytes: Bytes) -> Result<Self, Error> {
        let no_memory = |why: String| Error::Spec(format!("{bytes} of {} memory: {why}", spec.page));
        let arena = Arena::new(&Want::plain(spec.page, bytes)).map_err(|why| no_memory(why.to_string()))?;
        let order = Order::new(Pattern::RandomLine, bytes, spec.seed);
        let order = order.ok_or_else(|| no_memory("it holds fewer than two lines".to_owned()))?;
        let (slot, nodes) = (Slot::SCRATCH, order.nodes());
        let mut rings = Rings::new(arena);
        rings.lay(&[(slot, order)]);
        Ok(Self {
            rings,
            slot,
            nodes,
            bytes,
            took: Duration::ZERO,
        })
    }

    /// `None` if something came between.
    fn moved(&mut self, from: u32, to: u32) -> Result<Option<Moved>, Error> {
        pin(from)?;
        (0..WARM_PASSES).for_each(|_| self.pass());
        // The same call without a move, so that both passes follow a call into the kernel.
        pin(from)?;
        let stay = self.timed_pass(from);
        self.pass();
        let before = Instant::now();
        pin(to)?;
        let call = before.elapsed().as_nanos() as f64;
        let there = self.timed_pass(to);
        Ok(stay.zip(there).map(|(stay, there)| Moved { stay, call, there }))
    }

    fn pass(&mut self) {
        self.rings.walk(self.slot, Access::Write, self.nodes);
    }

    /// In ns, if the thread was not interrupted by another one and was on that CPU.
    fn timed_pass(&mut self, cpu: u32) -> Option<f64> {
        let switches = involuntary_switches();
        let is_there = current_cpu() == cpu;
        let before = Instant::now();
        self.pass();
        let took = before.elapsed().as_nanos() as f64;
        (is_there && current_cpu() == cpu && involuntary_switches() == switches).then_some(took)
    }
}

fn pin(cpu: u32) -> Result<(), Error> {
    stay_on(cpu).map_err(|error| Error::Stay {
        cpu,
        source: error.into(),
    })
}
