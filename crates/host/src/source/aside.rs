//! Reads of what other processes name, made by a process beside this one. One that waits for good, as for a file system in user space below an
//! overlay, is left behind there: it holds up neither this process nor its end, which a thread would.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{Cause, Unread};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::syscall;

/// For a file that a process names: local disks answer within milliseconds, a busy one within a tenth of a second.
const FILE: Duration = Duration::from_millis(450);
/// For the files that all processes have open.
pub(super) const ALL_FILES: Duration = Duration::from_secs(5);
/// Time that may be lost to reads without an answer; afterwards each is waited for no longer than [`SHORT`].
const LOST: Duration = Duration::from_millis(800);
const SHORT: Duration = Duration::from_millis(2);
/// Processes that may wait for an answer for good; with so many nothing more is tried.
const MOST_LEFT: u32 = 16;

/// What was asked is not known to be anything but this.
pub(super) const NO_ANSWER: &str = "no answer";

/// The process that answers, if there is one, and those that never did.
static READERS: Mutex<Readers> = Mutex::new(Readers::new());
/// Those that this process started for it: they are no programs of its user's.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Is it the process that reads for this one?
pub fn is_reader(pid: u32) -> bool {
    pid != 0 && STARTED.load(Ordering::Relaxed) == pid
}

/// An answer: the content apart, as it may be long and is no text.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    /// Why there is none.
    pub(super) unread: Option<Unread>,
    /// It is longer than was allowed.
    pub(super) is_too_long: bool,
    /// The bytes in front of it.
    pub(super) before: u64,
    /// Its own bytes.
    pub(super) length: usize,
}

pub(super) type Answer = (Head, Vec<u8>);

/// What the process beside this one is asked: of one kind, as there is one such process.
pub(super) trait Question: Serialize + DeserializeOwned {
    fn answer(&self) -> Answer;
}

struct Readers {
    reader: Option<Reader>,
    /// Users whose files got no answer before.
    silent: Vec<u32>,
    lost: Duration,
    left: Vec<Pid>,
}

struct Reader {
    pid: Pid,
    line: UnixStream,
    /// The process that started it: a copy of that has no use of it.
    of: u32,
}

/// Asks about a file of a process of this user, or about all processes.
///
/// # Errors
/// That there was no answer in time, or that none is waited for any more.
pub(super) fn ask<Q: Question>(question: &Q, user: Option<u32>, place: &str) -> Result<Answer, Unread> {
    let mut readers = READERS.lock().unwrap_or_else(PoisonError::into_inner);
    readers
        .ask(question, user)
        .map_err(|(cause, why)| Unread::new(cause, place, why))
}

impl Readers {
    const fn new() -> Self {
        Self {
            reader: None,
            silent: Vec::new(),
            lost: Duration::ZERO,
            left: Vec::new(),
        }
    }

    fn ask<Q: Question>(&mut self, question: &Q, user: Option<u32>) -> Result<Answer, (Cause, String)> {
        if user.is_some_and(|user| self.silent.contains(&user)) {
            let why = "left out: an earlier file of a process of the same user got no answer";
            return Err((Cause::Timeout, why.to_owned()));
        }
        if self.left.len() as u32 >= MOST_LEFT {
            return Err((
                Cause::Timeout,
                format!("left out: {MOST_LEFT} files before it got no answer"),
            ));
        }
        let limit = match user {
            Some(_) => FILE.min(LOST.saturating_sub(self.lost)).max(SHORT),
            None => ALL_FILES,
        };
        let failed = |error: io::Error| {
            (
                Cause::Failed,
                format!("no process could be started that reads it: {error}"),
            )
        };
        let reader = self.reader.take().filter(|reader| reader.of == std::process::id());
        let reader = reader.map_or_else(Reader::start::<Q>, Ok).map_err(failed)?;
        let began = Instant::now();
        match reader.ask(question, began + limit) {
            Ok(answer) => {
                self.reader = Some(reader);
                Ok(answer)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.lost += began.elapsed();
                self.silent.extend(user);
                self.leave(reader.pid);
                Err((Cause::Timeout, format!("{NO_ANSWER} within {limit:?}")))
            }
            Err(error) => {
                self.leave(reader.pid);
                Err((Cause::Failed, format!("the process that reads it ended: {error}")))
            }
        }
    }

