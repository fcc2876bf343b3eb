//! The workers of one visit: started together, begun together, heard, and gone whatever happens.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::worker::{Answer, GO, Job, READY, Taken};
use super::{Error, Program};

/// Setting up may mean thousands of processes or hundreds of megabytes.
const SETTING_UP: Duration = Duration::from_secs(60);
/// A batch may take long on a machine that is busy.
const OVERTIME: Duration = Duration::from_secs(30);
/// Between two looks at whether the user wants to stop.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Why there are no samples.
#[derive(Debug)]
pub(super) enum Failed {
    /// Nothing can be measured at all.
    All(Error),
    /// This point cannot, for that reason.
    This(String),
}

/// Has every job done at the same time, each in a process of its own.
pub(super) fn visit(program: &Program, jobs: &[Job], stop: &dyn Fn() -> bool) -> Result<Vec<Taken>, Failed> {
    let start = |job| {
        Member::start(program, job).map_err(|source| {
            Failed::All(Error::Start {
                program: program.path.clone(),
                source,
            })
        })
    };
    let mut crew: Vec<Member> = jobs.iter().map(start).collect::<Result<_, _>>()?;
    let set_up = Instant::now() + SETTING_UP;
    for member in &mut crew {
        let line = member.line(set_up, stop)?;
        if line != READY {
            return Err(Failed::This(refusal(&line)));
        }
    }
    for member in &mut crew {
        member.tell(GO);
    }
    let slice = jobs.iter().map(|job| job.slice).max().unwrap_or_default();
    let end = Instant::now() + slice + OVERTIME;
    crew.iter_mut()
        .map(|member| {
            let line = member.line(end, stop)?;
            match serde_json::from_str(&line) {
                Ok(Answer::Taken(taken)) => Ok(taken),
                _ => Err(Failed::This(refusal(&line))),
            }
        })
        .collect()
}

fn refusal(line: &str) -> String {
    match serde_json::from_str(line) {
        Ok(Answer::Refused(why)) => why,
        _ => format!("a worker said something else than expected: {line:.60}"),
    }
}

/// A worker and the two pipes to it.
struct Member {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    heard: Vec<u8>,
}

impl Member {
    fn start(program: &Program, job: &Job) -> io::Result<Self> {
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut member = Self {
            input: child.stdin.take(),
            output: child.stdout.take(),
            child,
            heard: Vec::new(),
        };
        member.tell(&serde_json::to_string(job)?);
        Ok(member)
    }

    /// A worker that does not listen any more is noticed when it is heard.
    fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}");
        }
    }

    /// The next line it says.
    fn line(&mut self, until: Instant, stop: &dyn Fn() -> bool) -> Result<String, Failed> {
        loop {
            if let Some(end) = self.heard.iter().position(|&byte| byte == b'\n') {
                let rest = self.heard.split_off(end + 1);
                let line = std::mem::replace(&mut self.heard, rest);
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if stop() {
                return Err(Failed::All(Error::Interrupted));
            }
            if Instant::now() >= until {
                return Err(Failed::This("a worker did not answer in time".to_owned()));
            }
            if self
                .hear()
                .map_err(|why| Failed::This(format!("a worker could not be heard: {why}")))?
                == Some(0)
            {
                return Err(self.gone(stop));
            }
        }
    }

    /// Waits a moment for more; `Some(0)`: it will say no more.
    fn hear(&mut self) -> io::Result<Option<usize>> {
        let Some(output) = &mut self.output else {
            return Ok(Some(0));
        };
        let mut waiting = [PollFd::new(output, PollFlags::IN)];
        match poll(&mut waiting, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut more = [0; 16_384];
        let read = output.read(&mut more)?;
        self.heard.extend_from_slice(&more[..read]);
        Ok(Some(read))
    }

    /// It has ended: by Ctrl-C, which the whole terminal gets, or by an accident.
    fn gone(&mut self, stop: &dyn Fn() -> bool) -> Failed {
        let ended = self.child.wait();
        if stop() {
            return Failed::All(Error::Interrupted);
        }
        let how = ended.map_or_else(|why| why.to_string(), |status| status.to_string());
        Failed::This(format!("a worker ended too early ({how})"))
    }
}

impl Drop for Member {
    /// Whatever it does, it ends here, and what it has started ends with it.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
