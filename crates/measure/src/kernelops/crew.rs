//! The workers of one visit: started together, begun together, heard, and gone whatever happens.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::spec::Program;
use super::worker::{Answer, GO, Job, READY, Taken};
use crate::Error;

/// Setting up may mean thousands of processes or hundreds of megabytes.
const SETTING_UP: Duration = Duration::from_secs(60);
/// A batch may take long on a machine that is busy.
const OVERTIME: Duration = Duration::from_secs(30);
/// Between two looks at whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);

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
        let line = member.next(set_up, stop)?;
        if line != READY {
            let why = answer(&line).err().unwrap_or("a worker answered too early".to_owned());
            return Err(Failed::This(why));
        }
    }
    for member in &mut crew {
        member.tell(GO);
    }
    let slice = jobs.iter().map(|job| job.slice).max().unwrap_or_default();
    let end = Instant::now() + slice + OVERTIME;
    crew.iter_mut()
        .map(|member| {
            let line = member.next(end, stop)?;
            answer(&line).map_err(Failed::This)
        })
        .collect()
}

fn answer(line: &str) -> Answer {
    let other = |_| Err(format!("a worker said something else than expected: {line:.60}"));
    serde_json::from_str(line).unwrap_or_else(other)
}

/// A worker and the line to it, which is its standard input; it prints nothing.
struct Member {
    child: Child,
    line: BufReader<UnixStream>,
    /// What it said of a line so far.
    heard: Vec<u8>,
}

impl Member {
    fn start(program: &Program, job: &Job) -> io::Result<Self> {
        let (line, its_end) = UnixStream::pair()?;
        line.set_read_timeout(Some(LOOK))?;
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .stdin(OwnedFd::from(its_end))
            .stdout(Stdio::null())
            .spawn()?;
        let mut member = Self {
            child,
            line: BufReader::new(line),
            heard: Vec::new(),
        };
        member.tell(&serde_json::to_string(job)?);
        Ok(member)
    }

    /// A worker that does not listen any more is noticed when it is heard.
    fn tell(&mut self, text: &str) {
        let _ = writeln!(self.line.get_ref(), "{text}");
    }

    /// The next line it says.
    fn next(&mut self, until: Instant, stop: &dyn Fn() -> bool) -> Result<String, Failed> {
        loop {
            match self.line.read_until(b'\n', &mut self.heard) {
                Ok(_) if self.heard.pop() == Some(b'\n') => {
                    let line = std::mem::take(&mut self.heard);
                    return Ok(String::from_utf8_lossy(&line).into_owned());
                }
                Ok(_) => return Err(self.gone(stop)),
                // It ended without having listened.
                Err(why) if why.kind() == io::ErrorKind::ConnectionReset => return Err(self.gone(stop)),
                Err(why) if why.kind() != io::ErrorKind::WouldBlock => {
                    return Err(Failed::This(format!("a worker could not be heard: {why}")));
                }
                Err(_) if stop() => return Err(Failed::All(Error::Interrupted)),
                Err(_) if Instant::now() >= until => {
                    return Err(Failed::This("a worker did not answer in time".to_owned()));
                }
                Err(_) => {}
            }
        }
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
