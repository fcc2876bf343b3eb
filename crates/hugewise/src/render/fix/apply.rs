//! What applying a plan came to: each change with what was asked and obtained, and what is left for others to do.

use model::setup::{Applied, End, Program, Step, StepOutcome};

use crate::show::{self, Show};
use draw::{Field, Lines, Look, Sheet, columns, counted, joined, lines, printable};

impl Show for Applied {
    fn title(&self) -> String {
        format!("Applied: {}", self.goals.join("; "))
    }

    fn headlines(&self) -> Vec<String> {
        let count = |came| self.steps.iter().filter(|step| step.outcome == came).count();
        let (done, already, to_do) = (
            count(StepOutcome::Done),
            count(StepOutcome::Already),
            count(StepOutcome::ToDo),
        );
        let made = counted(done, "change");
        let end = match self.end {
            End::Applied => format!("applied: {made} made"),
            End::Short => {
                let pools = counted(count(StepOutcome::Short), "pool");
                format!("shortfall: {pools} got fewer pages than requested; {made} made")
            }
            End::RolledBack => {
                return vec!["shortfall: a pool could not get all pages, and everything was undone".to_owned()];
            }
        };
        let more = [(already, "so already"), (to_do, "for others to make")];
        let more = more.into_iter().filter(|(count, _)| *count > 0);
        let more: String = more.map(|(count, what)| format!(", {count} {what}")).collect();
        let undo = if done + count(StepOutcome::Short) > 0 {
            "; `hugewise undo` reverts"
        } else {
            ""
        };
        vec![format!("{end}{more}{undo}")]
    }

    fn sheets(&self) -> Vec<Sheet> {
        changes(self).into_iter().chain(to_do(self)).collect()
    }

    fn brief_sheets(&self) -> Vec<Sheet> {
        changes(self).into_iter().collect()
    }

    /// Instructions line by line, so that they can be copied.
    fn text(&self, look: Look) -> String {
        let steps = self.steps.iter().filter(|step| step.outcome == StepOutcome::ToDo);
        let parts = std::iter::once(show::text(self, look)).chain(steps.map(instruction));
        joined(parts.chain([next(self)]), "\n")
    }

    fn csv(&self) -> Lines<'_> {
        lines(fields(), self.steps.iter())
    }
}

fn fields<'a>() -> [Field<'a, &'a Step>; 8] {
    columns![|step| &Step;
        id => step.id, layer => step.layer, "what" place => step.place, "before" before => step.before,
        "asked" asked => step.asked, "obtained" obtained => step.obtained, "" outcome => word(step.outcome),
        note => step.note,
    ]
}

/// Nothing where there is nothing to list.
fn changes(applied: &Applied) -> Option<Sheet> {
    let tried = || applied.steps.iter().filter(|step| step.outcome != StepOutcome::ToDo);
    let mut sheet = Sheet::of("Changes", fields(), tried());
    for step in tried().filter(|step| !step.note.is_empty()) {
        sheet.note(format!("{}: {}", step.place, step.note));
    }
    applied.notes.iter().for_each(|note| sheet.note(note));
    Some(sheet).filter(|sheet| !sheet.is_empty())
}

fn to_do(applied: &Applied) -> Option<Sheet> {
    let fields = columns![|step| &Step; "where" => step.place, "what" => step.note];
    let steps = applied.steps.iter().filter(|step| step.outcome == StepOutcome::ToDo);
    Sheet::of("Not applied here: do this", fields, steps).with_rows()
}

/// The commands that follow: programs take pool pages at their start only.
fn next(applied: &Applied) -> String {
    if applied.end == End::RolledBack {
        return String::new();
    }
    let restarts = applied.programs.iter().map(restart);
    let lines = restarts.chain(["hugewise verify".to_owned()]);
    let lines: String = lines.map(|line| format!("  {}\n", printable(&line))).collect();
    format!("Next\n{lines}")
}

/// How to restart a program: by its service, or by hand.
pub(super) fn restart(program: &Program) -> String {
    match &program.unit {
        Some(unit) => format!("sudo systemctl restart {unit}"),
        None => format!("restart {} ({})", program.name, program.pid),
    }
}

fn instruction(step: &Step) -> String {
    let lines = step.note.lines().map(|line| format!("  {}\n", printable(line)));
    let (place, lines) = (printable(&step.place), lines.collect::<String>());
    format!("not applied here, do this on {place}:\n{lines}")
}

fn word(came: StepOutcome) -> &'static str {
    match came {
        StepOutcome::Done => "done",
        StepOutcome::Already => "was so already",
        StepOutcome::Short => "short",
        StepOutcome::ToDo => "to do",
        StepOutcome::Undone => "undone",
    }
}

#[cfg(test)]
mod tests {
    use model::setup::{Applied, End};

    use crate::show::Show;
    use draw::Look;

    #[test]
    fn without_changes_there_is_the_sentence_and_no_table() {
        let mut applied = Applied {
            goals: vec!["pool:2M=0".to_owned()],
            end: End::Applied,
            steps: Vec::new(),
            programs: Vec::new(),
            notes: Vec::new(),
        };
        let look = Look::plain(80);
        assert!(!applied.text(look).contains("Changes"), "{}", applied.text(look));
        assert!(applied.text(look).starts_with("applied: 0 changes made\n"));
        assert!(applied.sheets().is_empty());
        applied.notes.push("what to know".to_owned());
        assert!(applied.text(look).contains("what to know"));
    }
}
