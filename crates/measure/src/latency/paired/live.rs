//! Draws on the real machine: new arenas, then visits that begin with a warm-up and are timed in their second half.

use std::time::{Duration, Instant};

use chase::block::Block;
use chase::thread::Pinned;
use model::headline::host_lines;
use model::latency::{Access, Backed, Pattern};
use model::{Bytes, PageKind};

use super::draws::Bench;
use crate::Error;
use crate::latency::Spec;
use crate::latency::arenas::Arenas;
use crate::latency::plan::Target;
use crate::latency::sweep::Bench as _;
use crate::latency::visit;

/// After a parallel warm-up a visit walks so long before it is timed, and so long while it is. Seen on a Zen 5 guest, visits of 50 ms
/// without that warm-up show the same ratio as visits of a second, within 3 points.
const WALK: [Duration; 2] = [Duration::from_millis(15), Duration::from_millis(35)];
/// The same of a working set that the private cache holds.
const SHORT_WALK: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(6)];
/// Undisturbed blocks of which a visit has a time.
const LEAST_BLOCKS: usize = 8;

pub(super) struct Live<'a> {
    spec: &'a Spec,
    stop: &'a dyn Fn() -> bool,
    pub(super) pinned: Pinned,
    begun: Instant,
    targets: Vec<Target>,
    proofs: &'a mut [(Backed, Option<String>)],
    host_lines: &'a mut Vec<f64>,
}

impl<'a> Live<'a> {
    pub(super) fn new(
        spec: &'a Spec,
        proofs: &'a mut [(Backed, Option<String>)],
        host_lines: &'a mut Vec<f64>,
        stop: &'a dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let target = |bytes: Bytes, kind| Target {
            kind,
            bytes,
            pattern: Pattern::RandomLine,
            access: Access::Read,
        };
        let sizes = spec.sizes.iter();
        let targets: Vec<Target> = sizes
            .flat_map(|&bytes| spec.kinds.iter().map(move |&kind| target(bytes, kind)))
            .collect();
        Ok(Self {
            spec,
            stop,
            pinned: Pinned::to(spec.cpu).map_err(Error::Pin)?,
            begun: Instant::now(),
            proofs,
            host_lines,
            targets,
        })
    }

    fn walks(&self, bytes: Bytes) -> [Duration; 2] {
        match self.spec.private_cache {
            Some(private) if bytes <= private => SHORT_WALK,
            _ => WALK,
        }
    }
}

impl Bench for Live<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn draw(&mut self, number: u32, visits: &[usize]) -> Result<Vec<Option<f64>>, Error> {
        let spec = Spec {
            seed: self.spec.seed ^ u64::from(number) << 40,
            ..self.spec.clone()
        };
        let mut arenas = Arenas::take(&spec, &spec.kinds, &self.pinned, &mut |_| !(self.stop)());
        Error::if_stopped(self.stop)?;
        let mut live = visit::Live::new(&mut arenas, &self.targets, &spec, self.stop);
        let mut times = Vec::new();
        for &point in visits {
            Error::if_stopped(self.stop)?;
            let [before, timed] = self.walks(self.targets[point].bytes);
            let is_there = live.enter_soon(point);
            times.push(is_there.then(|| {
                live.walk(point, before);
                middle(&live.walk(point, timed))
            }));
        }
        drop(live);
        for (at, target) in self.targets.iter().enumerate() {
            if let Some(held) = arenas.of(target.kind) {
                let (backed, why) = held.prove(target.bytes);
                self.proofs[at] = (backed, why.map(|why| why.to_string()));
            }
        }
        let largest = spec.sizes.iter().max().copied();
        let frames = largest.and_then(|bytes| arenas.of(PageKind::Base)?.frames(bytes));
        self.host_lines.extend(frames.and_then(|frames| host_lines(&frames)));
        // Pages may have been split or collapsed while they were timed.
        let is_proved = |point: &usize| self.proofs[*point].1.is_none();
        let proved = visits.iter().zip(times);
        Ok(proved
            .map(|(point, time)| time.flatten().filter(|_| is_proved(point)))
            .collect())
    }
}

/// The median of the undisturbed blocks.
fn middle(blocks: &[Block]) -> Option<f64> {
    let undisturbed = blocks.iter().filter(|block| !block.is_disturbed());
    let ticks: Vec<f64> = undisturbed.map(|block| block.ticks).collect();
    stats::median(&ticks).filter(|_| ticks.len() >= LEAST_BLOCKS)
}
