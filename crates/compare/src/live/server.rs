//! A program that serves: waited for until it is ready, loaded by another program, and stopped.

use std::time::{Duration, Instant};

use super::process::Process;
use super::{Arm, said};
use crate::Error;

/// Between two questions whether it is ready.
const POLL_PERIOD: Duration = Duration::from_millis(50);
/// After being asked to stop.
const STOPPING: Duration = Duration::from_secs(30);

/// How to use a server; each a command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Ends well once the server is ready; without it the server is ready at once.
    pub ready: Option<String>,
    /// How long it may take to become ready.
    pub patience: Duration,
    /// What is timed.
    pub load: String,
    /// Stops it; without it a SIGTERM does.
    pub stop: Option<String>,
}

/// A load that was served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) wall: Duration,
    pub(crate) output: String,
}

/// Runs a load to its end, unless the server ends before.
pub(crate) fn load(
    arm: &Arm,
    line: &str,
    stop: &dyn Fn() -> bool,
    mut has_ended: impl FnMut() -> Result<bool, Error>,
) -> Result<Load, Error> {
    let mut load = Process::shell(arm, line)?;
    while !load.wait(Some(POLL_PERIOD), stop)? {
        if has_ended()? {
            return Err(failed(arm, "the server ended under the load", ""));
        }
    }
    let done = load.end()?;
    if !done.process.ended.status.success() {
        let how = format!("--load ended with {}", done.process.ended.status);
        return Err(failed(arm, &how, &done.process.outputs.errors()));
    }
    Ok(Load {
        wall: done.process.wall,
        output: done.process.outputs.all(),
    })
}

impl Server {
    pub(crate) fn wait_until_ready(
        &self,
        arm: &Arm,
        server: &mut Process,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let Some(ready) = &self.ready else { return Ok(()) };
        let until = Instant::now() + self.patience;
        loop {
            let mut question = Process::shell(arm, ready)?;
            let left = until.saturating_duration_since(Instant::now());
            if !question.wait(Some(left), stop)? {
                // Dropped, it is ended with all that it started.
                let what = format!(
                    "--ready was still running after {} (its process group is ended)",
                    time(self.patience)
                );
                return Err(failed(arm, &what, &question.output()));
            }
            let answer = question.end()?;
            if answer.process.ended.status.success() {
                return Ok(());
            }
            if server.wait(Some(POLL_PERIOD), stop)? {
                return Err(failed(arm, "the server ended before it was ready", ""));
            }
            if Instant::now() >= until {
                let what = format!("--ready did not end well within {}", time(self.patience));
                return Err(failed(arm, &what, &answer.process.outputs.errors()));
            }
        }
    }

    /// The server is watched while the load runs.
    pub(super) fn load(&self, arm: &Arm, server: &mut Process, stop: &dyn Fn() -> bool) -> Result<Load, Error> {
        load(arm, &self.load, stop, || {
            server.wait(Some(Duration::from_millis(1)), stop)
        })
    }

    pub(crate) fn stop(&self, arm: &Arm, server: &mut Process, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        match &self.stop {
            None => server.ask_to_end(),
            Some(line) => {
                let mut command = Process::shell(arm, line)?;
                if !command.wait(Some(STOPPING), stop)? {
                    return Err(failed(
                        arm,
                        "--stop was still running after 30 s (its process group is ended)",
                        "",
                    ));
                }
                command.end()?;
            }
        }
        if server.wait(Some(STOPPING), stop)? {
            Ok(())
        } else {
            Err(failed(arm, "the server did not stop within 30 s", ""))
        }
    }
}

/// `120 s`, `0.5 s`.
fn time(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

fn failed(arm: &Arm, what: &str, errors: &str) -> Error {
    Error::Server {
        arm: arm.name.clone(),
        what: what.to_owned(),
        said: said(errors),
    }
}
