//! What hugewise has changed and when, plan by plan.

use model::setup::{Held, Run, Status};

use super::sheet::Sheet;
use super::words::{counted, moment};
use crate::cli::typed::Format;
use crate::show::{Lines, Show, TABLES};

impl Show for Status {
    const FORMS: &'static [Format] = &TABLES;
    const NAME: &'static str = "status";

    fn title(&self) -> String {
        "What hugewise has changed".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        let changes: usize = self.runs.iter().map(|run| run.changes.len()).sum();
        vec![match self.runs.len() {
            0 => "hugewise has changed nothing here that is not undone".to_owned(),
            runs => format!(
                "{} of {} on record; `hugewise undo` reverts",
                counted(changes, "change"),
                counted(runs, "plan")
            ),
        }]
    }

    fn sheets(&self) -> Vec<Sheet> {
        self.runs.iter().map(sheet).collect()
    }

    fn csv(&self) -> Lines {
        let head = vec!["time", "complete", "place", "before", "put", "now"];
        let line = |run: &Run, held: &Held| {
            let values = [&held.place, &held.before, &held.put].map(Clone::clone);
            let start = [run.time.clone(), run.complete.to_string()];
            start.into_iter().chain(values).chain([held.now.to_string()]).collect()
        };
        let lines = self
            .runs
            .iter()
            .flat_map(|run| run.changes.iter().map(move |held| line(run, held)));
        (head, lines.collect())
    }
}

fn sheet(run: &Run) -> Sheet {
    let restarted = if run.restarted { ", restarted since" } else { "" };
    let title = format!("{}, applied {}{restarted}", run.goals.join("; "), moment(&run.time));
    let mut sheet = Sheet::new(&title, ["what", "before", "put", "now"]);
    for held in &run.changes {
        sheet.row([&held.place, &held.before, &held.put, &held.now.to_string()]);
    }
    if !run.complete {
        sheet.note("this plan was cut short, or not all of it could be undone: run `hugewise undo`");
    }
    sheet
}
