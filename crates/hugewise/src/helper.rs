//! Runs the programs of others that are asked something (`postgres -C`) or that build something: shut in, bounded, and once.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::iter::once;
use std::path::Path;
use std::time::{Duration, Instant};

use process::rights::ShutIn;
use process::{Attention, Done, Order, Process, Step, WaitError};

use crate::stop;

/// Of both streams; an answer is one line, and what a compiler complains about rarely longer.
const LONGEST: u64 = 64 << 10;
/// Between two looks at whether it has ended, or printed too much.
const POLL_PERIOD: Duration = Duration::from_millis(10);
/// How long a killed program may take to be gone; one that waits for a dead disk never is.
const GONE_WITHIN: Duration = Duration::from_millis(500);

/// Runs a program to its end, with nothing of this process but what it is shut in with. After the timeout it is killed, with all that
/// it started.
///
/// # Errors
/// In words: it cannot be started, takes too long, prints too much, or the user had enough.
pub(crate) fn run(program: &Path, arguments: &[OsString], shut_in: &ShutIn, timeout: Duration) -> Result<Done, String> {
    let named = |why: String| format!("{}: {why}", program.display());
    // A signal must end what is started here.
    stop::watch().map_err(|error| named(format!("{error:#}")))?;
    let words: Vec<OsString> = once(program.into()).chain(arguments.iter().cloned()).collect();
    let order = Order {
        shut_in: Some(shut_in),
        ..Order::plain(&words)
    };
    let started = Process::start(&order, Attention::Free, false);
    let process = started.map_err(|failure| match failure.step {
        Step::Program => named(failure.error.to_string()),
        step => named(format!("{}: {}", step.title(), failure.error)),
    })?;
    ended(process, timeout).map_err(named)
}

/// How it ended, or why it was not waited for.
fn ended(mut process: Process, timeout: Duration) -> Result<Done, String> {
    let began = Instant::now();
    let why = loop {
        match process.rest(POLL_PERIOD, &stop::is_asked) {
            _ if process.outputs.written() > LONGEST => {
                break format!("it printed more than {} KiB, so it was ended", LONGEST >> 10);
            }
            Ok(true) => return process.end().map_err(|error| error.to_string()),
            Ok(false) if began.elapsed() < timeout => {}
            Ok(false) => break format!("no answer within {timeout:?}, so it was ended"),
            Err(WaitError::Interrupted) => break "interrupted".to_owned(),
            Err(WaitError::Failed(error)) => break error.to_string(),
        }
    };
    process.kill_within(GONE_WITHIN);
    Err(why)
}
