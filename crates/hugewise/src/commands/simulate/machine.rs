//! Which machine is simulated: one of the CPU table, one in a file, or the CPU at hand.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use host::{Input, Snapshot};
use model::{Bytes, Warning};
use translation::machine::{Machine, known};

use super::super::session::Session;
use super::{here, table};

/// The machine that is asked for.
pub(in crate::commands) struct Asked {
    pub(in crate::commands) machine: Machine,
    /// What was uncertain when it was measured.
    pub(in crate::commands) warnings: Vec<Warning>,
    /// The host's page behind a virtual machine's memory, where its TLBs show one.
    pub(in crate::commands) host_page: Option<Bytes>,
}

/// The machine as typed, or else the CPU of the machine at hand if the table has it; `here` is that machine as measured. `None` if the
/// user stopped measuring it.
pub(in crate::commands) fn asked(
    session: &Session<'_>,
    args: Option<&str>,
    measured: &[PathBuf],
    snapshot: &Snapshot,
) -> anyhow::Result<Option<Asked>> {
    match args {
        Some("here") => return here::measured(session, measured, snapshot),
        _ if !measured.is_empty() => bail!("--measured: it is for --machine here"),
        Some(args) if is_file(args) => of_file(args).with_context(|| format!("--machine {args}")),
        Some(args) => Machine::by_id(args).context("--machine"),
        None => at_hand(snapshot),
    }
    .map(|machine| {
        Some(Asked {
            machine,
            warnings: Vec::new(),
            host_page: None,
        })
    })
}

fn is_file(args: &str) -> bool {
    Path::new(args).extension().is_some_and(|extension| extension == "toml")
}

fn of_file(name: &str) -> anyhow::Result<Machine> {
    let text = Input::Configuration.text(Path::new(name))?;
    Ok(Machine::parse(name, &text)?)
}

fn at_hand(snapshot: &Snapshot) -> anyhow::Result<Machine> {
    match table::row(snapshot) {
        Some(cpu) => Ok(Machine::of_cpu(cpu)?),
        None => bail!(
            "the CPU table does not have this machine's CPU: measure it with --machine here, or name one with --machine ({})",
            known().join(", ")
        ),
    }
}
