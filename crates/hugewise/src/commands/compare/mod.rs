//! `hugewise compare`: one program under several page policies, or one process in place.

pub(super) mod around;
mod between;
#[cfg(test)]
mod design_tests;
mod export;
pub(super) mod store;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use compare::live::{LOADS, Server};
use compare::metric::Asked;
use compare::{ArmsFile, Comparison, Custom, Error, Request, RunLog, START_TIMEOUT, Task, USUAL_RUNS, inplace};
use host::{Input, Snapshot};
use model::compare::{Compare, Ended, Forecast, Metric};

use self::around::Around;
use self::between::Typed;
use self::store::Store;
use super::session::Session;
use crate::cli::args;
use crate::recipes::{self, Workload};
use crate::render::prove::compare::events;
use crate::stop;
use crate::trusted::to_be_run;
use crate::ui::{Outcome, Ui};
use draw::joined;

/// How a shell ends that does not find the command.
const NOT_FOUND: &str = "the program ended with exit status: 127";
/// Blocks of a program compared with itself, if the time is enough: how far runs lie apart is known to a tenth or so.
const PILOT: u32 = 36;

pub(super) fn run(session: &mut Session<'_>, args: &args::Compare) -> anyhow::Result<Outcome> {
    session.must_be_live("comparing")?;
    let form = session.form::<Compare>()?;
    let typed = between::commands(args)?;
    let export = args.between.export_json.as_deref();
    let exported = export.map(export::open).transpose()?;
    if args.live.is_none() {
        session.say_unread_input();
    }
    let snapshot = Snapshot::take(&session.source);
    // What the workload writes is gone with this.
    let (request, _workload) = request(args, &typed, session.seed, &snapshot, &session.ui)?;
    let mut store = Store::of(args)?;
    let is_named = store.stays;
    let mut log = RunLog::new(&mut store);
    let compared = compared(session, args, (&request, &snapshot), is_named, &mut log)?;
    clean_up(&typed, &session.ui);
    let (seed, written) = (log.seed(), log.written());
    let (mut compared, mut warnings) = match compared {
        Ok(compared) => compared,
        // Finished runs stay where there is no result.
        Err(error) => {
            store.leave(written, &session.ui);
            return Err(not_compared(args, error));
        }
    };
    session.seed = seed;
    if let Some(time) = args.what_can_be_seen {
        // A pilot takes the time that there is.
        warnings.retain(|warning| warning.code != "cut-short");
        compared.forecast = forecast(&compared, &request, time);
    }
    warnings.extend(between::shell_counts(args, &compared));
    // What cannot be written to one place is given to the other all the same.
    let exported = export.zip(exported);
    let written_out = exported.map_or(Ok(()), |(file, target)| export::write(file, target, &compared, &typed));
    let outcome = outcome(args, &compared);
    let given = session.give_about(&snapshot, warnings, compared, form);
    let given = given.and_then(|given| written_out.map(|()| given));
    // Where the result could not be given, its runs are all that there is.
    match outcome {
        Outcome::Interrupted => store.leave(written, &session.ui),
        _ if given.is_err() => store.leave(written, &session.ui),
        _ => store.close(),
    }
    given.map(|_| outcome)
}

/// What came of it once runs could begin.
fn compared(
    session: &Session<'_>,
    args: &args::Compare,
    (request, snapshot): (&Request, &Snapshot),
    is_named: bool,
    log: &mut RunLog<'_>,
) -> anyhow::Result<Result<compare::Outcome, Error>> {
    let around = Around::new(&session.ui);
    if let Some(pid) = args.live {
        stop::on_signals()?;
        let machine = (&session.source, snapshot);
        return Ok(inplace::compare_found(
            request,
            pid,
            machine,
            &around,
            &stop::is_asked,
            log,
        ));
    }
    let comparison = Comparison::prepare(request, snapshot, &around, log)?;
    if !is_named {
        store::say_left(&session.ui, &request.program());
    }
    stop::on_signals()?;
    Ok(comparison.carry_out(&stop::is_asked, log))
}

