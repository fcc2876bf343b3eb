//! `hugewise compare`: one program under several page policies, or one process in place; pool pages on loan, finished runs kept.

mod arms;
mod journal;
mod living;
mod ways;
mod workload;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use anyhow::Context;
use host::Snapshot;
use lab::compare::live::{Counting, Live, Server};
use lab::compare::metric::Asked;
use lab::compare::program::{self, Memory, Program};
use lab::compare::{Error, Executor, Outcome as Compared, Spec, Wanted};
use lab::preload;
use model::compare::{Compare, Ended, Method, Metric, Order, Run, Verdict};
use model::{Bytes, PageKind};

use self::arms::Arms;
use self::journal::Journal;
use super::Desk;
use super::pools::Loan;
use super::stop::Stop;
use crate::cli::typed::{self, FailIf, Format};
use crate::ui::{Outcome, Ui};

/// Blocks at most: as many pairs find an effect of 3 % in recorded noise of a busy machine.
const MOST: u32 = 30;
/// What a loan is larger than what was needed once: other page sizes round up more.
const SPARE: f64 = 1.25;
/// And beyond that: malloc's heap grows by 64 MiB under its tunables, code caches of virtual machines are as large.
const SPARE_BYTES: Bytes = Bytes::mib(192);
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
    let mut journal = Journal::open(typed, desk.seed, task.words(), arms.names())?;
    desk.seed = journal.seed();
    let spec = Spec {
        program: task.words(),
        arms: arms.named.clone(),
        ..spec(typed, &task.asked, desk.seed)
    };
    let compared = compare(&desk.ui, typed, &spec, task, arms, &program, &snapshot, &mut journal);
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

/// Makes the runs; whatever happens, borrowed pages are given back.
#[allow(clippy::too_many_arguments)] // each of them is a part of the one thing that happens here
fn compare(
    ui: &Ui,
    typed: &typed::Compare,
    spec: &Spec,
    task: Task,
    arms: Arms,
    program: &Program,
    snapshot: &Snapshot,
    journal: &mut Journal,
) -> Result<Compared, Error> {
    let stop = Stop::on_signals().map_err(|error| Error::Keep(error.to_string()))?;
    let stopped = || stop.is_asked();
    let kinds: Vec<PageKind> = arms.pools();
    let mut live = Live {
        arms: arms.live,
        asked: task.asked,
        server: task.server,
        counting: Counting::here(&snapshot.cpu),
        ignore_failure: typed.ignore_failure,
        stop: &stopped,
        began: Instant::now(),
    };
    let loan = if kinds.is_empty() || typed.no_pool {
        Loan::none()
    } else {
        ui.note("a first run tells how many pages of the pool are needed");
        let first = live.run(0)?;
        Loan::take(ui, &kinds, room(typed, &first, program, &task_heap(spec), snapshot))
    };
    let compared = ways::choose(ui, &mut live, spec, &loan).and_then(|spec| {
        live.began = Instant::now();
        let done = journal.take_done(&spec);
        lab::compare::run(&spec, done, &mut live, journal, &mut ui.progress())
    });
    loan.give_back(ui);
    compared
}

/// The largest heap that a Java virtual machine was told, among the program's arguments.
fn task_heap(spec: &Spec) -> Option<Bytes> {
    let told = spec
        .program
        .iter()
        .rev()
        .find_map(|argument| argument.strip_prefix("-Xmx"))?;
    let unit = told.chars().last().filter(char::is_ascii_digit).map_or("", |_| "B");
    format!("{told}{unit}").parse().ok()
}

/// What a hugetlb arm needs. A Java virtual machine takes its whole heap at once, a quarter of the memory if not told.
fn room(typed: &typed::Compare, first: &Run, program: &Program, heap: &Option<Bytes>, snapshot: &Snapshot) -> Bytes {
    let memory = first.memory().unwrap_or_default();
    let quarter = || {
        snapshot
            .memory
            .get("MemTotal")
            .known()
            .map_or(Bytes(0), |total| Bytes(total.0 / 4))
    };
    let heap = if program.memory == Memory::Jvm {
        heap.unwrap_or_else(quarter)
    } else {
        Bytes(0)
    };
    let needed = Bytes((memory.0.max(heap.0) as f64 * SPARE) as u64 + SPARE_BYTES.0);
    typed.pool.unwrap_or(needed)
}

/// A file of the user's, with its name in the error.
fn read(path: &std::path::Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{}: the file cannot be read", path.display()))
}
