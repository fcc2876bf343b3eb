//! What tests of the preload library share: a program under it, and what was counted.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

use compare::preload::{Armed, Layout, Report, library};
use model::{Bytes, PageKind};

/// The LD_PRELOAD library and the variables that load it.
pub(crate) fn armed(layout: &str) -> Armed {
    let layout: Layout = layout.parse().expect(layout);
    Armed::new(Some(&file()), &layout, &|_| None).expect("armed")
}

/// The library in a file.
fn file() -> PathBuf {
    static WRITTEN: Once = Once::new();
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libhugewise_preload-{}.so", env!("CARGO_CRATE_NAME")));
    WRITTEN.call_once(|| {
        // Beside a program of a run before that still has it.
        let draft = file.with_extension(std::process::id().to_string());
        std::fs::write(&draft, library().expect("a library")).expect("written");
        std::fs::rename(&draft, &file).expect("renamed");
    });
    file
}

pub(crate) fn run(command: &mut Command, layout: &str) -> (Output, Report) {
    let armed = armed(layout);
    let output = command.envs(armed.env.iter().cloned()).output().expect("it starts");
    let report = armed.report().expect("counts");
    assert!(report.loaded > 0, "the program ran without the library: {report:?}");
    (output, report)
}

/// Bytes that were given this kind.
pub(crate) fn bytes(report: &Report, kind: PageKind) -> Bytes {
    report.served.get(&kind).map_or(Bytes(0), |tally| tally.bytes)
}

pub(crate) use testing::{missing, skipped};
