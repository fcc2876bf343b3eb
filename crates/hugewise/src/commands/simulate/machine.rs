//! Which machine is simulated: one of the CPU table, one in a file, or the CPU at hand by the table.

use std::path::Path;

use anyhow::Context;
use host::{Input, Snapshot};
use model::{Bytes, Warning};
use translation::cpus;
use translation::machine::{Machine, known};

use super::super::tlb;
use draw::joined;

/// The word for the machine at hand, which is also meant without one.
const HERE: &str = "here";

pub(in crate::commands) fn is_here(named: Option<&str>) -> bool {
    matches!(named, None | Some(HERE))
}

/// The machine as given, or else the CPU of the machine at hand if the table has it.
pub(in crate::commands) fn named_or_at_hand(named: Option<&str>, snapshot: &Snapshot) -> anyhow::Result<Machine> {
    match named {
        None | Some(HERE) => {
            let cpu = tlb::row(snapshot).with_context(|| {
                format!(
                    "the CPU table does not have this machine's CPU: name one with --machine ({}), or describe it in a FILE.toml",
                    known().join(", ")
                )
            })?;
            Ok(Machine::of_cpu(cpu)?)
        }
        Some(file) if is_file(file) => of_file(file).with_context(|| format!("--machine {file}")),
        Some(id) => Machine::by_id(id).context("--machine"),
    }
}

/// Is it the name of a machine file, and not of a CPU of the table?
pub(in crate::commands) fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn of_file(name: &str) -> anyhow::Result<Machine> {
    let text = Input::Configuration.text(Path::new(name))?;
    Ok(Machine::parse(name, &text)?)
}

/// The CPUs of the table, one a line.
pub(in crate::commands) fn list() -> String {
    let line = |id: &str| {
        let name = cpus::by_id(id).map_or("", |cpu| cpu.name.as_str());
        format!("{id:<16} {name}\n")
    };
    known().into_iter().map(line).collect()
}

/// The warning that no TLB is known for pages of some size, about a machine's `entries`: what one covers, and what all of them cover.
pub(in crate::commands) fn without_tlb(
    machine: &str,
    entries: impl Iterator<Item = (Bytes, Bytes)>,
) -> Option<Warning> {
    let unknown = entries.filter(|(_, reach)| reach.0 == 0);
    let mut pages: Vec<Bytes> = unknown.map(|(entry, _)| entry).collect();
    pages.sort();
    pages.dedup();
    (!pages.is_empty()).then(|| {
        let named = joined(pages.iter().map(|page| page.exact()), " and ");
        let text = format!(
            "no TLB entries for pages of {named} are known of {machine}: every access to them counts as a miss, so that those rows mean \
             nothing (name the entries in a file for --machine)"
        );
        Warning::new("no-tlb", text)
    })
}
