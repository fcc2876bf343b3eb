//! A program under several page policies, from what is asked to the result: which design it takes, and why.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::Snapshot;
use model::compare::{Because, Method};

use crate::arms::{self, Arms};
use crate::around::{Around, Event};
use crate::design;
use crate::flip::Span;
use crate::inplace::{self, Own, Pair, Whose};
use crate::interim::LEAST;
use crate::live::{self, Arm, Counting, Live};
use crate::metric::{Asked, From};
use crate::preload;
use crate::request::{Request, Task};
use crate::room::Room;
use crate::runlog::{Head, RunLog};
use crate::slices::{self, Plan, Slices};
use crate::threads::Threads;
use crate::{Error, Outcome, Spec, experiment};

/// Long against a switch between programs, short against what changes on a machine.
const SLICE: Duration = Duration::from_millis(500);
/// A server may load its data before it is ready, and a program that is silent for longer may never end.
pub const START_TIMEOUT: Duration = Duration::from_secs(120);

/// What is compared, with everything that could be found out before a program is started.
pub struct Comparison<'a> {
    request: &'a Request,
    snapshot: &'a Snapshot,
    around: &'a dyn Around,
    arms: Arms,
    design: Choice,
    in_place: Option<Pair>,
    counting: Counting,
}

/// A design and its reason: whole runs, slices of programs that stay alive, or slices of one whose pages change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub method: Method,
    pub reason: Because,
}

impl<'a> Comparison<'a> {
    /// Makes the arms of the program, chooses the design, and opens the log.
    ///
    /// # Errors
    /// If something that is asked for makes no sense for this program on this machine.
    pub fn prepare(
        request: &'a Request,
        snapshot: &'a Snapshot,
        around: &'a dyn Around,
        log: &mut RunLog<'_>,
    ) -> Result<Self, Error> {
        let in_place = Pair::new(request, Whose::Own, snapshot);
        let design = Choice::of(request, &in_place, log.design()?)?;
        let counting = Counting::here(snapshot);
        counting.must_count(request.task.asked.iter().map(|asked| asked.wanted.name.as_str()))?;
        let mut arms = arms::resolve(request, snapshot)?;
        let design = if arms.are_alone() {
            design.alone(request)?
        } else {
            design
        };
        if let Some(asked) = request.runs.filter(|&runs| runs < LEAST) {
            around.report(&Event::FewRuns { asked, least: LEAST });
        }
        if request.commands.is_empty() {
            around.report(&Event::Program {
                path: &arms.program.path,
                memory: arms.program.memory,
            });
        }
        let head = Head::new(request.program(), arms.names(), request, design.method, &arms.files);
        log.open(head)?;
        arms.take_ways(log)?;
        Ok(Self {
            request,
            snapshot,
            around,
            arms,
            design,
            in_place: in_place.ok(),
            counting,
        })
    }

    /// The first arm that gets its pages by collapsing alone, which takes the right to.
    pub fn only_collapsed(&self) -> Option<&str> {
        let is_only = |arm: &&Arm| arm.others.is_empty() && arm.setup.collapse.is_some();
        self.arms.live.iter().find(is_only).map(|arm| arm.name.as_str())
    }

    /// Compares by the design chosen, or by whole runs where another was not asked for and the program is not fit for it.
    ///
    /// # Errors
    /// If a run cannot be made or kept, or [`Error::Interrupted`].
    pub fn carry_out(mut self, stop: &dyn Fn() -> bool, log: &mut RunLog<'_>) -> Result<Outcome, Error> {
        let is_preloaded = |arm: &Arm| {
            let mut setups = arm.others.iter().chain([&arm.setup]);
            setups.any(|setup| setup.preload.is_some())
        };
        if self.arms.live.iter().any(is_preloaded) {
            let library = preload::library()
                .and_then(|bytes| self.around.library(bytes))
                .map(Arc::from);
            self.arms
                .live
                .iter_mut()
                .for_each(|arm| arm.library.clone_from(&library));
        }
        experiment::within(self.request.budget, stop, |stop| self.made(stop, log))
    }

