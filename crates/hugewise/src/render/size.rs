//! A calculation as a table: its arithmetic line by line, then what goes wrong with it in practice.

use sim::size::Sizing;

use super::sheet::Sheet;
use crate::cli::typed::Format;
use crate::show::{Lines, Show, TABLES};

impl Show for Sizing {
    const FORMS: &'static [Format] = &TABLES;
    const NAME: &'static str = "size";

    fn title(&self) -> String {
        self.about.clone()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = Sheet::new(&self.about, ["what", "how", "#value", "unit"]);
        for step in &self.steps {
            let value = step.value.to_string();
            sheet.row([
                step.name.as_str(),
                step.how.as_str(),
                value.as_str(),
                step.unit.as_str(),
            ]);
        }
        for trap in &self.traps {
            sheet.note(format!("mind: {trap}"));
        }
        sheet.note(format!("source: {}", self.source));
        vec![sheet]
    }

    fn csv(&self) -> Lines {
        let head = vec!["name", "how", "value", "unit"];
        let line = |step: &sim::size::Step| {
            vec![
                step.name.clone(),
                step.how.clone(),
                step.value.to_string(),
                step.unit.clone(),
            ]
        };
        (head, self.steps.iter().map(line).collect())
    }
}
