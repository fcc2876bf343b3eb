//! `hugewise trace`: windows of a program's run, as a trace in a file.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use predict::trace::own::{BlindSpot, Head, Method, Window, write};
use process::capture::{Captured, Limits, Sampled, capture};
use process::steps::{Bound, Touch};
use process::{Attention, Done, Order, Process, ThpSwitch, WaitError};
use translation::{Access, Side};

use super::session::Session;
use crate::cli::args;
use crate::render::predict::prediction::captured_in;
use crate::stop::{self, Interrupted};
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Trace) -> anyhow::Result<Outcome> {
    session.must_be_live("tracing a program")?;
    session.say_unread_input();
    if session.ui.shows_on_terminal() {
        bail!("a trace is binary, and a terminal cannot show it: write --output FILE, or pipe it on");
    }
    let recorded = record(&args.command, args.budget, args.window, args.ignore_failure)?;
    let mut written = |out: &mut dyn std::io::Write| Ok(write(&recorded.head, &recorded.windows, out)?);
    session.ui.result_by(&mut written)?;
    session.ui.note(&captured_in(&recorded.windows, recorded.cpu));
    Ok(Outcome::Done)
}

/// What was captured of a program.
pub(super) struct Recorded {
    pub(super) head: Head,
    pub(super) windows: Vec<Window>,
    /// Processor time of the program, without that of stepping.
    pub(super) cpu: Duration,
}

/// Steps longer than a window takes, but for a thread that waits in the kernel.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(10);

/// Captures a program.
pub(super) fn record(
    words: &[OsString],
    budget: Duration,
    window: u64,
    ignore_failure: bool,
) -> anyhow::Result<Recorded> {
    stop::on_signals()?;
    let program = || words[0].to_string_lossy().into_owned();
    // Of a huge page the kernel does not say which base pages are used.
    let order = Order {
        thp: ThpSwitch::Off,
        ..Order::plain(words)
    };
    let started = Process::start(&order, Attention::Free, false);
    let mut process = started.map_err(|failure| {
        anyhow::Error::from(failure.error).context(format!("{}: {} failed", program(), failure.step.title()))
    })?;
    let limits = Limits {
        budget,
        window: Bound {
            steps: window,
            time: WINDOW_TIMEOUT,
        },
    };
    let captured = match capture(&mut process, limits, &stop::is_asked) {
        Ok(captured) => captured,
        Err(WaitError::Interrupted) => bail!(Interrupted),
        Err(WaitError::Failed(error)) => return Err(error).with_context(program),
    };
    if stop::is_asked() {
        bail!(Interrupted);
    }
    if captured.has_ended {
        let done = process.end()?;
        if !ignore_failure {
            must_be_well(&done, &program())?;
        }
    } else {
        drop(process);
    }
    match captured.windows.is_empty() {
        true => Err(without_window(captured, &program())),
        false => Ok(recorded(words, captured)),
    }
}

fn without_window(captured: Captured, program: &str) -> anyhow::Error {
    match captured.refused {
        Some(error) => anyhow::Error::from(error).context(format!("{program}: its threads cannot be traced (ptrace)")),
        None => anyhow!(
            "{program}: used {} ms of processor time, and no window began in it: give a longer input",
            captured.cpu.as_millis()
        ),
    }
}

fn must_be_well(done: &Done, program: &str) -> anyhow::Result<()> {
    let status = done.ended.status;
    if !status.success() {
        let errors = done.outputs.errors();
        bail!(
            "{program} ended with {status} (--ignore-failure takes such a run all the same): {}",
            errors.trim_end()
        );
    }
    Ok(())
}

fn recorded(words: &[OsString], captured: Captured) -> Recorded {
    let has_hidden = captured.windows.iter().any(|taken| taken.window.hidden > 0);
    let mut blind_spots = vec![BlindSpot::Kernel, BlindSpot::BetweenWindows];
    blind_spots.extend(captured.has_threads.then_some(BlindSpot::OtherThreads));
    blind_spots.extend(has_hidden.then_some(BlindSpot::SpecialInstructions));
    blind_spots.extend((!captured.has_ended).then_some(BlindSpot::AfterBudget));
    let window = |taken: Sampled| {
        let access = |touch: &Touch| {
            let side = if touch.is_store { Side::Store } else { Side::Load };
            // No program goes on behind an access to any other address.
            Access::new(Access::canonical(touch.address).unwrap_or(touch.address), side)
        };
        Window {
            instructions: taken.window.instructions,
            at_us: taken.at.as_micros() as u64,
            used_pages: taken.used_pages,
            accesses: taken.window.touched.iter().map(access).collect(),
        }
    };
    Recorded {
        head: Head {
            method: Method::Steps,
            command: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            blind_spots,
            frames: captured.frames,
            run_us: captured.has_ended.then_some(captured.cpu.as_micros() as u64),
        },
        cpu: captured.cpu,
        windows: captured.windows.into_iter().map(window).collect(),
    }
}
