//! Provenance of a result: the program, the machine, the command; and its warnings.

use model::{Envelope, Warning};

use super::sheet::Sheet;
use crate::columns;

/// The warnings of a result, if it has any.
pub fn warnings(result: &Envelope<()>) -> Option<Sheet> {
    let fields = columns![|warning| &Warning; "code" => warning.code, "warning" => warning.text];
    Sheet::of("Warnings", fields, result.warnings.iter()).with_rows()
}

/// The machine, the program and the run.
pub fn provenance(result: &Envelope<()>) -> Sheet {
    let machine = &result.machine;
    let mut sheet = Sheet::new("Provenance", ["property", "value"]);
    sheet.row(["CPU", &machine.cpu.to_string()]);
    sheet.row(["logical CPUs", &machine.cpus.to_string()]);
    sheet.row(["NUMA nodes", &machine.nodes.to_string()]);
    sheet.row(["memory", &machine.memory.to_string()]);
    sheet.row(["base page", &machine.base_page.to_string()]);
    sheet.row(["kernel", &machine.kernel.to_string()]);
    sheet.row(["hypervisor", &machine.hypervisor.to_string()]);
    sheet.row(["program", &format!("{} {}", result.tool.name, result.tool.version)]);
    sheet.row(["command", &result.command.join(" ")]);
    sheet.row(["seed", &result.seed.to_string()]);
    sheet.row(["started", &result.started]);
    sheet.row(["schema", &result.schema]);
    sheet
}
