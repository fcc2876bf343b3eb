//! `hugewise compare`: one program under several page policies, or one process in place.

pub(super) mod around;
mod between;
#[cfg(test)]
mod design_tests;
pub(super) mod store;

use std::path::Path;
use std::time::Duration;

use anyhow::{anyhow, bail};
use compare::live::Server;
use compare::metric::Asked;
use compare::{Comparison, Custom, Error, Request, RunLog, START_TIMEOUT, Task, inplace};
use host::Snapshot;
use model::compare::{Compare, Ended, Forecast, Method, Metric, Order, Verdict};

use self::around::Around;
use self::store::Store;
use super::desk::Desk;
use super::stop::Stop;
use crate::cli::typed::{self, FailIf, Format};
use crate::files::{Access, Existing, Target};
use crate::recipes::{self, Workload};
use crate::render::compare::{events, exported};
use crate::ui::{Outcome, Ui};

/// How a shell ends that does not find the command.
const NOT_FOUND: &str = " 127";
/// Blocks of a program compared with itself.
const PILOT: u32 = 12;

pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Compare) -> anyhow::Result<Outcome> {
    desk.must_be_live("comparing")?;
    let form = desk.form::<Compare>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    // What the workload writes is gone with this.
    let (request, _workload) = request(typed, desk.seed, &desk.ui)?;
    let mut store = Store::of(typed)?;
    let mut log = RunLog::new(&mut store);
    let around = Around::new(&desk.ui);
    let compared = match typed.live {
        Some(pid) => {
            let stop = Stop::on_signals()?;
            let machine = (&desk.source, &snapshot);
            inplace::compare_found(&request, pid, machine, &around, &|| stop.is_asked(), &mut log)
        }
        None => {
            let comparison = Comparison::prepare(&request, &snapshot, &around, &mut log)?;
            let stop = Stop::on_signals()?;
            comparison.carry_out(&around, &|| stop.is_asked(), &mut log)
        }
    };
    clean_up(typed, &desk.ui);
    let (seed, written) = (log.seed(), log.written());
    let (mut compared, warnings) = match compared {
        Ok(compared) => compared,
        // Finished runs stay where there is no result.
        Err(error) => {
            store.leave(written, &desk.ui);
            return match error {
                Error::Interrupted => Ok(Outcome::Interrupted),
                Error::Reference { arm, kind, backing } => bail!(events::reference(&arm, kind, &backing)),
                Error::Failed { ref status, .. } if status.ends_with(NOT_FOUND) && !typed.commands.is_empty() => {
                    Err(anyhow!(
                        "{error}; each word is a command of the shell (for one program under several page policies: hugewise compare -- {})",
                        typed.commands.join(" ")
                    ))
                }
                error => Err(error.into()),
            };
        }
    };
    desk.seed = seed;
    if let Some(time) = typed.what_can_be_seen {
        compared.forecast = forecast(&compared, &request, time);
    }
    if let Some(file) = &typed.between.export_json {
        Target::open(file, Access::Usual)?.put(exported::json(&compared).as_bytes(), Existing::Replace)?;
    }
    let outcome = outcome(typed, &compared);
    let result = desk.about(&snapshot, warnings, compared);
    desk.give(&result, form)?;
    match outcome {
        Outcome::Interrupted => store.leave(written, &desk.ui),
        _ => store.close(),
    }
    Ok(outcome)
}

/// By the first metric.
fn forecast(compared: &Compare, request: &Request, time: Duration) -> Option<Forecast> {
    let wanted = &request.task.asked.first()?.wanted;
    let block = compared.design.seconds / f64::from(compared.design.blocks.max(1));
    let times = [1.0, 0.25, 4.0].map(|times| times * time.as_secs_f64());
    compare::forecast::of(&compared.arms, wanted, block, compared.design.smallest_effect, &times)
}

/// What is to be run once after all runs, whatever came of them.
fn clean_up(typed: &typed::Compare, ui: &Ui) {
    let lines = between::commands(typed)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|command| command.cleanup);
    for error in lines.filter_map(|line| compare::live::clean_up(&line).err()) {
        ui.say(&error.to_string());
    }
}

fn outcome(typed: &typed::Compare, compared: &Compare) -> Outcome {
    let is_bad = |verdict: Verdict| {
        typed.fail_if.iter().any(|fail_if| match fail_if {
            FailIf::Worse => verdict == Verdict::Worse,
            FailIf::Inconclusive => verdict == Verdict::Inconclusive,
            FailIf::NotInEffect => verdict == Verdict::NotInEffect,
            FailIf::Unknown => verdict == Verdict::Unknown,
        })
    };
    match compared.design.ended {
        Ended::Interrupted => Outcome::Interrupted,
        _ => Outcome::Done.or_bad_news(compared.verdicts.iter().any(|judged| is_bad(judged.verdict))),
    }
}

