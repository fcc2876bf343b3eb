//! A process that runs already is compared with itself, its pages flipped in place.

use host::{Snapshot, Source};
use model::compare::{Because, Method};
use process::tree;

use super::{Pair, Whose};
use crate::around::{Around, Event};
use crate::request::Request;
use crate::runlog::{Head, RunLog};
use crate::{Error, Outcome, Spec, experiment};

/// Compares it, and gives it the pages back that it had.
///
/// # Errors
/// If it cannot be compared in place, or a slice cannot be made.
pub fn compare(
    request: &Request,
    pid: u32,
    (source, snapshot): (&Source, &Snapshot),
    around: &dyn Around,
    stop: &dyn Fn() -> bool,
    log: &mut RunLog<'_>,
) -> Result<Outcome, Error> {
    experiment::within(request.budget, stop, |stop| {
        let pair = Pair::new(request, Whose::Found, snapshot)?;
        let mut process = pair.open(pid, stop)?.placed(snapshot);
        process.tell_reach(around)?;
        let words = tree::words(source, pid);
        let identity = identity(request.seed, pid, process.started(), &words);
        log.open(Head::new(identity, pair.names(), request, Method::Flip, &[]))?;
        let spec = Spec {
            program: words,
            ..log.resumed(request.spec(Method::Flip, Because::Running, Vec::new()))
        };
        let spec = pair.spec(pid, spec);
        let done = log.take_done(&spec);
        let finished = super::run(&spec, done, &pair, &mut process, log, around);
        let is_told = finished.compared.is_ok() && matches!(finished.restored, Some(Ok(_)));
        if !is_told {
            let restored = finished.restored.as_ref();
            around.report(&Event::Left { pid, restored });
        }
        finished.compared
    })
}

/// Slices of one process cannot be joined to those of another: its id and begin stand in front of its words.
fn identity(seed: u64, pid: u32, started: Option<u64>, words: &[String]) -> Vec<String> {
    // Not known, it is another at each session.
    let started = started.map_or_else(|| format!("? (seed {seed})"), |ticks| ticks.to_string());
    let mut all = vec![format!("process {pid} begun {started} ticks after boot")];
    all.extend_from_slice(words);
    all
}
