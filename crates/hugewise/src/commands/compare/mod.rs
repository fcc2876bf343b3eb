//! `hugewise compare`: one program under several page policies, or one process in place; pool pages on loan, finished runs kept.

mod arms;
mod design;
mod flip;
mod inplace;
mod journal;
mod living;
mod room;
mod slices;
mod ways;
mod workload;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use anyhow::bail;
use compare::flip::Span;
use compare::inplace::Whose;
use compare::live::{Arm, Counting, Live, Patience, Server};
use compare::metric::Asked;
use compare::preload;
use compare::program;
use compare::slices::{PER_START, Plan, Slices};
use compare::threads::Threads;
use compare::{Error, Executor, Outcome as Compared, Spec, Wanted};
use host::Snapshot;
use model::compare::{Compare, Ended, Method, Metric, Order, Verdict};

use self::design::{Choice, Made};
use self::inplace::InPlace;
use self::journal::{Head, Journal, Subject};
use self::room::Room;
use super::Desk;
use super::stop::Stop;
use crate::cli::typed::{self, FailIf, Format};
use crate::ui::{Outcome, Ui};

/// Blocks at most: as many pairs find an effect of 3 % in recorded noise of a busy machine.
const MOST: u32 = 30;
/// The share of false verdicts that is put up with, over all arms, metrics, looks and sessions together.
const ALPHA: f64 = 0.05;
/// Long against a switch between programs, short against what changes on a machine.
const SLICE: Duration = Duration::from_millis(500);
/// A server may load its data before it is ready, and a program of which nothing is heard for longer may never end.
const PATIENCE: Duration = Duration::from_secs(120);
/// What is said of a program that may never end.
const WAITS: &str = "and whole runs wait for that (Ctrl-C stops them; or give it an end, or write --design slices)";

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Compare) -> anyhow::Result<Outcome> {
    desk.must_be_live("comparing")?;
    let form = desk.form::<Compare>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    if let Some(pid) = typed.live {
        return living::run(desk, typed, pid, &snapshot, form);
    }
    let task = Task::of(typed)?;
    let program = program::look(&task.command[0], std::env::var_os("PATH").as_deref())?;
    let program = program.behind(preload::given().as_deref());
    let load = task.server.as_ref().map(|server| server.load.as_str());
    let in_place = InPlace::new(typed, Whose::Own, &task.asked, load, &snapshot);
    let design = design::choose(typed, &task, &in_place, journal::design(typed)?)?;
    must_fit(typed, &design)?;
    let mut arms = arms::resolve(typed, &task.command, &program, &snapshot)?;
    desk.ui
        .note(&format!("{} is {}", program.path.display(), program.memory.title()));
    let mut journal = Journal::open(
        typed,
        head(desk.seed, task.words(), arms.names(), &task.asked, design.method),
    )?;
    arms.take_ways(&journal)?;
    desk.seed = journal.seed();
    let spec = Spec {
        program: task.words(),
        method: design.method,
        reason: design.reason,
        arms: arms.named.clone(),
        per_start: per_start(design.method),
        looked: journal.looked().to_vec(),
        is_served: task.server.is_some(),
        ..spec(typed, &task.asked, desk.seed)
    };
    let compared = Comparison {
        ui: &desk.ui,
        typed,
        task,
        room: Room::of(typed, &spec, &arms, &program, &snapshot),
        counting: Counting::here(&snapshot.cpu),
        in_place: in_place.ok(),
        arms: arms.live,
    }
    .carry_out(spec, design.is_asked, &mut journal);
    give(desk, typed, &snapshot, form, journal, compared)
}

/// What was typed of slices, against a design that has none, or none in place.
fn must_fit(typed: &typed::Compare, design: &Choice) -> anyhow::Result<()> {
    let reason = &design.reason;
    let sliced = [
        ("--slice", typed.slice.is_some()),
        ("--threads", typed.threads != Threads::All),
    ];
    let sliced = sliced.into_iter().find(|(_, is_typed)| *is_typed);
    if let (Method::Runs, Some((option, _))) = (design.method, sliced) {
        bail!("{option}: whole runs have no slices, and here {reason} (write --design flip or slices)");
    }
    if design.method != Method::Flip && typed.range != Span::Anon {
        bail!("--range: memory is flipped in place only, and here {reason} (write --design flip)");
    }
    Ok(())
}

