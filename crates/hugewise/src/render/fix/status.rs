//! What hugewise has changed and when, plan by plan.

use std::slice;

use model::setup::{Held, Run, Status};

use crate::show::Show;
use draw::{Field, Lines, Sheet, columns, counted, lines, moment, pairs};

impl Show for Status {
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

    fn csv(&self) -> Lines<'_> {
        lines(fields(), pairs(&self.runs, |run| &run.changes))
    }
}

fn fields<'a>() -> [Field<'a, (&'a Run, &'a Held)>; 6] {
    columns![|(run, held)| (&Run, &Held);
        time => run.time, complete => run.complete, "what" place => held.place, "before" before => held.before,
        "applied" applied => held.applied, "now" now => held.now,
    ]
}

fn sheet(run: &Run) -> Sheet {
    let restarted = if run.restarted { ", restarted since" } else { "" };
    let title = format!("{}, applied {}{restarted}", run.goals.join("; "), moment(&run.time));
    let mut sheet = Sheet::of(&title, fields(), pairs(slice::from_ref(run), |run| &run.changes));
    if !run.complete {
        sheet.note("this plan was cut short, or not all of it could be undone: run `hugewise undo`");
    }
    sheet
}

#[cfg(test)]
mod tests {
    use model::Reading;
    use model::setup::{Held, Run, Status};

    use crate::show::Show;

    #[test]
    fn the_columns_are_the_value_before_the_one_applied_and_the_one_now() {
        let held = Held {
            place: "/sys/x".to_owned(),
            before: "never".to_owned(),
            applied: "madvise".to_owned(),
            now: Reading::Known("always".to_owned()),
        };
        let run = Run {
            time: "2026-05-01T10:00:00Z".to_owned(),
            goals: vec!["thp=madvise".to_owned()],
            complete: true,
            restarted: false,
            changes: vec![held],
        };
        let sheets = Status { runs: vec![run] }.sheets();
        let heads: Vec<&str> = sheets[0].columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(heads, ["what", "before", "applied", "now"]);
        assert_eq!(sheets[0].rows[0], ["/sys/x", "never", "madvise", "always"]);
    }
}
