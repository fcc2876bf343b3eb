//! Traces as input: opened within bounds, and read once through all settings.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use model::time_left;
use predict::trace::{Trace, TraceFormat};
use predict::{Replay, Replayed, history, replay};
use translation::Access;
use translation::machine::Machine;

use super::super::session::Session;

/// A trace in a file, with the file's length if it has one.
pub(in crate::commands) struct Opened<'a> {
    path: &'a Path,
    length: Option<u64>,
    pub(in crate::commands) trace: Trace<File>,
}

impl<'a> Opened<'a> {
    pub(in crate::commands) fn open(
        path: &'a Path,
        format: Option<TraceFormat>,
        fetches: bool,
    ) -> anyhow::Result<Self> {
        let named = || format!("--trace {}", path.display());
        let (file, length) = host::input::stream(path).with_context(named)?;
        let trace = Trace::open(file, format, fetches).with_context(named)?;
        Ok(Self { path, length, trace })
    }

    /// What lies between its windows; none of a pipe, which is read once.
    pub(in crate::commands) fn history(
        path: &'a Path,
        format: Option<TraceFormat>,
        machine: &Machine,
    ) -> anyhow::Result<Option<Vec<Vec<Access>>>> {
        if !path.is_file() {
            return Ok(None);
        }
        let mut opened = Self::open(path, format, false)?;
        let history = history(&mut opened.trace, machine);
        history.map(Some).with_context(|| format!("--trace {}", path.display()))
    }

    /// Runs it through all settings.
    pub(in crate::commands) fn run(&mut self, session: &Session<'_>, asked: &Replay) -> anyhow::Result<Replayed> {
        let (progress, begun) = (session.ui.progress(), Instant::now());
        let replayed = replay(asked, &mut self.trace, &|offset| {
            if let Some(length) = self.length.filter(|&length| length > 0) {
                let done = (offset as f64 / length as f64).clamp(0.001, 1.0);
                progress.show(done, time_left(begun.elapsed(), done), "simulating");
            }
        });
        replayed.with_context(|| format!("--trace {}", self.path.display()))
    }
}