/// Gives the result; finished runs stay where there is none, or only a part of one.
fn give(
    desk: &mut Desk<'_>,
    typed: &typed::Compare,
    snapshot: &Snapshot,
    form: Format,
    journal: Journal,
    compared: Result<Compared, Error>,
) -> anyhow::Result<Outcome> {
    let (compared, warnings) = match compared {
        Err(Error::Interrupted) => {
            journal.tell(&desk.ui);
            return Ok(Outcome::Interrupted);
        }
        Err(error) => {
            journal.tell(&desk.ui);
            return Err(error.into());
        }
        Ok(compared) => compared,
    };
    let outcome = outcome(typed, &compared);
    let result = desk.about(snapshot, warnings, compared);
    desk.give(&result, form)?;
    if outcome == Outcome::Interrupted {
        journal.tell(&desk.ui);
    } else {
        journal.close();
    }
    Ok(outcome)
}

fn outcome(typed: &typed::Compare, compared: &Compare) -> Outcome {
    let is_bad = |verdict: Verdict| {
        typed.fail_if.iter().any(|fail_if| match fail_if {
            FailIf::Worse => verdict == Verdict::Worse,
            FailIf::NotInEffect => verdict == Verdict::NotInEffect,
            FailIf::Unknown => verdict == Verdict::Unknown,
        })
    };
    if compared.design.ended == Ended::Interrupted {
        Outcome::Interrupted
    } else if compared.verdicts.iter().any(|judged| is_bad(judged.verdict)) {
        Outcome::BadNews
    } else {
        Outcome::Done
    }
}

/// What is run, whether it was typed or comes from a recipe.
struct Task {
    command: Vec<OsString>,
    asked: Vec<Asked>,
    server: Option<Server>,
}

impl Task {
    fn of(typed: &typed::Compare) -> anyhow::Result<Self> {
        let mut task = match &typed.workload {
            Some(name) => workload::prepare(name)?,
            None => Self {
                command: typed.command.clone(),
                asked: Vec::new(),
                server: typed.load.as_ref().map(|load| Server {
                    ready: typed.ready.clone(),
                    patience: PATIENCE,
                    load: load.clone(),
                    stop: typed.stop.clone(),
                }),
            },
        };
        if let Some(server) = &mut task.server {
            // No server is waited for beyond the time of the whole comparison.
            server.patience = PATIENCE.min(typed.budget);
        }
        if !typed.metric.is_empty() {
            task.asked.clone_from(&typed.metric);
        }
        if task.asked.is_empty() {
            task.asked = vec![wall()?];
        }
        Ok(task)
    }

    fn words(&self) -> Vec<String> {
        self.command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }
}

/// What is judged if nothing else is asked.
fn wall() -> anyhow::Result<Asked> {
    Metric::Wall.name().parse().map_err(anyhow::Error::msg)
}

/// What is typed of the experiment; the program and the arms come from elsewhere.
fn spec(typed: &typed::Compare, asked: &[Asked], seed: u64) -> Spec {
    let wanted: Vec<Wanted> = asked.iter().map(|asked| asked.wanted.clone()).collect();
    Spec {
        program: Vec::new(),
        method: Method::Runs,
        reason: "a program that ends is started anew for each run".to_owned(),
        in_place: None,
        arms: Vec::new(),
        wanted,
        order: match typed.order {
            typed::Order::Mirrored => Order::Mirrored,
            typed::Order::Random => Order::Random,
        },
        most: typed.runs.unwrap_or(MOST),
        per_start: 1,
        looked: Vec::new(),
        is_served: false,
        all: typed.runs.is_some(),
        warm_up: typed.warm_up,
        smallest_effect: typed.smallest_effect,
        alpha: ALPHA,
        least_coverage: typed.least_coverage,
        budget: typed.runs.is_none().then_some(typed.budget),
        seed,
    }
}

/// Slices of each program between two starts.
fn per_start(method: Method) -> u32 {
    match method {
        Method::Slices => PER_START,
        Method::Runs | Method::Flip => 1,
    }
}

/// What finished runs are kept under.
fn head(seed: u64, program: Vec<String>, arms: Vec<String>, asked: &[Asked], design: Method) -> Head {
    let metrics = asked.iter().map(|asked| asked.wanted.name.clone()).collect();
    let subject = Subject {
        program,
        arms,
        metrics,
        design,
    };
    Head::new(seed, ALPHA, subject)
}

