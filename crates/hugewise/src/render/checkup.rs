//! A checkup in every form: verdict first, then what it rests on.

use super::figure::Figure;
use super::sheet::Sheet;
use super::{inventory, latency};
use crate::cli::typed::Format;
use crate::results::{Checkup, ProcessList};
use crate::show::{CHARTS, Lines, Show};

/// Processes on a terminal.
const FEW: usize = 10;

impl Show for Checkup {
    const FORMS: &'static [Format] = &CHARTS;
    const NAME: &'static str = "checkup";

    fn title(&self) -> String {
        format!("Large pages on {}", self.inventory.source)
    }

    fn headlines(&self) -> Vec<String> {
        self.verdict.clone()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let latency = self.latency.iter().flat_map(latency::sheets);
        let processes = self.processes.iter().flat_map(Show::sheets);
        latency
            .chain(processes)
            .chain(inventory::sheets(&self.inventory))
            .chain(self.skipped())
            .collect()
    }

    /// Latency, the first processes, and what is most asked for of the inventory: machine, pools, policy.
    fn brief_sheets(&self) -> Vec<Sheet> {
        let latency = self.latency.iter().flat_map(latency::sheets);
        let processes = self.processes.iter().map(|list| ProcessList {
            processes: list.processes.iter().take(FEW).cloned().collect(),
            totals: list.totals.clone(),
        });
        let processes = processes.flat_map(|list| list.sheets());
        let inventory = inventory::sheets(&self.inventory).into_iter().take(3);
        latency
            .chain(processes)
            .chain(inventory)
            .chain(self.skipped())
            .collect()
    }

    fn figures(&self) -> Vec<Figure> {
        self.latency.as_ref().map(latency::figures).unwrap_or_default()
    }

    /// The points of the latency measurement; the rest has no one shape of lines.
    fn csv(&self) -> Lines {
        self.latency.as_ref().map(latency::csv).unwrap_or_default()
    }
}

impl Checkup {
    fn skipped(&self) -> Option<Sheet> {
        let mut sheet = Sheet::new("Left out", ["part", "why"]);
        for skipped in &self.skipped {
            sheet.row([&skipped.part, &skipped.why]);
        }
        (!self.skipped.is_empty()).then_some(sheet)
    }
}
