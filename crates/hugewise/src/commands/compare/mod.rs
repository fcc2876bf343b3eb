//! `hugewise compare`: one program under several page policies, or one process in place; pool pages on loan, finished runs kept.

mod arms;
mod design;
mod journal;
mod living;
mod room;
mod slices;
mod ways;
mod workload;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use host::Snapshot;
use lab::compare::live::{Arm, Counting, Live, Server};
use lab::compare::metric::Asked;
use lab::compare::program;
use lab::compare::slices::{Plan, Slices};
use lab::compare::{Error, Executor, Outcome as Compared, Spec, Wanted};
use lab::preload;
use model::compare::{Compare, Ended, Method, Metric, Order, Verdict};

use self::journal::Journal;
use self::room::Room;
use self::slices::Made;
use super::Desk;
use super::pools::Loan;
use super::stop::Stop;
use crate::cli::typed::{self, FailIf, Format};
use crate::ui::{Outcome, Ui};

/// Blocks at most: as many pairs find an effect of 3 % in recorded noise of a busy machine.
const MOST: u32 = 30;
/// Long against a switch between programs, short against what changes on a machine.
const SLICE: Duration = Duration::from_millis(500);
/// A server may load its data before it is ready.
const PATIENCE: Duration = Duration::from_secs(120);

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
    let arms = arms::resolve(typed, &task.command, &program, &snapshot)?;
    desk.ui
        .note(&format!("{} is {}", program.path.display(), program.memory.title()));
    let design = design::choose(typed.design, &task)?;
    if let (Method::Runs, Some(_)) = (design.method, typed.slice) {
        bail!(
            "--slice: whole runs have no slices, and here {} (write --design slices)",
            design.reason
        );
    }
    let mut journal = Journal::open(typed, desk.seed, task.words(), arms.names(), design.method)?;
    desk.seed = journal.seed();
    let spec = Spec {
        program: task.words(),
        method: design.method,
        reason: design.reason,
        arms: arms.named.clone(),
        ..spec(typed, &task.asked, desk.seed)
    };
    let compared = Comparison {
        ui: &desk.ui,
        typed,
        task,
        room: Room::of(typed, &spec, &arms, &program, &snapshot),
        counting: Counting::here(&snapshot.cpu),
        arms: arms.live,
    }
    .carry_out(spec, design.is_asked, &mut journal);
    give(desk, typed, &snapshot, form, journal, compared)
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
    let (compared, doubts) = match compared {
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
    let result = desk.about(snapshot, doubts, compared);
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
        all: typed.runs.is_some(),
        warm_up: typed.warm_up,
        smallest_effect: typed.smallest_effect,
        alpha: 0.05,
        least_coverage: typed.least_coverage,
        budget: typed.runs.is_none().then_some(typed.budget),
        seed,
    }
}

/// What is compared, and how it was asked for.
struct Comparison<'a> {
    ui: &'a Ui,
    typed: &'a typed::Compare,
    task: Task,
    arms: Vec<Arm>,
    room: Room<'a>,
    counting: Counting,
}

impl Comparison<'_> {
    /// By the design chosen, or by whole runs where slices were not asked for and the program makes none.
    fn carry_out(self, mut spec: Spec, is_asked: bool, journal: &mut Journal) -> Result<Compared, Error> {
        let stop = Stop::on_signals().map_err(|error| Error::Keep(error.to_string()))?;
        let stopped = || stop.is_asked();
        if spec.method == Method::Slices {
            self.tell(&spec);
            let asked = self.task.asked.clone();
            let slices = Slices::new(self.arms.clone(), asked, self.plan(), &stopped);
            match slices::compare(self.ui, &self.room, &spec, slices, journal)? {
                Made::Compared(compared) => return Ok(*compared),
                Made::Unfit(error) if is_asked => return Err(error),
                Made::Unfit(error) => {
                    spec.method = Method::Runs;
                    spec.reason = format!("slices were tried: {error}");
                }
            }
        }
        self.tell(&spec);
        self.whole_runs(&spec, &stopped, journal)
    }

    fn tell(&self, spec: &Spec) {
        self.ui.note(&format!("by {}: {}", spec.method.title(), spec.reason));
    }

    fn plan(&self) -> Plan {
        Plan {
            slice: self.typed.slice.unwrap_or(SLICE),
            threads: self.typed.threads.clone(),
            patience: PATIENCE,
        }
    }

    /// Makes the runs; whatever happens, borrowed pages are given back.
    fn whole_runs(self, spec: &Spec, stop: &dyn Fn() -> bool, journal: &mut Journal) -> Result<Compared, Error> {
        let ui = self.ui;
        let mut live = Live {
            arms: self.arms,
            asked: self.task.asked,
            server: self.task.server,
            counting: self.counting,
            ignore_failure: self.typed.ignore_failure,
            stop,
            began: Instant::now(),
        };
        let loan = if self.room.is_none() {
            Loan::none()
        } else {
            ui.note("a first run tells how many pages of the pool are needed");
            let first = live.run(0)?;
            self.room.loan(ui, first.memory().unwrap_or_default())
        };
        let compared = ways::choose(ui, &mut live, spec, &loan).and_then(|spec| {
            live.began = Instant::now();
            let done = journal.take_done(&spec);
            lab::compare::run(&spec, done, &mut live, journal, &mut ui.progress())
        });
        loan.give_back(ui);
        compared
    }
}

/// A file of the user's, with its name in the error.
fn read(path: &std::path::Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{}: the file cannot be read", path.display()))
}