/// What is compared, and how it was asked for.
struct Comparison<'a> {
    ui: &'a Ui,
    typed: &'a typed::Compare,
    task: Task,
    arms: Vec<Arm>,
    /// Where it can be.
    in_place: Option<InPlace<'a>>,
    room: Room<'a>,
    counting: Counting,
}

impl Comparison<'_> {
    /// By the design chosen, or by whole runs where another was not asked for and the program is not fit for it.
    fn carry_out(self, mut spec: Spec, is_asked: bool, journal: &mut Journal) -> Result<Compared, Error> {
        let stop = Stop::on_signals().map_err(|error| Error::Keep(error.to_string()))?;
        let stopped = || stop.is_asked();
        self.tell(&spec);
        if spec.method == Method::Runs {
            return self.whole_runs(&spec, &stopped, journal);
        }
        let made = self.slices(&spec, &stopped, journal)?;
        let made = match spec.method {
            Method::Flip if !is_asked => made.in_effect(),
            _ => made,
        };
        match made {
            Made::Compared(compared) => Ok(*compared),
            Made::Unfit(error) if is_asked => Err(Error::Unfit {
                design: spec.method,
                error: Box::new(error),
            }),
            Made::Unfit(error) => {
                self.fall_back(&mut spec, &error, journal)?;
                self.whole_runs(&spec, &stopped, journal)
            }
        }
    }

    /// Whole runs follow, from the first one on: those of another design do not go with them.
    fn fall_back(&self, spec: &mut Spec, error: &Error, journal: &mut Journal) -> Result<(), Error> {
        spec.reason = format!("{} were tried: {error}", spec.method.title());
        spec.method = Method::Runs;
        (spec.per_start, spec.looked) = (1, Vec::new());
        journal.begin_anew(Method::Runs)?;
        self.tell(spec);
        if self.task.server.is_none() && !design::has_ended(error) {
            self.ui.say(&format!("it had not ended by itself, {WAITS}"));
        }
        Ok(())
    }

    /// Of one process, or of several.
    fn slices(&self, spec: &Spec, stop: &dyn Fn() -> bool, journal: &mut Journal) -> Result<Made, Error> {
        match &self.in_place {
            Some(in_place) if spec.method == Method::Flip => {
                design::made(flip::compare(self, in_place, spec, stop, journal))
            }
            _ => {
                let (arms, asked, counting) = (self.arms.clone(), self.task.asked.clone(), self.counting.clone());
                let slices = Slices::new(arms, asked, counting, self.plan(spec), stop);
                slices::compare(self.ui, &self.room, spec, slices, journal)
            }
        }
    }

    fn tell(&self, spec: &Spec) {
        self.ui.note(&format!("by {}: {}", spec.method.title(), spec.reason));
    }

    fn plan(&self, spec: &Spec) -> Plan {
        Plan {
            slice: self.typed.slice.unwrap_or(SLICE),
            threads: self.typed.threads.clone(),
            patience: PATIENCE,
            warm_up: self.typed.warm_up,
            seed: spec.seed,
        }
    }

    /// Makes the runs; whatever happens, borrowed pages are given back.
    fn whole_runs(self, spec: &Spec, stop: &dyn Fn() -> bool, journal: &mut Journal) -> Result<Compared, Error> {
        let ui = self.ui;
        let told = Cell::new(false);
        let mut live = Live {
            arms: self.arms,
            asked: self.task.asked,
            server: self.task.server,
            counting: self.counting,
            ignore_failure: self.typed.ignore_failure,
            stop,
            patience: Some(Patience {
                time: PATIENCE,
                over: &|| {
                    if !told.replace(true) {
                        ui.say(&format!(
                            "the program has not ended after {} s, {WAITS}",
                            PATIENCE.as_secs()
                        ));
                    }
                },
            }),
            began: Instant::now(),
            peaks: BTreeMap::new(),
        };
        let needed = if self.room.is_borrowed() {
            ui.note("a first run tells how many pages of the pool are needed");
            live.run(0)?.memory()
        } else {
            None
        };
        let loan = self.room.loan(ui, needed.unwrap_or_default());
        let compared = ways::choose(ui, &mut live, spec, &loan).and_then(|spec| {
            live.began = Instant::now();
            journal.note_ways(live.arms.iter().map(|arm| &arm.setup));
            let done = journal.take_done(&spec);
            compare::run(&spec, done, &mut live, journal, &mut ui.progress())
        });
        loan.give_back(ui);
        compared
    }
}

pub(super) use arms::read_any as read_any_arms;
pub(super) use journal::read_any as read_any_log;
