//! Which machine is simulated: one of the CPU table, one in a file, the CPU at hand by the table, or, of a pattern or a trace, as measured.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use host::{Input, Snapshot};
use model::{Bytes, Warning};
use translation::cpus;
use translation::machine::{Machine, known};

use super::super::session::Session;
use super::super::tlb;
use super::here;

/// The machine that is asked for.
pub(in crate::commands) struct Asked {
    pub(in crate::commands) machine: Machine,
    /// What was uncertain when it was measured.
    pub(in crate::commands) warnings: Vec<Warning>,
}

/// As [`named_or_at_hand`]; `here` is the machine at hand as measured. `None` if the user stopped measuring it.
pub(super) fn asked(
    session: &Session<'_>,
    named: Option<&str>,
    measured: &[PathBuf],
    snapshot: &Snapshot,
) -> anyhow::Result<Option<Asked>> {
    match named {
        Some("here") => here::measured(session, measured, snapshot, of_table(snapshot)),
        _ if !measured.is_empty() => bail!("--measured: it is for --machine here"),
        other => named_or_at_hand(other, snapshot).map(|machine| {
            Some(Asked {
                machine,
                warnings: Vec::new(),
            })
        }),
    }
}

/// The machine as given, or else the CPU of the machine at hand if the table has it.
pub(in crate::commands) fn named_or_at_hand(named: Option<&str>, snapshot: &Snapshot) -> anyhow::Result<Machine> {
    match named {
        Some(file) if is_file(file) => of_file(file).with_context(|| format!("--machine {file}")),
        Some(id) => Machine::by_id(id).context("--machine"),
        None => match tlb::row(snapshot) {
            Some(cpu) => Ok(Machine::of_cpu(cpu)?),
            None => bail!(
                "the CPU table does not have this machine's CPU: name one with --machine ({}), or describe it in a FILE.toml (`simulate translation` measures it, too: --machine here)",
                known().join(", ")
            ),
        },
    }
}

fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn of_file(name: &str) -> anyhow::Result<Machine> {
    let text = Input::Configuration.text(Path::new(name))?;
    Ok(Machine::parse(name, &text)?)
}

/// The machine's row of the CPU table, if that has it with its TLBs.
pub(super) fn of_table(snapshot: &Snapshot) -> Option<Machine> {
    Machine::of_cpu(tlb::row(snapshot)?).ok()
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
    let named: Vec<String> = pages.iter().map(|page| page.exact()).collect();
    (!named.is_empty()).then(|| {
        let named = named.join(" and ");
        let text = format!(
            "no TLB entries for pages of {named} are known of {machine}: every access to them counts as a miss, so that those rows mean \
             nothing (run `hugewise measure tlb` again, or name the entries in a file for --machine)"
        );
        Warning::new("no-tlb", text)
    })
}
