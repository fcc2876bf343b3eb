//! Where a result comes from: the program, the machine, the command, and what to doubt.

use model::{Envelope, Reading};

use super::sheet::Sheet;

/// The machine and the run, and the doubts if there are any.
pub fn sheets<T>(result: &Envelope<T>) -> Vec<Sheet> {
    let mut sheets = vec![provenance(result)];
    if !result.doubts.is_empty() {
        let mut doubts = Sheet::new("Doubts", ["code", "what to know"]);
        for doubt in &result.doubts {
            doubts.row([&doubt.code, &doubt.text]);
        }
        sheets.push(doubts);
    }
    sheets
}

fn provenance<T>(result: &Envelope<T>) -> Sheet {
    let machine = &result.machine;
    let mut sheet = Sheet::new("Provenance", ["what", "value"]);
    sheet.row(["CPU", &told(&machine.cpu)]);
    sheet.row(["logical CPUs", &told(&machine.cpus)]);
    sheet.row(["NUMA nodes", &told(&machine.nodes)]);
    sheet.row(["memory", &told(&machine.memory)]);
    sheet.row(["base page", &told(&machine.base_page)]);
    sheet.row(["kernel", &told(&machine.kernel)]);
    sheet.row(["hypervisor", &told(&machine.hypervisor)]);
    sheet.row(["program", &format!("{} {}", result.tool.name, result.tool.version)]);
    sheet.row(["command", &result.command.join(" ")]);
    sheet.row(["seed", &result.seed.to_string()]);
    sheet.row(["started", &result.started]);
    sheet.row(["shape of the data", &result.schema]);
    sheet
}

/// A reading as a table tells it.
pub fn told<T: std::fmt::Display>(reading: &Reading<T>) -> String {
    reading.to_string()
}
