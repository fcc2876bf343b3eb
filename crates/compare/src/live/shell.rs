//! Commands of the shell around an arm's program.

use std::ffi::OsString;
use std::time::Duration;

use ::process::Order;

use super::arm::Arm;
use super::process::{Process, UNKNOWN, not_started};
use crate::Error;
use crate::excerpt::said;

impl Process {
    /// Starts a command of the shell with these variables, without what the arm does to its program. Servers that it starts may outlive it.
    pub(super) fn shell(arm: &Arm, line: &str, env: &[(OsString, OsString)]) -> Result<Self, Error> {
        let words = ["/bin/sh", "-c", &line.replace("{arm}", &arm.name)].map(OsString::from);
        let order = Order {
            env,
            unset: &arm.unset,
            shut_in: arm.shut_in.as_deref(),
            ..Order::plain(&words)
        };
        let process = ::process::Process::start(&order, UNKNOWN, true);
        Ok(Self {
            arm: arm.name.clone(),
            process: process.map_err(|failure| not_started(arm, &order, failure))?,
            squeeze: None,
            armed: None,
            collector: None,
        })
    }
}

/// Runs a command of the shell; `None` if it is not over within the time, when it is ended with all that it started.
pub(crate) fn command(
    arm: &Arm,
    line: &str,
    time: Option<Duration>,
    stop: &dyn Fn() -> bool,
) -> Result<Option<::process::Done>, Error> {
    let mut process = Process::shell(arm, line, &[])?;
    let has_ended = process.wait(time, stop)?;
    let done = has_ended.then(|| process.end()).transpose()?;
    Ok(done.map(|done| done.process))
}

/// A command of the shell after all runs, whatever came of them; what it says is nothing to a result.
///
/// # Errors
/// If it cannot be started, ends badly, or is stopped.
pub fn clean_up(line: &str, stop: &dyn Fn() -> bool) -> Result<(), Error> {
    match command(&Arm::default(), line, None, stop)? {
        Some(done) if !done.ended.status.success() => Err(Error::asked("--cleanup", ended(line, &done))),
        _ => Ok(()),
    }
}

/// A command of the shell before or after an arm's program.
pub(crate) fn hook(arm: &Arm, hook: Option<&str>, when: &str, stop: &dyn Fn() -> bool) -> Result<(), Error> {
    let Some(hook) = hook else { return Ok(()) };
    // It is the user's own, as that of an arm's file.
    let own = Arm {
        shut_in: None,
        ..arm.clone()
    };
    match command(&own, hook, None, stop)? {
        Some(done) if !done.ended.status.success() => {
            let what = format!("the command {when} its run: {}", ended(hook, &done));
            Err(Error::failed(arm, what, ""))
        }
        _ => Ok(()),
    }
}

/// How a command ended that did not end well.
pub(crate) fn ended(line: &str, done: &::process::Done) -> String {
    format!(
        "`{line}` ended with {}{}",
        done.ended.status,
        said(&done.outputs.errors())
    )
}
