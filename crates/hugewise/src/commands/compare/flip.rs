//! `--design flip`: a program that is started once, and compared with itself in place like a process that runs already.

use compare::inplace::{self, Own};
use compare::live::Arm;
use compare::{Error, Outcome, Spec};

use super::inplace::InPlace;
use super::journal::Journal;
use super::{Comparison, PATIENCE};

/// Starts the program, compares, and ends it whatever happens.
pub(super) fn compare(
    comparison: &Comparison<'_>,
    in_place: &InPlace<'_>,
    spec: &Spec,
    stop: &dyn Fn() -> bool,
    journal: &mut Journal,
) -> Result<Outcome, Error> {
    let Comparison { ui, task, counting, .. } = comparison;
    ui.note("starting the program, once");
    let program = Arm {
        name: in_place.names().join(","),
        command: task.command.clone(),
        ..Arm::default()
    };
    let mut own = Own::start(program, task.server.clone(), counting, stop)?;
    // A program that tells its number at its end costs one run of it at most.
    own.until_it_works(&task.asked, PATIENCE)?;
    let pid = own.holder()?;
    let mut process = in_place.open(pid, stop)?.of(own);
    let spec = in_place.spec(pid, spec.clone());
    let done = journal.take_whole_starts(&spec)?;
    let finished = inplace::run(&spec, done, in_place.plan(), &mut process, journal, &mut ui.progress());
    match (finished.compared.is_ok(), process.end()) {
        // The result is there, and the program was killed.
        (true, Err(error)) if !stop() => ui.say(&error.to_string()),
        _ => {}
    }
    finished.compared
}
