//! What happens in a comparison, as sentences.

use std::time::Duration;

use compare::{Error, Event};
use model::compare::{Forecast, Restored};
use model::{Backing, PageKind};

use super::forecast::options;
use super::why::because;

/// Follows what is said of a program that may never end.
const WAITS: &str = "and whole runs wait for that (Ctrl-C stops them; or give it an end, or write --design slices)";

pub(crate) fn sentence(event: &Event<'_>) -> String {
    match event {
        Event::Program { path, memory } => format!("{} is {}", path.display(), memory.title()),
        Event::Design { method, reason } => format!("by {}: {}", method.title(), because(reason)),
        Event::Needed { is_start: true } => "a first start shows how many pages of the pool are needed".to_owned(),
        Event::Needed { is_start: false } => "a first run shows how many pages of the pool are needed".to_owned(),
        Event::StartingOnce => "starting the program, once".to_owned(),
        Event::Starting(name) => format!("starting {name}"),
        Event::Technique { arm, words } => format!("arm {arm}: {words}"),
        Event::FewRuns { asked, least } => format!(
            "--runs {asked} cannot show a difference: a verdict takes at least {least} runs of each arm (--runs {least}, or leave it out)"
        ),
        Event::ShortTime { least, budget } => {
            let (least, budget) = (minutes(*least), minutes(*budget));
            format!(
                "a verdict takes at least {least} here, more than the usual {budget}: the runs go on until then (--budget limits them)"
            )
        }
        Event::Forecast { forecast, budget } => foreseen(forecast, *budget),
        Event::StillRuns(time) => format!("the program has not ended after {} s, {WAITS}", time.as_secs()),
        Event::NeverEnded => format!("it had not ended by itself, {WAITS}"),
        Event::UnknownHeap(why) => format!(
            "the heap that a Java virtual machine takes by default could not be read, so no huge pages are borrowed for it: {why} \
             (write -Xmx, or --pool)"
        ),
        Event::NotFlipped {
            pid,
            flipped,
            shared,
            name,
        } => format!(
            "of process {pid}, {flipped} of private memory is flipped, and {shared} of shared memory is not ({name}): an arm counts by the share \
             of both"
        ),
        Event::NotStopped(error) => error.to_string(),
        Event::Left { pid, restored } => left(*pid, *restored),
    }
}

fn left(pid: u32, restored: Option<&Result<Restored, Error>>) -> String {
    match restored {
        None => format!("process {pid} has ended by itself"),
        Some(Err(error)) => format!("process {pid} did not get the pages back that it had: {error}"),
        Some(Ok(restored)) => match restored.wrong {
            0 => format!("process {pid} has the pages back that it had: {}", restored.before),
            wrong => format!(
                "{wrong} PMD ranges of process {pid} are not on the pages that they had; at first it had {}",
                restored.before
            ),
        },
    }
}

fn foreseen(forecast: &Forecast, budget: Option<Duration>) -> String {
    let Some(visible) = forecast.visible.last() else {
        return String::new();
    };
    let within = match forecast.most == Some(visible.blocks) {
        true => format!(
            "by the {} runs of each arm that are made without --runs",
            visible.blocks
        ),
        false => format!("within {}", seconds(visible.seconds)),
    };
    format!(
        "in {}, runs lie so far apart here that differences from about {:.1} % on can be shown {within}; the smallest effect asked \
         for takes about {} ({}, or a larger --smallest-effect)",
        forecast.metric,
        visible.effect * 100.0,
        seconds(forecast.smallest.seconds),
        options(forecast, budget)
    )
}

/// Of a forecast, which may lie far ahead.
pub(super) fn seconds(seconds: f64) -> String {
    minutes(Duration::from_secs_f64(seconds.min(1e9)))
}

/// `45s` or `7m`, rounded up, as options take it.
pub(crate) fn minutes(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds => format!("{}m", seconds.div_ceil(60)),
    }
}

/// That the reference is not what it is called, and what to do.
pub(crate) fn reference(arm: &str, kind: PageKind, backing: &Backing) -> String {
    let share = 100.0 * backing.share(kind).unwrap_or(0.0);
    let is_pool = backing.iter().any(|(kind, bytes)| kind.pool().is_some() && bytes.0 > 0);
    let todo = match (kind, is_pool) {
        (PageKind::Base, true) => OWN_POOL,
        (PageKind::Base, false) => OWN_THP,
        (kind, _) if kind.pool().is_some() => NO_POOL,
        _ => NO_THP,
    };
    format!("the reference {arm} is not in effect: {share:.1} % of its memory was on {kind} pages ({backing}). {todo}")
}

const OWN_POOL: &str = "The program takes hugetlb pages by itself. Switch that off in its command: --huge_pages=off for PostgreSQL, \
     --large-pages=0 for MySQL, -XX:-UseLargePages for a JVM; or name the program directly after `--`, where these are recognized. \
     Another program's switch goes into `command` or `env` of an arm in --arms-file. Or compare with the arm system.";
const OWN_THP: &str = "The program gets transparent huge pages although they are switched off for its process, as a process that another \
     one starts for it does, or shared memory: start the program itself after `--`, or compare with the arm system.";
const NO_POOL: &str = "The pool had too few pages, or the program does not ask for them: --pool SIZE gives it more, \
     `hugewise explain` has the reason, and base as the first arm needs none.";
const NO_THP: &str = "`hugewise doctor` reports whether this machine gives transparent huge pages; --technique chooses another way to \
     them, and base as the first arm needs none.";
