//! What tests of the preload library share: a program under it, and what was counted.
#![allow(dead_code)]

use std::process::{Command, Output};

use compare::preload::{Armed, Layout, Preload, Report};

/// The LD_PRELOAD library and the variables that load it.
pub(crate) fn armed(layout: &str) -> Armed {
    let preload = Preload::ready().expect("a library");
    preload
        .arm(&layout.parse::<Layout>().expect(layout), None)
        .expect("armed")
}

pub(crate) fn run(command: &mut Command, layout: &str) -> (Output, Report) {
    let armed = armed(layout);
    let output = command.envs(armed.env.iter().cloned()).output().expect("it starts");
    (output, armed.report().expect("counts"))
}

pub(crate) fn calls(report: &Report, hook: &str) -> u64 {
    report.hooks.get(hook).copied().unwrap_or(0)
}

pub(crate) use testing::{missing, skipped};
