//! A program that serves: waited for until it is ready, loaded by another program, and stopped.

use std::time::{Duration, Instant};

use super::arm::Arm;
use super::family::MARK;
use super::process::Process;
use super::shell::command;
use crate::Error;
use model::compare::Loads;

/// Between two questions whether it is ready.
const POLL_PERIOD: Duration = Duration::from_millis(50);
/// After being asked to stop.
const STOPPING: Duration = Duration::from_secs(30);

/// Loads after each start, where no others are asked for.
pub const LOADS: Loads = Loads { warm_up: 1, counted: 2 };

/// How to use a server; each a command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Ends well once the server is ready; without it the server is ready at once.
    pub ready: Option<String>,
    /// Does the program's own end, and a good one, say that the server is ready, which lives on as a daemon?
    pub is_daemon: bool,
    /// How long it may take to become ready.
    pub patience: Duration,
    pub load: String,
    /// Loads after each start that do not count.
    pub warm_up: u32,
    /// Loads after each start that count.
    pub loads: u32,
    /// Ends well if what the loads left is as it must be; asked once, before the server stops.
    pub check: Option<String>,
    /// Stops it; without it a SIGTERM does.
    pub stop: Option<String>,
}

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
    let mut load = Process::shell(arm, line, &[])?;
    while !load.wait(Some(POLL_PERIOD), stop)? {
        if has_ended()? {
            return Err(Error::failed(arm, "the server ended under the load", ""));
        }
    }
    let done = load.end()?;
    if !done.process.ended.status.success() {
        let how = format!("--load ended with {}", done.process.ended.status);
        return Err(Error::failed(arm, how, &done.process.outputs.errors()));
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
        if self.is_daemon {
            return self.wait_until_started(arm, server, stop);
        }
        let Some(ready) = &self.ready else { return Ok(()) };
        // The arm does nothing to the command, but what it may start is known by its mark.
        let mark: Vec<_> = arm.setup.env.iter().filter(|(name, _)| name == MARK).cloned().collect();
        let until = Instant::now() + self.patience;
        loop {
            let mut question = Process::shell(arm, ready, &mark)?;
            let left = until.saturating_duration_since(Instant::now());
            if !question.wait(Some(left), stop)? {
                // Dropped, it is ended with all that it started.
                let what = format!(
                    "--ready was still running after {} (its process group is ended)",
                    time(self.patience)
                );
                return Err(Error::failed(arm, what, &question.outputs.output()));
            }
            let answer = question.end()?;
            if answer.process.ended.status.success() {
                return Ok(());
            }
            if server.wait(Some(POLL_PERIOD), stop)? {
                return Err(Error::failed(
                    arm,
                    "the server ended before it was ready",
                    &server.outputs.errors(),
                ));
            }
            if Instant::now() >= until {
                let what = format!("--ready did not end well within {}", time(self.patience));
                let said = [server.outputs.errors(), answer.process.outputs.errors()];
                let said = said.iter().find(|said| !said.trim().is_empty());
                return Err(Error::failed(arm, what, said.map_or("", String::as_str)));
            }
        }
    }

    fn wait_until_started(&self, arm: &Arm, server: &mut Process, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        if !server.wait(Some(self.patience), stop)? {
            let what = format!(
                "the command that starts the server did not end within {}",
                time(self.patience)
            );
            return Err(Error::failed(arm, what, &server.outputs.errors()));
        }
        let how = match server.status() {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => format!("starting the server ended with {status}"),
            Err(error) => format!("starting the server: {error}"),
        };
        Err(Error::failed(arm, how, &server.said()))
    }

    /// Has what the loads left checked.
    pub(crate) fn check(&self, arm: &Arm, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let Some(line) = &self.check else { return Ok(()) };
        let Some(done) = command(arm, line, Some(self.patience), stop)? else {
            let what = format!(
                "the check after the loads was still running after {}",
                time(self.patience)
            );
            return Err(Error::failed(arm, what, ""));
        };
        match done.ended.status.success() {
            true => Ok(()),
            false => Err(Error::failed(
                arm,
                "the check after the loads failed",
                &done.outputs.errors(),
            )),
        }
    }

    /// Stops it; `is_there` knows of daemons.
    pub(crate) fn stop(
        &self,
        arm: &Arm,
        server: &mut Process,
        stop: &dyn Fn() -> bool,
        is_there: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        match &self.stop {
            None => server.ask_to_end(),
            Some(line) => {
                let what = "--stop was still running after 30 s (its process group is ended)";
                command(arm, line, Some(STOPPING), stop)?.ok_or_else(|| Error::failed(arm, what, ""))?;
            }
        }
        let until = Instant::now() + STOPPING;
        let mut has_ended = server.wait(Some(STOPPING), stop)?;
        while has_ended && is_there() && Instant::now() < until {
            has_ended = server.wait(Some(Duration::ZERO), stop)?;
            std::thread::sleep(POLL_PERIOD);
        }
        if has_ended && !is_there() {
            Ok(())
        } else {
            Err(Error::failed(
                arm,
                "the server did not stop within 30 s",
                &server.outputs.errors(),
            ))
        }
    }
}

/// `120 s`, `0.5 s`.
fn time(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}