    /// It ends as soon as the kernel lets it.
    fn leave(&mut self, pid: Pid) {
        let _ = kill_process(pid, Signal::KILL);
        self.left.push(pid);
        let is_there = |pid: &Pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None));
        self.left.retain(is_there);
    }
}

impl Reader {
    fn start<Q: Question>() -> io::Result<Self> {
        let (line, other) = UnixStream::pair()?;
        let pid = syscall::fork(|| serve::<Q>(&other))?;
        STARTED.store(pid.as_raw_nonzero().get().cast_unsigned(), Ordering::Relaxed);
        let of = std::process::id();
        Ok(Self { pid, line, of })
    }

    /// The other process sends all of an answer at once: what does not come in time is `WouldBlock`.
    fn ask(&self, question: &impl Question, until: Instant) -> io::Result<Answer> {
        self.line.set_write_timeout(Some(left(until)))?;
        (&self.line).write_all(&line(question)?)?;
        let mut answer = BufReader::new(&self.line);
        let mut head = String::new();
        self.line.set_read_timeout(Some(left(until)))?;
        answer.read_line(&mut head)?;
        let head: Head = serde_json::from_str(&head)?;
        let mut content = vec![0; head.length];
        self.line.set_read_timeout(Some(left(until)))?;
        answer.read_exact(&mut content)?;
        Ok((head, content))
    }
}

/// Questions and the heads of answers are one line each.
fn line(what: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    Ok(line)
}

/// The time until then; a timeout of zero is refused.
fn left(until: Instant) -> Duration {
    let left = until.saturating_duration_since(Instant::now());
    left.max(Duration::from_micros(1))
}

/// The other process's life: it has this line and no other file, answers one question after the other, and ends with this process.
fn serve<Q: Question>(line: &UnixStream) {
    syscall::keep_only(line.as_fd());
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"hugewise-reader");
    let Ok(line) = rustix::io::dup(syscall::only_file()) else {
        return;
    };
    let line = File::from(line);
    for question in BufReader::new(&line).lines() {
        let answered = question.and_then(|question| {
            let (mut head, content) = serde_json::from_str::<Q>(&question)?.answer();
            head.length = content.len();
            (&line).write_all(&[self::line(&head)?, content].concat())
        });
        if answered.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde::{Deserialize, Serialize};

    use super::{Answer, FILE, Head, LOST, Question, Readers, SHORT};

    #[derive(Serialize, Deserialize)]
    enum Made {
        Answered,
        Never,
    }

    impl Question for Made {
        fn answer(&self) -> Answer {
            match self {
                Self::Answered => (Head::default(), b"answer".into()),
                Self::Never => loop {
                    std::thread::park();
                },
            }
        }
    }

    #[test]
    fn what_never_answers_costs_little_however_much_of_it_there_is() {
        let mut readers = Readers::new();
        let mut left_out = 0;
        for nth in 0..80 {
            // Of one user, and then of one each.
            let user = if nth < 40 { 1000 } else { 1000 + nth };
            let (_, why) = readers.ask(&Made::Never, Some(user)).expect_err("no answer");
            assert!(why.starts_with("no answer") || why.starts_with("left out"), "{why}");
            left_out += usize::from(why.starts_with("left out"));
            assert!(nth != 0 || readers.lost >= FILE);
        }
        assert!(left_out >= 39, "one user is waited for once: {left_out}");
        // What is waited for apart from that is in the limits, and not in how busy the machine is.
        assert_eq!(SHORT.max(FILE.min(LOST.saturating_sub(readers.lost))), SHORT);
    }

    #[test]
    fn a_reader_that_does_not_answer_is_replaced_for_other_users() {
        let mut readers = Readers::new();
        assert!(readers.ask(&Made::Never, Some(1000)).is_err());
        let began = Instant::now();
        // A busy machine may take longer than is waited for.
        while readers.ask(&Made::Answered, None).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
    }
}
