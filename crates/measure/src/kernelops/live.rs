//! Visits on the real machine.

use std::time::{Duration, Instant};

use model::NotMeasured;

use super::crew::{self, Failed};
use super::plan::{self, Target};
use super::samples::Visit;
use super::spec::Spec;
use super::sweep::Bench;
use super::worker::Job;
use crate::Error;

/// The real machine.
pub(super) struct Live<'a> {
    spec: &'a Spec,
    targets: &'a [Target],
    stop: &'a dyn Fn() -> bool,
    begun: Instant,
}

impl<'a> Live<'a> {
    pub(super) fn new(spec: &'a Spec, targets: &'a [Target], stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            spec,
            targets,
            stop,
            begun: Instant::now(),
        }
    }

    fn jobs(&self, target: &Target, slice: Duration) -> Vec<Job> {
        let places = plan::places(target, &self.spec.cpus);
        let job = |(worker, (cpu, other_cpu)): (u32, (u32, u32))| Job {
            op: plan::share(target.op, worker, target.workers),
            cpu,
            other_cpu,
            slice,
            parent: std::process::id(),
        };
        (0..).zip(places).map(job).collect()
    }
}

impl Bench for Live<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn visit(&mut self, point: usize, slice: Duration) -> Result<Visit, Error> {
        let target = &self.targets[point];
        if let Some(why) = plan::impossible(target, self.spec) {
            return Ok(Err(why));
        }
        match crew::visit(&self.spec.program, &self.jobs(target, slice), self.stop) {
            Ok(taken) => Ok(Ok(taken)),
            Err(Failed::This(why)) => Ok(Err(NotMeasured::Refused(why))),
            Err(Failed::All(error)) => Err(error),
        }
    }
}
