//! The CPU table: its row of a machine, and its CPUs.

use host::Snapshot;
use translation::cpus;
use translation::machine::{Machine, known};

/// The machine's row of the CPU table, if that has it with its TLBs.
pub(super) fn of_table(snapshot: &Snapshot) -> Option<Machine> {
    Machine::of_cpu(row(snapshot)?).ok()
}

pub(super) fn row(snapshot: &Snapshot) -> Option<&'static cpus::Cpu> {
    let cpu = &snapshot.cpu;
    let identity = cpus::Identity {
        vendor: cpu.vendor.known().map(String::as_str),
        family: cpu.family.known().copied(),
        model: cpu.model.known().copied(),
        name: cpu.model_name.known().map(String::as_str),
    };
    cpus::of_machine(identity)
}

/// The CPUs of the table, one a line.
pub(in crate::commands) fn list() -> String {
    let line = |id: &str| {
        let name = cpus::by_id(id).map_or("", |cpu| cpu.name.as_str());
        format!("{id:<16} {name}\n")
    };
    known().into_iter().map(line).collect()
}
