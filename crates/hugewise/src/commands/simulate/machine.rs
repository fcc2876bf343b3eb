//! Which machine is simulated: one of the CPU table, one in a file, or the CPU at hand.

use std::path::Path;

use anyhow::{Context, bail};
use host::{Input, Snapshot};
use sim::cpus;
use sim::translation::machine::{Machine, known};

/// The machine as typed, or else the CPU of the machine at hand if the table has it.
pub(in crate::commands) fn typed(typed: Option<&str>, snapshot: &Snapshot) -> anyhow::Result<Machine> {
    let Some(typed) = typed else {
        return at_hand(snapshot);
    };
    let file = Path::new(typed);
    if file.extension().is_some_and(|extension| extension == "toml") {
        let text = Input::Configuration
            .text(file)
            .with_context(|| format!("--machine {typed}"))?;
        return Ok(Machine::parse(typed, &text)?);
    }
    Machine::by_id(typed).context("--machine")
}

fn at_hand(snapshot: &Snapshot) -> anyhow::Result<Machine> {
    let cpu = &snapshot.cpu;
    let identity = cpus::Identity {
        vendor: cpu.vendor.known().map(String::as_str),
        family: cpu.family.known().copied(),
        model: cpu.model.known().copied(),
        name: cpu.model_name.known().map(String::as_str),
    };
    match cpus::of_machine(identity) {
        Some(cpu) => Ok(Machine::of_cpu(cpu)?),
        None => bail!(
            "the CPU table does not have this machine's CPU: name one with --machine ({})",
            known().join(", ")
        ),
    }
}

/// The CPUs of the table, one a line.
pub(super) fn list() -> String {
    let line = |id: &str| {
        let name = cpus::by_id(id).map_or("", |cpu| cpu.name.as_str());
        format!("{id:<16} {name}\n")
    };
    known().into_iter().map(line).collect()
}