fn not_compared(args: &args::Compare, error: Error) -> anyhow::Error {
    match error {
        Error::Budget { run, least, .. } if args.what_can_be_seen.is_some() => anyhow!(
            "--what-can-be-seen: one run takes {:.1} s, and enough of them at least {least} s (write --what-can-be-seen {least}s)",
            run.as_secs_f64(),
            least = least.as_secs() + 1
        ),
        Error::TimeOver(_) if args.what_can_be_seen.is_some() => {
            anyhow!(
                "--what-can-be-seen: the time was over before three runs were made (more time, or a shorter program)"
            )
        }
        Error::Reference { arm, kind, backing } => anyhow!(events::reference(&arm, kind, &backing)),
        Error::Failed { ref what, .. } if what.contains(NOT_FOUND) && !args.commands.is_empty() => anyhow!(
            "{error}; each word is a command of the shell (for one program under several page policies: hugewise compare -- {})",
            args.commands.join(" ")
        ),
        error => error.into(),
    }
}

/// By the first metric.
fn forecast(compared: &Compare, request: &Request, time: Duration) -> Option<Forecast> {
    let wanted = &request.task.asked.first()?.wanted;
    let block = compared.design.seconds / f64::from(compared.design.blocks.max(1));
    let times = [1.0, 0.25, 4.0].map(|times| times * time.as_secs_f64());
    compare::forecast::of(
        &compared.arms,
        wanted,
        (block, USUAL_RUNS),
        compared.design.smallest_effect,
        &times,
    )
}

/// What is to be run once after all runs, whatever came of them.
fn clean_up(typed: &[Typed], ui: &Ui) {
    let lines = typed.iter().filter_map(|command| command.cleanup.as_deref());
    for line in lines {
        // It is run after a Ctrl-C, and ended by a further one.
        let before = stop::times_asked();
        match compare::live::clean_up(line, &|| stop::times_asked() > before) {
            Err(Error::Interrupted) => ui.say(&format!("--cleanup: `{line}` was interrupted")),
            Err(error) => ui.say(&error.to_string()),
            Ok(()) => {}
        }
    }
}

fn outcome(args: &args::Compare, compared: &Compare) -> Outcome {
    match compared.design.ended {
        Ended::Interrupted => Outcome::Interrupted,
        _ => {
            let mut verdicts = compared.verdicts.iter().map(|judged| judged.verdict);
            Outcome::Done.or_bad_news(verdicts.any(|verdict| args.fail_if.contains(&verdict)))
        }
    }
}

/// Arguments as a request, and the recipe that it is for.
fn request(
    args: &args::Compare,
    typed: &[Typed],
    seed: u64,
    snapshot: &Snapshot,
    ui: &Ui,
) -> anyhow::Result<(Request, Option<Workload>)> {
    let workload = args.workload.as_ref().map(|name| workload(name, &args.metric, ui));
    let workload = workload.transpose()?;
    let arm = |typed: &Typed| (typed.name.clone(), typed.arm.clone());
    let commands: Vec<(String, Custom)> = typed.iter().map(arm).collect();
    let mut task = task(args, workload.as_ref())?;
    let mut arms = compare::policy::arms(&args.arms, &snapshot.thp)?;
    if let Some((_, reference)) = commands.first() {
        task.command = reference.command.iter().map(Into::into).collect();
        arms = commands.iter().map(|(name, _)| name.clone()).collect();
    }
    let request = Request {
        task,
        arms,
        arms_file: args.arms_file.as_deref().map(arms_file).transpose()?,
        commands,
        places: args.place.clone(),
        technique: args.technique,
        design: args.design,
        order: args.order,
        runs: args.runs.or(args.what_can_be_seen.map(|_| PILOT)),
        budget: args.budget.or(args.what_can_be_seen),
        warm_up: args.warm_up,
        smallest_effect: args.smallest_effect,
        least_coverage: args.least_coverage,
        ignore_failure: args.ignore_failure,
        about_starts: about_starts(args),
        pool: args.pool,
        no_pool: args.no_pool,
        slice: args.slice,
        threads: args.threads.clone(),
        range: args.range.clone(),
        seed,
    };
    Ok((request, workload))
}

/// What is typed about the loads of each start.
fn about_starts(args: &args::Compare) -> Option<&'static str> {
    let warm_up = args.load_warm_up.map(|_| "--load-warm-up");
    warm_up.or(args.loads.map(|_| "--loads"))
}

