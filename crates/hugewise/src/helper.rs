//! Runs the programs of others that are asked something (`postgres -C`) or that build something: shut in, bounded, and once.

mod groups;
mod syscall;
#[cfg(test)]
mod tests;

pub(crate) use groups::end_all;

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Of each stream; an answer is one line, and what a compiler complains about rarely longer.
const LONGEST: usize = 64 << 10;
/// Between two looks at whether it has ended.
const POLL_PERIOD: Duration = Duration::from_millis(10);
/// How long a killed program may take to be gone; one that waits for a dead disk never is.
const GONE_WITHIN: Duration = Duration::from_millis(500);

/// Whose rights a helper has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// How a helper is run.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// Where it starts.
    pub(crate) directory: &'a Path,
    /// All that is in its environment.
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// As whom, if not as the user of this program. Needs root; supplementary groups are given up.
    pub(crate) user: Option<User>,
    /// It is killed after this long, with all that it started in its process group.
    pub(crate) timeout: Duration,
}

/// What it printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs a program to its end: in a session of its own, so that no terminal is within its reach, without descriptors, environment
/// or new privileges, and killed with this program.
///
/// # Errors
/// In words: it cannot be started, takes too long, or prints too much.
pub(crate) fn run(program: &Path, arguments: &[OsString], place: &Place<'_>) -> Result<Ended, String> {
    let named = |why: String| format!("{}: {why}", program.display());
    // A signal must reach what is started here.
    crate::commands::watch_signals().map_err(|error| named(format!("{error:#}")))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(place.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(place.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(user) = place.user {
        // Also gives up the supplementary groups.
        command.uid(user.uid).gid(user.gid);
    }
    syscall::shut_in(&mut command);
    let child = command.spawn().map_err(|error| named(error.to_string()))?;
    let mut running = Running::new(child);
    let ended = running.listen(place.timeout).map_err(named)?;
    Ok(ended)
}

/// A helper that has been started; killed when it is dropped.
struct Running {
    child: Child,
    group: Pid,
}

impl Running {
    fn new(child: Child) -> Self {
        let group = Pid::from_child(&child);
        groups::add(group);
        Self { child, group }
    }

    /// Reads what it prints until it has ended; what its descendants print afterwards is not waited for.
    fn listen(&mut self, timeout: Duration) -> Result<Ended, String> {
        let began = Instant::now();
        let (out, err) = (self.child.stdout.take(), self.child.stderr.take());
        let (mut stdout, mut stderr) = (Stream::new(out)?, Stream::new(err)?);
        loop {
            let has_ended = self.has_ended();
            stdout.read()?;
            stderr.read()?;
            if has_ended {
                break;
            }
            if began.elapsed() >= timeout {
                return Err(format!("no answer within {timeout:?}, so it was ended"));
            }
            thread::sleep(POLL_PERIOD);
        }
        // Before its leader is reaped, or the group's number could be another's by then.
        groups::kill(self.group);
        let status = self.child.wait().map_err(|error| error.to_string())?;
        Ok(Ended {
            status,
            stdout: stdout.bytes,
            stderr: stderr.bytes,
        })
    }

    /// Has it ended? It is not reaped yet.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            groups::kill(self.group);
            let began = Instant::now();
            while began.elapsed() < GONE_WITHIN && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(POLL_PERIOD);
            }
        }
        groups::remove(self.group);
    }
}

/// One of its two streams.
struct Stream<R> {
    from: R,
    bytes: Vec<u8>,
}

impl<R: Read + AsFd> Stream<R> {
    fn new(from: Option<R>) -> Result<Self, String> {
        let from = from.ok_or("its output is not at hand")?;
        rustix::io::ioctl_fionbio(&from, true).map_err(|error| error.to_string())?;
        let bytes = Vec::new();
        Ok(Self { from, bytes })
    }

    /// What is there now.
    fn read(&mut self) -> Result<(), String> {
        let mut piece = [0; 4096];
        loop {
            match self.from.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) => self.bytes.extend(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
            if self.bytes.len() > LONGEST {
                return Err(format!("it printed more than {} KiB, so it was ended", LONGEST >> 10));
            }
        }
    }
}
