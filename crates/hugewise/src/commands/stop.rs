//! Ctrl-C and friends as a flag that is looked at between samples, so that everything can be put back first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set once the user, the terminal or the system wants the program to end.
#[derive(Clone, Debug)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From here on the signals set the flag instead of killing the program.
    pub(super) fn on_signals() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot watch for Ctrl-C")?;
        }
        Ok(Self(flag))
    }

    /// Has it been asked for?
    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
