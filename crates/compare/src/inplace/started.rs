//! A program that is started once, and compared with itself in place like a process that runs already.

use std::time::Duration;

use super::{Own, Pair};
use crate::around::{Around, Event};
use crate::live::{Arm, Counting};
use crate::request::Task;
use crate::runlog::RunLog;
use crate::{Error, Outcome, Spec};

/// Starts the program, compares, and ends it whatever happens. A program that prints its number at its end costs one run of it,
/// and no more than `patience`.
pub(crate) fn compare(
    around: &dyn Around,
    (task, counting, patience): (&Task, &Counting, Duration),
    pair: &Pair,
    spec: &Spec,
    stop: &dyn Fn() -> bool,
    log: &mut RunLog<'_>,
) -> Result<Outcome, Error> {
    around.report(&Event::StartingOnce);
    let program = Arm {
        name: pair.names().join(","),
        command: task.command.clone(),
        ..Arm::default()
    };
    let mut own = Own::start(program, (&task.asked, task.server.clone()), counting, stop)?;
    own.until_it_works(patience)?;
    let pid = own.holder()?;
    let mut process = pair.open(pid, stop)?.of(own);
    let spec = pair.spec(pid, spec.clone());
    let done = log.take_whole_starts(&spec)?;
    let finished = super::run(&spec, done, pair.plan(), &mut process, log, around);
    match (finished.compared.is_ok(), process.end()) {
        // The result is there, and the program was killed.
        (true, Err(error)) if !stop() => around.report(&Event::NotStopped(&error)),
        _ => {}
    }
    finished.compared
}
