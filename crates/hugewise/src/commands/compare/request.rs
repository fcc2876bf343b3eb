//! From the arguments of `compare` to what is asked of a comparison.

use anyhow::bail;
use compare::live::Server;
use compare::{Request, START_TIMEOUT, Task};
use model::compare::{Method, Metric, Order};

use crate::cli::typed;
use crate::recipes;

/// Arguments as a request.
pub(super) fn of(typed: &typed::Compare, seed: u64) -> anyhow::Result<Request> {
    Ok(Request {
        task: task(typed)?,
        arms: typed.arms.clone(),
        arms_file: typed.arms_file.clone(),
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
        runs: typed.runs,
        budget: typed.budget,
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
    })
}

fn task(typed: &typed::Compare) -> anyhow::Result<Task> {
    if let Some(first) = typed.stray.first() {
        let words: Vec<_> = typed.stray.iter().map(|word| word.to_string_lossy()).collect();
        let (first, words) = (first.to_string_lossy(), words.join(" "));
        bail!("`{first}` is no option: the program to compare follows `--` (write: hugewise compare -- {words})");
    }
    let mut task = match &typed.workload {
        Some(name) => recipes::prepare(name)?,
        None => typed_task(typed)?,
    };
    if let Some(server) = &mut task.server {
        // No server is waited for beyond the time of the whole comparison.
        server.patience = START_TIMEOUT.min(typed.budget.unwrap_or(START_TIMEOUT));
        (server.warm_up, server.loads) = (typed.load_warm_up, typed.loads);
    }
    if !typed.metric.is_empty() {
        task.asked.clone_from(&typed.metric);
    }
    // A process that runs already has no wall time but that of a load.
    let has_wall = typed.live.is_none() || typed.load.is_some();
    if task.asked.is_empty() && has_wall {
        task.asked = vec![Metric::Wall.name().parse().map_err(anyhow::Error::msg)?];
    }
    Ok(task)
}

/// Without a program after `--` the command of `--ready` starts the server.
fn typed_task(typed: &typed::Compare) -> anyhow::Result<Task> {
    let starts = typed
        .ready
        .as_ref()
        .filter(|_| typed.command.is_empty() && typed.live.is_none());
    if starts.is_some() && typed.stop.is_none() {
        bail!(
            "--ready starts the server where no program follows `--`, and then --stop has to stop it (write --stop COMMAND)"
        );
    }
    let command = starts.map(|line| vec!["/bin/sh".into(), "-c".into(), line.into()]);
    Ok(Task {
        command: command.unwrap_or_else(|| typed.command.clone()),
        asked: Vec::new(),
        server: typed.load.as_ref().map(|load| Server {
            ready: typed.ready.clone().filter(|_| starts.is_none()),
            is_daemon: starts.is_some(),
            patience: START_TIMEOUT,
            load: load.clone(),
            warm_up: typed.load_warm_up,
            loads: typed.loads,
            stop: typed.stop.clone(),
        }),
    })
}
