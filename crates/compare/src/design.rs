//! Which design a comparison takes, and why: whole runs, slices of programs that stay alive, or slices of one whose pages change.

use model::Reading;
use model::compare::{Arm, Because, Ended, Method};

use crate::flip::Span;
use crate::inplace::Pair;
use crate::looks::LEAST;
use crate::metric::{Asked, From};
use crate::request::{Request, Task};
use crate::threads::Threads;
use crate::{Error, Outcome};

/// A design and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The design.
    pub method: Method,
    /// Why.
    pub reason: Because,
    /// Was it typed? Otherwise another takes its place where it is not available.
    pub is_asked: bool,
}

/// The outcome of slices: a result, or why this program has none.
pub enum Made {
    /// A result.
    Compared(Box<Outcome>),
    /// Why there is none.
    Unfit(Error),
}

impl Made {
    /// A result only if every arm took effect: memory that no flip reaches may be reached from a program's start.
    pub fn in_effect(self) -> Self {
        match self {
            Self::Compared(compared) => match compared.0.arms.iter().find_map(not_in_effect) {
                Some(error) => Self::Unfit(error),
                None => Self::Compared(compared),
            },
            unfit => unfit,
        }
    }
}

/// That an arm did not get its pages, if it did not or that is not known.
fn not_in_effect(arm: &Arm) -> Option<Error> {
    if arm.took_effect == Reading::Known(true) {
        return None;
    }
    let note = arm.runs.last().and_then(|run| run.notes.last());
    Some(Error::NotInEffect {
        arm: arm.name.clone(),
        share: arm.coverage.known().map(|share| share.median),
        note: note.cloned(),
    })
}

/// Is it the program's end that made slices unfit?
pub fn has_ended(error: &Error) -> bool {
    matches!(error, Error::Gone { .. } | Error::TooFew { .. })
}

/// Which errors lie in the design, so that whole runs may do better, and which anywhere.
///
/// # Errors
/// Those that would come in every design.
pub fn made(compared: Result<Outcome, Error>) -> Result<Made, Error> {
    match compared {
        Ok((compare, _)) if compare.design.ended == Ended::ProgramEnded && compare.design.blocks < LEAST => {
            let blocks = compare.design.blocks;
            Ok(Made::Unfit(Error::TooFew { blocks }))
        }
        Ok(compared) => Ok(Made::Compared(Box::new(compared))),
        Err(
            error @ (Error::Gone { .. }
            | Error::Failed { .. }
            | Error::Server { .. }
            | Error::Metric { .. }
            | Error::InPlace(_)
            | Error::NotInEffect { .. }
            | Error::Flip(_)),
        ) => Ok(Made::Unfit(error)),
        Err(error) => Err(error),
    }
}

/// What was typed, what finished runs were made by, or what the arms and metrics call for. `in_place` is a comparison in place
/// of this program, or why it cannot be.
///
/// # Errors
/// If the design makes no sense of these arms and metrics.
pub fn choose(request: &Request, in_place: &Result<Pair, Error>, kept: Option<Method>) -> Result<Choice, Error> {
    let choice = match request.design.or(kept) {
        Some(method) => asked(request, method, in_place)?,
        None => usual(request, in_place.is_ok()),
    };
    must_fit(request, choice.method)?;
    Ok(choice)
}

/// One that was typed, or that finished runs were made by.
fn asked(request: &Request, method: Method, in_place: &Result<Pair, Error>) -> Result<Choice, Error> {
    let task = &request.task;
    let unfit = match method {
        Method::Runs => None,
        Method::Slices => no_slices(task),
        Method::Flip => no_flip(request).or_else(|| in_place.as_ref().err().map(Error::to_string)),
    };
    if let Some(why) = unfit {
        return Err(Error::asked(format!("--design {}", method.name()), why));
    }
    let reason = match request.design {
        None => Because::Resumed,
        Some(_) => Because::Asked,
    };
    Ok(Choice {
        method,
        reason,
        is_asked: true,
    })
}

/// What is asked of slices, against a design that has none, or none in place.
fn must_fit(request: &Request, method: Method) -> Result<(), Error> {
    let sliced = [
        ("--slice", request.slice.is_some()),
        ("--threads", request.threads != Threads::All),
    ];
    let sliced = sliced.into_iter().find(|(_, is_asked)| *is_asked);
    if let (Method::Runs, Some((option, _))) = (method, sliced) {
        return Err(Error::asked(
            option,
            "whole runs have no slices (write --design flip or slices)",
        ));
    }
    if method != Method::Flip && request.range != Span::Anon {
        return Err(Error::asked(
            "--range",
            "memory of a range is flipped in place, which no other design does (write --design flip)",
        ));
    }
    Ok(())
}

/// In place where one process can be both arms; slices where all that is judged can be read of each arm while it runs.
fn usual(request: &Request, can_flip: bool) -> Choice {
    let task = &request.task;
    let (method, reason) = if can_flip && no_flip(request).is_none() && goes_on(task) {
        let is_loaded = task.server.is_some();
        (Method::Flip, if is_loaded { Because::Loads } else { Because::Counters })
    } else if task.server.is_some() {
        (Method::Runs, Because::Load)
    } else if let Some(asked) = task.asked.iter().find(|asked| !is_counter_of_one_arm(asked)) {
        let metric = asked.wanted.name.clone();
        (Method::Runs, Because::AtEnd { metric })
    } else {
        (Method::Slices, Because::CountersOfArms)
    };
    Choice {
        method,
        reason,
        is_asked: false,
    }
}

/// Can everything that is judged be read while the program works? Whether a number goes up is known once it runs.
fn goes_on(task: &Task) -> bool {
    match &task.server {
        Some(server) => {
            server.ready.is_some()
                && !server.is_daemon
                && task.asked.iter().all(|asked| asked.from.is_none() || is_counter(asked))
        }
        None => task.asked.iter().all(is_counter),
    }
}

fn is_counter(asked: &Asked) -> bool {
    asked.pattern.is_some() && asked.wanted.higher
}

fn is_counter_of_one_arm(asked: &Asked) -> bool {
    is_counter(asked) && asked.from.as_ref().is_some_and(From::is_of_one_arm)
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
