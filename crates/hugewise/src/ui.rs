//! The only module that prints: results to standard output or a file, everything else to standard error.

#![allow(clippy::disallowed_methods)]

mod syscall;

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use model::Warning;

use crate::cli::args::Global;
use crate::files::{Access, Existing, Target};
use draw::{Look, WIDE, layout, printable, safe::printable_lines};

/// What is written to standard output at a time.
const BUFFER: usize = 64 << 10;

/// Between two lines of progress where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// Bad news that was asked for by exit code.
const BAD_NEWS: u8 = 1;
/// Could not do it.
const FAILED: u8 = 2;
pub(crate) const INTERRUPTED: u8 = 130;

/// What writes a result, once. Borrowed, so that the way out is compiled once for all of them.
pub type Writing<'a> = &'a mut dyn FnMut(&mut dyn Write) -> anyhow::Result<()>;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// It did, and found what the exit code is to report.
    BadNews,
    /// Ctrl-C or SIGTERM came first; everything was put back.
    Interrupted,
    /// The same, but a setting is not as it was, or not certain to be.
    InterruptedUnrestored,
}

impl Outcome {
    /// What the exit code is to report, if it is bad.
    pub(crate) fn or_bad_news(self, is_bad: bool) -> Self {
        if is_bad { Self::BadNews } else { self }
    }
}

/// The way out for everything a command has to say.
#[derive(Debug)]
pub struct Ui {
    file: Option<(PathBuf, Target)>,
    quiet: bool,
    color: bool,
    /// Do results follow each other: in place on a terminal, one after the other elsewhere?
    pub is_watch: bool,
    /// Has the reader of standard output gone away?
    pub is_gone: bool,
    /// Is a setting not as it was, or not certain to be?
    is_changed: Cell<bool>,
}

impl Ui {
    /// Opens the output file, if one was asked for, before any work is done.
    pub fn open(global: &Global, access: Access) -> anyhow::Result<Self> {
        if global.no_color {
            ColorChoice::Never.write_global();
        }
        let open = |path: &PathBuf| {
            let target = Target::open(path, access);
            target
                .map(|target| (path.clone(), target))
                .with_context(|| format!("--output {}: the file cannot be written", path.display()))
        };
        Ok(Self {
            file: global.output.as_ref().map(open).transpose()?,
            quiet: global.quiet,
            color: AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            is_watch: false,
            is_gone: false,
            is_changed: Cell::new(false),
        })
    }

    /// How text for the result should look.
    pub fn look(&self) -> Look {
        let terminal = self.shows_on_terminal();
        Look {
            width: if self.file.is_some() { WIDE } else { width(terminal) },
            color: self.color && self.file.is_none(),
            plot: terminal,
        }
    }

    /// Writes a result where it belongs. A reader that went away is no error.
    pub fn result(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.result_by(&mut |out| Ok(out.write_all(bytes)?))
    }

    /// The same of a result that writes itself, piece by piece. It is written to memory first where it has to be shown at once.
    pub fn result_by(&mut self, write: Writing<'_>) -> anyhow::Result<()> {
        if let Some((path, target)) = &mut self.file {
            return put_by(target, write).with_context(|| format!("--output {}", path.display()));
        }
        stdout_is_open().context("standard output")?;
        let mut out = Leaving {
            out: io::BufWriter::with_capacity(BUFFER, io::stdout().lock()),
            is_gone: false,
        };
        let written = match self.is_watch {
            true => {
                let mut bytes = Vec::new();
                write(&mut bytes).and_then(|()| Ok(out.write_all(&frame(&bytes))?))
            }
            false => write(&mut out),
        };
        let written = written.and_then(|()| Ok(out.flush()?));
        self.is_gone = out.is_gone;
        if out.is_gone { Ok(()) } else { written }
    }

    /// Does the result go to a file that was named?
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Does the result land on a terminal?
    pub fn shows_on_terminal(&self) -> bool {
        self.file.is_none() && io::stdout().is_terminal()
    }

    /// Says something about the result that its reader must know.
    pub fn warning(&self, warning: &Warning) {
        complain(&printable(&format!("warning: {}: {}", warning.code, warning.text)));
    }

    /// Says something in passing.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            complain(&printable(text));
        }
    }

    /// Says something even with `--quiet`: a setting was put back, or a part was skipped.
    pub fn say(&self, text: &str) {
        complain(&format!("hugewise: {}", printable(text)));
    }

    /// Says what became of a setting that could not be put back.
    pub fn not_restored(&self, text: &str) {
        self.is_changed.set(true);
        self.say(text);
    }

    /// The command's outcome, given whether all settings were restored.
    pub fn ended(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Interrupted if self.is_changed.get() => Outcome::InterruptedUnrestored,
            other => other,
        }
    }

    /// Shows lines and asks a question that is answered with yes or no; `None` without a terminal to ask on.
    pub fn ask(&self, lines: &[String], question: &str) -> anyhow::Result<Option<bool>> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(None);
        }
        lines.iter().for_each(|line| complain(&printable(line)));
        let _ = write!(anstream::stderr(), "{} [y/N] ", printable(question));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).context("standard input")?;
        Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
    }

    /// A bar on standard error, or without a terminal a line now and then; nothing with `--quiet`.
    pub fn progress(&self) -> Progress {
        let bar = match self.quiet {
            true => ProgressBar::hidden(),
            false => ProgressBar::new(1000),
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}") {
            bar.set_style(style);
        }
        let has_lines = !self.quiet && !io::stderr().is_terminal();
        Progress {
            bar,
            told: has_lines.then(|| Cell::new(Instant::now())),
        }
    }
}