/// Its arms name programs, variables and commands of the shell.
fn arms_file(path: &Path) -> anyhow::Result<ArmsFile> {
    let named = || format!("--arms-file {}", path.display());
    // Of what is no file at all that is said.
    let file = to_be_run(path).map_err(|why| Input::Arms.text(path).err().map_or(why, Into::into));
    let file = file.with_context(named)?;
    Ok(ArmsFile {
        name: path.display().to_string(),
        text: Input::Arms.text(&file).with_context(named)?,
    })
}

fn workload(name: &str, metrics: &[String], ui: &Ui) -> anyhow::Result<Workload> {
    let chosen = recipes::choose(name, Path::new(""))?;
    // Before minutes of building.
    asked(metrics, &chosen.metrics()?)?;
    ui.note(&format!("{name}: {}", chosen.about()));
    let folder = chosen.build()?;
    // From here on there is a directory to remove.
    stop::on_signals()?;
    let workload = chosen.set_up(&folder)?;
    chosen.notice().iter().for_each(|notice| ui.say(notice));
    Ok(workload)
}

fn task(args: &args::Compare, workload: Option<&Workload>) -> anyhow::Result<Task> {
    let mut task = match workload {
        Some(workload) => workload.task.clone(),
        None => typed_task(args)?,
    };
    if let Some(server) = &mut task.server {
        // No server is waited for beyond the time of the whole comparison.
        server.patience = START_TIMEOUT.min(args.budget.unwrap_or(START_TIMEOUT));
        server.warm_up = args.load_warm_up.unwrap_or(server.warm_up);
        server.loads = args.loads.unwrap_or(server.loads);
    } else if let Some(option) = about_starts(args) {
        bail!("{option} is about the loads of a server, and there is none (leave it out)");
    }
    if !args.metric.is_empty() {
        task.asked = asked(&args.metric, &task.asked)?;
    }
    // A process that runs already has no wall time but that of a load.
    let has_wall = args.live.is_none() || args.load.is_some();
    if task.asked.is_empty() && has_wall {
        task.asked = vec![Metric::Wall.name().parse().map_err(anyhow::Error::msg)?];
    }
    Ok(task)
}

/// The metrics typed: one of the recipe's by its name, or any other.
fn asked(args: &[String], of_recipe: &[Asked]) -> anyhow::Result<Vec<Asked>> {
    let find = |word: &String| match of_recipe.iter().find(|asked| asked.wanted.name == *word) {
        Some(asked) => Ok(asked.clone()),
        None => word.parse().map_err(|why: String| match of_recipe {
            [] => anyhow!("--metric {word}: {why}"),
            _ => {
                let names = joined(of_recipe.iter().map(|asked| &asked.wanted.name), ", ");
                anyhow!("--metric {word}: {why}; the recipe has {names}")
            }
        }),
    };
    args.iter().map(find).collect()
}

/// Without a program after `--` the command of `--ready` starts the server.
fn typed_task(args: &args::Compare) -> anyhow::Result<Task> {
    let has_program = !args.command.is_empty() || args.live.is_some();
    if !has_program && args.ready.is_none() && args.commands.is_empty() {
        bail!(
            "nothing to compare: write a program after `--` (hugewise compare -- PROGRAM), two shell commands in quotes, --workload NAME, or --live PID"
        );
    }
    let starts = args.ready.as_ref().filter(|_| !has_program);
    if starts.is_some() && args.stop.is_none() {
        bail!(
            "--ready starts the server where no program follows `--`, and then --stop has to stop it (write --stop COMMAND)"
        );
    }
    let command = starts.map(|line| vec!["/bin/sh".into(), "-c".into(), line.into()]);
    Ok(Task {
        command: command.unwrap_or_else(|| args.command.clone()),
        asked: Vec::new(),
        shut_in: None,
        server: args.load.as_ref().map(|load| Server {
            ready: args.ready.clone().filter(|_| starts.is_none()),
            is_daemon: starts.is_some(),
            patience: START_TIMEOUT,
            load: load.clone(),
            warm_up: LOADS.warm_up,
            loads: LOADS.counted,
            check: None,
            stop: args.stop.clone(),
        }),
    })
}