/// Arguments as a request, and the recipe that it is for.
fn request(typed: &typed::Compare, seed: u64, ui: &Ui) -> anyhow::Result<(Request, Option<Workload>)> {
    let workload = typed.workload.as_ref().map(|name| workload(name, &typed.metric, ui));
    let workload = workload.transpose()?;
    let commands: Vec<(String, Custom)> = match typed.what_can_be_seen {
        Some(_) => between::with_itself(typed)?,
        None => between::commands(typed)?.iter().map(between::Typed::arm).collect(),
    };
    let mut task = task(typed, workload.as_ref())?;
    let mut arms = typed.arms.clone();
    if let Some((_, reference)) = commands.first() {
        task.command = reference.words().iter().map(Into::into).collect();
        arms = commands.iter().map(|(name, _)| name.clone()).collect();
    }
    let request = Request {
        task,
        arms,
        arms_file: typed.arms_file.clone(),
        commands,
        places: typed.place.clone(),
        technique: typed.technique,
        design: match typed.design {
            typed::Design::Auto => None,
            typed::Design::Runs => Some(Method::Runs),
            typed::Design::Slices => Some(Method::Slices),
            typed::Design::Flip => Some(Method::Flip),
        },
        order: match typed.order {
            typed::Order::Mirrored => Order::Mirrored,
            typed::Order::Random => Order::Random,
        },
        runs: typed.runs.or(typed.what_can_be_seen.map(|_| PILOT)),
        budget: typed.budget.or(typed.what_can_be_seen),
        warm_up: typed.warm_up,
        smallest_effect: typed.smallest_effect,
        least_coverage: typed.least_coverage,
        ignore_failure: typed.ignore_failure,
        pool: typed.pool,
        no_pool: typed.no_pool,
        slice: typed.slice,
        threads: typed.threads.clone(),
        range: typed.range.clone(),
        seed,
    };
    Ok((request, workload))
}

fn workload(name: &str, metrics: &[String], ui: &Ui) -> anyhow::Result<Workload> {
    let chosen = recipes::choose(name, Path::new(""))?;
    // Before minutes of building.
    asked(metrics, &chosen.metrics()?)?;
    ui.note(&format!("{name}: {}", chosen.about()));
    let built = chosen.build()?;
    // From here on there is a directory to remove.
    Stop::on_signals()?;
    let workload = built.set_up()?;
    workload.notice.iter().for_each(|notice| ui.say(notice));
    Ok(workload)
}

fn task(typed: &typed::Compare, workload: Option<&Workload>) -> anyhow::Result<Task> {
    let mut task = match workload {
        Some(workload) => workload.task.clone(),
        None => typed_task(typed)?,
    };
    if let Some(server) = &mut task.server {
        // No server is waited for beyond the time of the whole comparison.
        server.patience = START_TIMEOUT.min(typed.budget.unwrap_or(START_TIMEOUT));
        (server.warm_up, server.loads) = (typed.load_warm_up, typed.loads);
    }
    if !typed.metric.is_empty() {
        task.asked = asked(&typed.metric, &task.asked)?;
    }
    // A process that runs already has no wall time but that of a load.
    let has_wall = typed.live.is_none() || typed.load.is_some();
    if task.asked.is_empty() && has_wall {
        task.asked = vec![Metric::Wall.name().parse().map_err(anyhow::Error::msg)?];
    }
    Ok(task)
}

/// The metrics typed: one of the recipe's by its name, or any other.
fn asked(typed: &[String], of_recipe: &[Asked]) -> anyhow::Result<Vec<Asked>> {
    let find = |word: &String| match of_recipe.iter().find(|asked| asked.wanted.name == *word) {
        Some(asked) => Ok(asked.clone()),
        None => word.parse().map_err(|why: String| match of_recipe {
            [] => anyhow!("--metric {word}: {why}"),
            _ => {
                let names: Vec<&str> = of_recipe.iter().map(|asked| asked.wanted.name.as_str()).collect();
                anyhow!("--metric {word}: {why}; the recipe has {}", names.join(", "))
            }
        }),
    };
    typed.iter().map(find).collect()
}

/// Without a program after `--` the command of `--ready` starts the server.
fn typed_task(typed: &typed::Compare) -> anyhow::Result<Task> {
    let has_program = !typed.command.is_empty() || typed.live.is_some();
    let starts = typed.ready.as_ref().filter(|_| !has_program);
    if starts.is_some() && typed.stop.is_none() {
        bail!(
            "--ready starts the server where no program follows `--`, and then --stop has to stop it (write --stop COMMAND)"
        );
    }
    let command = starts.map(|line| vec!["/bin/sh".into(), "-c".into(), line.into()]);
    Ok(Task {
        command: command.unwrap_or_else(|| typed.command.clone()),
        asked: Vec::new(),
        shut_in: None,
        server: typed.load.as_ref().map(|load| Server {
            ready: typed.ready.clone().filter(|_| starts.is_none()),
            is_daemon: starts.is_some(),
            patience: START_TIMEOUT,
            load: load.clone(),
            warm_up: typed.load_warm_up,
            loads: typed.loads,
            check: None,
            stop: typed.stop.clone(),
        }),
    })
}
