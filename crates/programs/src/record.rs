//! Captures a machine: keeps what a snapshot reads of it and the files of configuration and processes that decide page sizes, and
//! lists what it left out.

mod accounts;
mod keep;
mod mappings;
mod pattern;
mod process;
mod recorder;
mod secrets;
mod settings;
mod table;
mod threads;

#[cfg(test)]
mod tests;

use host::{Snapshot, Source};
use recorder::{LARGEST_FILE, Recorder};

pub use recorder::{Capture, LEFT_OUT};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Processes too: accounts, limits, mapped files, arguments of programs that rules know, and the environment
    /// variables of [`TUNABLES`](crate::TUNABLES).
    pub processes: bool,
}

/// Reads a machine. Refusals are recorded as such.
pub fn capture(source: &Source, options: CaptureOptions) -> Capture {
    let mut recorder = Recorder::new(source);
    recorder.reads(source.recorded(|source| drop(Snapshot::take(source))));
    for (pattern, keep) in table::BESIDE_SNAPSHOT {
        recorder.pattern(pattern, LARGEST_FILE, keep);
    }
    settings::record(&mut recorder);
    if options.processes {
        process::record(&mut recorder);
    }
    recorder.finish()
}