    fn made(self, stop: &dyn Fn() -> bool, log: &mut RunLog<'_>) -> Result<Outcome, Error> {
        let mut spec = self.spec(log);
        self.report_design(&spec);
        if spec.method == Method::Runs {
            return self.whole_runs(&spec, stop, log);
        }
        let is_asked = self.design.is_asked();
        let made = self.slices(&spec, stop, log).and_then(design::enough);
        let made = match spec.method {
            Method::Flip if !is_asked => made.and_then(design::in_effect),
            _ => made,
        };
        match made {
            Err(error) if !design::is_unfit(&error) => Err(error),
            Err(error) if is_asked => {
                let why = format!(
                    "{error} (--design runs starts the program anew for each run; slices take a program that goes on working and \
                     counts what it does)"
                );
                Err(Error::asked(format!("--design {}", spec.method.name()), why))
            }
            Err(error) => {
                self.fall_back(&mut spec, &error, log)?;
                self.whole_runs(&spec, stop, log)
            }
            compared => compared,
        }
    }

    fn spec(&self, log: &RunLog<'_>) -> Spec {
        let Choice { method, reason, .. } = &self.design;
        let arms = self.arms.live.iter().map(Arm::named).collect();
        log.resumed(self.request.spec(*method, reason.clone(), arms))
    }

    fn room(&self, spec: &Spec) -> Room<'_> {
        Room::of(self.request, spec, &self.arms, self.snapshot)
    }

    fn report_design(&self, spec: &Spec) {
        self.around.report(&Event::Design {
            method: spec.method,
            reason: &spec.reason,
        });
    }

    /// Whole runs follow, from the first one on: those of another design do not go with them.
    fn fall_back(&self, spec: &mut Spec, error: &Error, log: &mut RunLog<'_>) -> Result<(), Error> {
        spec.reason = Because::Tried {
            method: spec.method,
            error: error.to_string(),
        };
        spec.method = Method::Runs;
        (spec.per_start, spec.looked) = (1, Vec::new());
        spec.loads = self.request.task.loads(Method::Runs);
        log.begin_anew(Method::Runs)?;
        self.report_design(spec);
        if self.request.task.server.is_none() && !design::has_ended(error) {
            self.around.report(&Event::NeverEnded);
        }
        Ok(())
    }

    /// Of one process, or of several.
    fn slices(&self, spec: &Spec, stop: &dyn Fn() -> bool, log: &mut RunLog<'_>) -> Result<Outcome, Error> {
        let Self { request, counting, .. } = self;
        match &self.in_place {
            Some(pair) if spec.method == Method::Flip => self.in_place(pair, spec, stop, log),
            _ => {
                let plan = Plan {
                    slice: request.slice.unwrap_or(SLICE),
                    threads: request.threads.clone(),
                    patience: START_TIMEOUT,
                    warm_up: request.warm_up,
                    seed: spec.seed,
                };
                let (arms, asked) = (self.arms.live.clone(), request.task.asked.clone());
                let slices = Slices::new(arms, asked, counting.clone(), plan, stop);
                slices::compare(self.around, &self.room(spec), spec, slices, log)
            }
        }
    }

    /// Starts the program, compares it with itself, and ends it whatever happens. A program that prints its number at its end costs
    /// one run of it, and no more than the time for its start.
    fn in_place(
        &self,
        pair: &Pair,
        spec: &Spec,
        stop: &dyn Fn() -> bool,
        log: &mut RunLog<'_>,
    ) -> Result<Outcome, Error> {
        let task = &self.request.task;
        self.around.report(&Event::StartingOnce);
        let program = Arm {
            name: pair.names().join(","),
            command: task.command.clone(),
            shut_in: task.shut_in.clone(),
            ..Arm::default()
        };
        let mut own = Own::start(program, (&task.asked, task.server.clone()), &self.counting, stop)?;
        own.until_it_works(START_TIMEOUT)?;
        let pid = own.holder()?;
        let mut process = pair.open(pid, stop)?.of(own);
        process.tell_reach(self.around)?;
        let spec = pair.spec(pid, spec.clone());
        let done = log.take_whole_starts(&spec)?;
        let finished = inplace::run(&spec, done, pair, &mut process, log, self.around);
        match (finished.compared.is_ok(), process.end()) {
            // The result is there, and the program was killed.
            (true, Err(error)) if !stop() => self.around.report(&Event::NotStopped(&error)),
            _ => {}
        }
        finished.compared
    }

    fn whole_runs(&self, spec: &Spec, stop: &dyn Fn() -> bool, log: &mut RunLog<'_>) -> Result<Outcome, Error> {
        let live = Live {
            arms: self.arms.live.clone(),
            asked: self.request.task.asked.clone(),
            server: self.request.task.server.clone(),
            counting: self.counting.clone(),
            ignore_failure: self.request.ignore_failure,
            stop,
            patience: START_TIMEOUT,
            around: self.around,
            is_told: Cell::default(),
            failed: RefCell::default(),
            began: Instant::now(),
            lender: None,
            whole: Cell::default(),
            peaks: BTreeMap::new(),
        };
        live::compare(&self.arms, &self.room(spec), spec, live, log)
    }
}

