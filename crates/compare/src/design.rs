//! Why slices do not suit a comparison: by what is asked of them, and by what came of them once they were tried.

use model::Reading;
use model::compare::{Arm, Ended, Method};

use crate::inplace::Pair;
use crate::interim::LEAST;
use crate::metric::{Asked, From};
use crate::request::{Request, Task};
use crate::{Error, Outcome};

/// A result of slices, unless the program ended after fewer blocks than can show anything.
///
/// # Errors
/// [`Error::TooFew`].
pub fn enough(compared: Outcome) -> Result<Outcome, Error> {
    let design = &compared.0.design;
    match (design.ended, design.blocks) {
        (Ended::ProgramEnded, blocks) if blocks < LEAST => Err(Error::TooFew { blocks }),
        _ => Ok(compared),
    }
}

/// A result only if every arm took effect: memory that no flip reaches may be reached from a program's start.
///
/// # Errors
/// [`Error::InPlace`].
pub fn in_effect(compared: Outcome) -> Result<Outcome, Error> {
    let error = compared.0.arms.iter().find_map(not_in_effect);
    error.map_or(Ok(compared), Err)
}

/// That an arm did not get its pages, if it did not or that is not known.
fn not_in_effect(arm: &Arm) -> Option<Error> {
    if arm.took_effect == Reading::Known(true) {
        return None;
    }
    let note = arm.runs.last().and_then(|run| run.notes.last());
    let share = match &arm.coverage {
        Reading::Known(share) => format!("{:.1} % of its memory was on them", share.median * 100.0),
        Reading::Unread(_) => "its pages could not be read".to_owned(),
    };
    let note = note.map_or(String::new(), |note| format!(" ({note})"));
    Some(Error::InPlace(format!(
        "arm {} did not take effect: {share}{note}",
        arm.name
    )))
}

/// Is it the program's end that made slices unfit?
pub fn has_ended(error: &Error) -> bool {
    matches!(error, Error::Gone { .. } | Error::TooFew { .. })
}

/// Does an error lie in the design, so that whole runs may do better? Others would come in every design.
pub fn is_unfit(error: &Error) -> bool {
    matches!(
        error,
        Error::Gone { .. }
            | Error::TooFew { .. }
            | Error::Failed { .. }
            | Error::Metric { .. }
            | Error::InPlace(_)
            | Error::Flip(_)
    )
}

/// Why a design makes no sense of the arms and metrics that are asked for. `in_place` is a comparison in place of this program,
/// or why it cannot be.
pub(crate) fn unfit(request: &Request, method: Method, in_place: &Result<Pair, Error>) -> Option<String> {
    match method {
        Method::Runs => None,
        Method::Slices => no_slices(&request.task),
        Method::Flip => no_flip(request).or_else(|| in_place.as_ref().err().map(Error::to_string)),
    }
}

/// Why one process cannot be all arms.
fn no_flip(request: &Request) -> Option<String> {
    let task = &request.task;
    let server = task.server.as_ref().into_iter();
    let lines = server.flat_map(|server| {
        [
            Some(server.load.as_str()),
            server.ready.as_deref(),
            server.stop.as_deref(),
        ]
    });
    let mut words = task
        .command
        .iter()
        .filter_map(|word| word.to_str())
        .chain(lines.flatten());
    let is_of_one_arm = |asked: &Asked| asked.from.as_ref().is_some_and(From::is_of_one_arm);
    if task.server.as_ref().is_some_and(|server| server.is_daemon) {
        return Some(
            "--ready starts the server, whose processes are not known before (write its program after `--`)".to_owned(),
        );
    }
    if let Some(option) = request.about_starts {
        return Some(format!(
            "{option} is about starts of the server, and in one process every slice is one load (leave it out, or write --design runs)"
        ));
    }
    let what = if request.arms_file.is_some() {
        "--arms-file"
    } else if !request.places.is_empty() {
        "--place"
    } else if request.technique.is_some() {
        "--technique"
    } else if words.any(|word| word.contains("{arm}")) || task.asked.iter().any(is_of_one_arm) {
        "{arm}"
    } else {
        return None;
    };
    Some(format!(
        "all arms are one process, and {what} makes them different ones (leave it out, or write --design slices or runs)"
    ))
}

/// Why slices of several programs cannot be judged.
fn no_slices(task: &Task) -> Option<String> {
    if task.server.is_some() {
        return Some(
            "a server's load is timed as a whole (leave --load out and give it load yourself, or use whole runs)"
                .to_owned(),
        );
    }
    task.asked.iter().find_map(|asked| {
        let name = &asked.wanted.name;
        if asked.pattern.is_none() {
            return Some(format!(
                "`{name}` belongs to whole runs: judge a number that goes up while the program works, as in \
                 --metric 'ops=ops: ([0-9]+),from=/tmp/{{arm}}.txt'"
            ));
        }
        let is_shared = asked.from.as_ref().is_some_and(|from| !from.is_of_one_arm());
        is_shared.then(|| {
            format!(
                "`{name}` is read at one place for all arms, whose programs are alive at once: write {{arm}} in its `from=` \
                 and in the command"
            )
        })
    })
}
