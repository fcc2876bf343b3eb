//! SIGINT, SIGTERM and SIGHUP: a flag that is polled between samples, so that settings are restored first, and an end within a second
//! where nothing was changed.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::ui::INTERRUPTED;

/// Longer than a command that only reads needs between two polls of the flag, unless it blocks.
const GRACE: Duration = Duration::from_millis(500);

/// How the program ends on a signal.
static MANNER: AtomicU8 = AtomicU8::new(AT_ONCE);
const AT_ONCE: u8 = 0;
const AFTER_GRACE: u8 = 1;
const IN_ORDER: u8 = 2;

/// How often.
static ASKED: AtomicU32 = AtomicU32::new(0);
static WATCHED: OnceLock<bool> = OnceLock::new();

/// From here on the signals set a flag instead of killing the program, and [`is_asked`] reads it.
///
/// # Errors
/// If signals cannot be watched.
pub(crate) fn on_signals() -> anyhow::Result<()> {
    watch()?;
    MANNER.store(IN_ORDER, Ordering::SeqCst);
    Ok(())
}

/// Runs what changes nothing and may block, such as reading the files of other processes, after [`on_signals`]. A signal ends the
/// program within [`GRACE`], whatever this waits for.
pub(crate) fn while_reading<T>(read: impl FnOnce() -> T) -> T {
    MANNER.store(AFTER_GRACE, Ordering::SeqCst);
    let read = read();
    MANNER.store(IN_ORDER, Ordering::SeqCst);
    read
}

/// Beyond a limit on the size of files (`ulimit -f`) a write fails from here on, as on a full disk, instead of ending the program.
/// Programs that it starts have the usual end again.
///
/// # Errors
/// If the signal cannot be taken.
pub(crate) fn survive_file_limit() -> anyhow::Result<()> {
    let unread = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, unread).context("cannot watch for SIGXFSZ")?;
    Ok(())
}

/// What a command that the user stopped fails with. [`crate::commands::run`] ends with it, as it is no failure.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Did it fail because the user stopped it?
pub(crate) fn is_interrupted(error: &anyhow::Error) -> bool {
    let is_measure = matches!(error.downcast_ref(), Some(measure::Error::Interrupted));
    let is_compare = matches!(error.downcast_ref(), Some(compare::Error::Interrupted));
    is_measure || is_compare || error.is::<Interrupted>()
}

/// Has a signal asked this program to end?
pub(crate) fn is_asked() -> bool {
    times_asked() > 0
}

/// How often signals have asked for that.
pub(crate) fn times_asked() -> u32 {
    ASKED.load(Ordering::Relaxed)
}

/// Starts the thread that takes the signals, once. Unless [`on_signals`] says otherwise a signal then ends the program as it did
/// before, and the guardian ends the helpers.
///
/// # Errors
/// If signals cannot be watched.
pub(crate) fn watch() -> anyhow::Result<()> {
    if WATCHED.get().is_some() {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for Ctrl-C")?;
    let take = move || signals.forever().for_each(take);
    let thread = thread::Builder::new().name("signals".to_owned()).spawn(take);
    thread.context("cannot watch for Ctrl-C")?;
    WATCHED.get_or_init(|| true);
    Ok(())
}

fn take(signal: i32) {
    ASKED.fetch_add(1, Ordering::SeqCst);
    if MANNER.load(Ordering::SeqCst) == AFTER_GRACE {
        thread::sleep(GRACE);
    }
    match MANNER.load(Ordering::SeqCst) {
        IN_ORDER => {}
        // Nothing was changed, so there is nothing to put back.
        AFTER_GRACE => std::process::exit(INTERRUPTED.into()),
        _ => {
            // Does not come back.
            let _ = emulate_default_handler(signal);
        }
    }
}