impl Choice {
    /// What was typed, what finished runs were made by, or what the arms and metrics call for. `in_place` is a comparison in
    /// place of this program, or why it cannot be.
    ///
    /// # Errors
    /// If the design makes no sense of these arms and metrics.
    pub fn of(request: &Request, in_place: &Result<Pair, Error>, kept: Option<Method>) -> Result<Self, Error> {
        let choice = match request.design.or(kept) {
            Some(method) => Self::asked(request, method, in_place)?,
            None => Self::usual(request, in_place),
        };
        must_fit(request, choice.method)?;
        Ok(choice)
    }

    /// One that was typed, or that finished runs were made by.
    fn asked(request: &Request, method: Method, in_place: &Result<Pair, Error>) -> Result<Self, Error> {
        if let Some(why) = design::unfit(request, method, in_place) {
            return Err(Error::asked(format!("--design {}", method.name()), why));
        }
        let reason = match request.design {
            None => Because::Resumed,
            Some(_) => Because::Asked,
        };
        Ok(Self { method, reason })
    }

    /// Was it typed, now or before? Otherwise another takes its place where it is not available.
    pub fn is_asked(&self) -> bool {
        matches!(self.reason, Because::Asked | Because::Resumed)
    }

    /// For arms whose programs must not be alive at once.
    fn alone(self, request: &Request) -> Result<Self, Error> {
        let why = "the switches of THP sizes are the machine's, and programs that are alive at once would share them (write \
                   --design runs)";
        match self.method {
            Method::Runs => Ok(self),
            method if self.is_asked() => Err(Error::asked(format!("--design {}", method.name()), why)),
            _ => {
                must_fit(request, Method::Runs)?;
                Ok(Self {
                    method: Method::Runs,
                    reason: Because::Switches,
                })
            }
        }
    }

    /// In place where one process can be both arms; slices where all that is judged can be read of each arm while it runs.
    fn usual(request: &Request, in_place: &Result<Pair, Error>) -> Self {
        let task = &request.task;
        let is_of_one_arm = |asked: &Asked| is_counter(asked) && asked.from.as_ref().is_some_and(From::is_of_one_arm);
        let (method, reason) = if goes_on(task) && design::unfit(request, Method::Flip, in_place).is_none() {
            let is_loaded = task.server.is_some();
            (Method::Flip, if is_loaded { Because::Loads } else { Because::Counters })
        } else if task.server.is_some() {
            (Method::Runs, Because::Load)
        } else if let Some(asked) = task.asked.iter().find(|asked| !is_of_one_arm(asked)) {
            let metric = asked.wanted.name.clone();
            (Method::Runs, Because::AtEnd { metric })
        } else {
            (Method::Slices, Because::CountersOfArms)
        };
        Self { method, reason }
    }
}

/// Can everything that is judged be read while the program works? Whether a number goes up is known once it runs.
fn goes_on(task: &Task) -> bool {
    match &task.server {
        Some(server) => {
            server.ready.is_some()
                && !server.is_daemon
                && task.asked.iter().all(|asked| asked.from.is_none() || is_counter(asked))
        }
        None => task.asked.iter().all(is_counter),
    }
}

fn is_counter(asked: &Asked) -> bool {
    asked.pattern.is_some() && asked.wanted.higher
}

/// What is asked of slices, against a design that has none, or none in place.
fn must_fit(request: &Request, method: Method) -> Result<(), Error> {
    let sliced = [
        ("--slice", request.slice.is_some()),
        ("--threads", request.threads != Threads::All),
    ];
    let sliced = sliced.into_iter().find(|(_, is_asked)| *is_asked);
    if let (Method::Runs, Some((option, _))) = (method, sliced) {
        return Err(Error::asked(
            option,
            "whole runs have no slices (write --design flip or slices)",
        ));
    }
    if method != Method::Flip && request.range != Span::Anon {
        return Err(Error::asked(
            "--range",
            "memory of a range is flipped in place, which no other design does (write --design flip)",
        ));
    }
    Ok(())
}