/// Of the terminal; else what COLUMNS says, as for ls and ps.
fn width(is_terminal: bool) -> u16 {
    let terminal = is_terminal.then(terminal_size::terminal_size).flatten();
    let named = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&width| width > 0);
    terminal.map(|(width, _)| width.0).or_else(named).unwrap_or(WIDE)
}

/// Standard output, whose reader may go away.
struct Leaving {
    out: io::BufWriter<io::StdoutLock<'static>>,
    is_gone: bool,
}

impl Leaving {
    /// Names standard output where it fails.
    fn noted<T>(&mut self, written: io::Result<T>) -> io::Result<T> {
        self.is_gone |= is_gone(&written);
        written.map_err(|error| io::Error::new(error.kind(), format!("standard output: {error}")))
    }
}

impl Write for Leaving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.noted(flushed)
    }
}

/// A progress bar. It is drawn on updates only: no thread wakes up between two samples.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// When the last line was written, where there is no terminal.
    told: Option<Cell<Instant>>,
}

impl Progress {
    /// How much is done (0 to 1), how long the rest takes, and what is being done.
    pub fn show(&self, done: f64, left: Duration, what: &str) {
        let done = done.clamp(0.0, 1.0);
        // At the begin it is not known how long it takes.
        let time = match left.is_zero() && done == 0.0 {
            true => String::new(),
            false => format!("{} s left  ", left.as_secs_f64().ceil()),
        };
        let text = format!("{time}{}", printable(what));
        if let Some(told) = self.told.as_ref().filter(|told| told.get().elapsed() >= LINE_PERIOD) {
            told.set(Instant::now());
            complain(&format!("{:.0} %  {text}", done * 100.0));
        }
        self.bar.set_position((done * 1000.0) as u64);
        self.bar.set_message(text);
    }
}

impl model::Progress for Progress {
    fn step(&mut self, done: f64, left: Duration, what: &str) {
        self.show(done, left, what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Ends the program: prints what went wrong, once, and gives the exit code.
pub fn finish(outcome: anyhow::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::BadNews) => ExitCode::from(BAD_NEWS),
        Ok(Outcome::Interrupted) => {
            complain("hugewise: interrupted; every setting is as it was");
            ExitCode::from(INTERRUPTED)
        }
        Ok(Outcome::InterruptedUnrestored) => {
            complain("hugewise: interrupted; a setting is not as it was (see above)");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => match error.downcast_ref::<clap::Error>() {
            Some(usage) => usage_error(usage),
            None => {
                complain(&format!("hugewise: {}", printable(&chain(&error))));
                ExitCode::from(FAILED)
            }
        },
    }
}

/// Help and version are results; a wrong word is an error under the program's name.
fn usage_error(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let text = printable_lines(&error.render().to_string());
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        complain(&format!("hugewise: {text}"));
        return ExitCode::from(FAILED);
    }
    let mut out = anstream::stdout();
    let written = stdout_is_open().and_then(|()| write!(out, "{}", error.render().ansi()).and_then(|()| out.flush()));
    match ignore_gone(written) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("hugewise: standard output: {error}"));
            ExitCode::from(FAILED)
        }
    }
}

/// The standard library opens `/dev/null` in the place of a closed descriptor, and everything written would be lost
/// without a word.
fn stdout_is_open() -> io::Result<()> {
    match syscall::was_stdout_closed() {
        true => Err(rustix::io::Errno::BADF.into()),
        false => Ok(()),
    }
}

/// The causes in a row, without those that the one before has quoted already.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Lines on standard error, broken between words for a terminal; nothing if that is closed.
fn complain(text: &str) {
    let width = terminal_size::terminal_size_of(io::stderr()).map_or(u16::MAX, |(width, _)| width.0);
    let lines = text.lines().map(|line| {
        let (indent, words) = line.split_at(line.len() - line.trim_start().len());
        let broken = layout::wrapped(words, width.saturating_sub(indent.len() as u16));
        let broken = broken.lines().map(|line| format!("{indent}{line}\n"));
        broken.collect::<String>()
    });
    let _ = write!(anstream::stderr(), "{}", lines.collect::<String>());
}

/// One result of many: over the one before on a terminal, as far as it fits; else with a blank line behind it.
fn frame(bytes: &[u8]) -> Vec<u8> {
    if !io::stdout().is_terminal() {
        return [bytes, b"\n"].concat();
    }
    let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| usize::from(height.0));
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    // To the upper left corner, and nothing left of what was there.
    let home = [&b"\x1b[H\x1b[J"[..]].into_iter();
    home.chain(lines.take(height.saturating_sub(1)))
        .collect::<Vec<_>>()
        .concat()
}

/// Writes a result into its file. Why it could not be made is kept apart from why it could not be written.
fn put_by(target: &mut Target, write: Writing<'_>) -> anyhow::Result<()> {
    let mut failed = None;
    let written = target.put_by(Existing::Replace, |out| {
        write(out).map_err(|error| {
            let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
            let kind = kind.map_or(io::ErrorKind::Other, io::Error::kind);
            failed = Some(error);
            kind.into()
        })
    });
    ignore_gone(written.map(drop)).map_err(|error| failed.unwrap_or_else(|| error.into()))
}

/// Did it fail because its reader went away?
fn is_gone<T>(written: &io::Result<T>) -> bool {
    matches!(written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe)
}

fn ignore_gone(written: io::Result<()>) -> io::Result<()> {
    if is_gone(&written) { Ok(()) } else { written }
}
