//! What reverting came to, place by place.

use model::setup::{RevertOutcome, RevertStep, Undone, User};

use crate::show::Show;
use draw::{Field, Lines, Sheet, columns, counted, lines};

impl Show for Undone {
    fn title(&self) -> String {
        "Undone".to_owned()
    }

    fn headlines(&self) -> Vec<String> {
        let left = self.steps.iter().filter(|step| !step.outcome.is_settled()).count();
        vec![match (self.steps.len(), left) {
            (0, _) => "there was nothing to undo".to_owned(),
            (all, 0) => {
                let let_go = self
                    .steps
                    .iter()
                    .filter(|step| step.outcome == RevertOutcome::Forgotten)
                    .count();
                let back = (all > let_go).then(|| format!("undone: {} as before", counted(all - let_go, "place")));
                let kept = (let_go > 0).then(|| format!("let go as found: {}", counted(let_go, "place")));
                draw::joined(back.into_iter().chain(kept), "; ")
            }
            (all, left) => {
                let places = counted(all, "place");
                format!("{left} of {places} could not be undone (the reasons are below)")
            }
        }]
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = Sheet::of("Reverted", fields(), self.steps.iter());
        for step in self.steps.iter().filter(|step| !step.note.is_empty()) {
            sheet.note(format!("{}: {}", step.place, step.note));
        }
        self.notes.iter().for_each(|note| sheet.note(note));
        let mut holders = users("Pool pages are in use by", &self.holders);
        holders.note("stop or restart these programs, then: sudo hugewise undo");
        let sheet = Some(sheet).filter(|sheet| !sheet.is_empty());
        sheet.into_iter().chain(holders.with_rows()).collect()
    }

    fn csv(&self) -> Lines<'_> {
        lines(fields(), self.steps.iter())
    }
}

/// Processes that use pages.
pub(super) fn users(title: &str, users: &[User]) -> Sheet {
    let fields = columns![|user| &User;
        "#pid" => user.pid, "name" => name(user), "pages" => user.kind, "#memory" => user.bytes,
    ];
    Sheet::of(title, fields, users.iter())
}

fn name(user: &User) -> String {
    match user.others {
        0 => user.name.clone(),
        others => format!("{} and {others} more that share it", user.name),
    }
}

fn fields<'a>() -> [Field<'a, &'a RevertStep>; 5] {
    columns![|step| &RevertStep;
        "what" place => step.place, "found" found => step.found, "before" before => step.before,
        "" outcome => word(step.outcome), note => step.note,
    ]
}

fn word(came: RevertOutcome) -> &'static str {
    match came {
        RevertOutcome::Restored => "restored",
        RevertOutcome::AlreadyBack => "was so already",
        RevertOutcome::Restarted => "gone with a restart",
        RevertOutcome::Changed => "changed by others, left",
        RevertOutcome::InUse => "in use",
        RevertOutcome::Forgotten => "changed by others, let go",
        RevertOutcome::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use model::setup::{RevertOutcome, RevertStep, Undone};

    use crate::show::Show;

    #[test]
    fn a_place_that_was_let_go_is_not_as_before() {
        let step = |outcome| RevertStep {
            place: "/a".to_owned(),
            found: "5".to_owned(),
            before: "0".to_owned(),
            outcome,
            note: String::new(),
        };
        let told = |outcomes: &[RevertOutcome]| {
            let steps = outcomes.iter().map(|&outcome| step(outcome)).collect();
            let (holders, notes) = (Vec::new(), Vec::new());
            Undone { steps, holders, notes }.headlines().concat()
        };
        let (back, kept) = (RevertOutcome::Restored, RevertOutcome::Forgotten);
        assert_eq!(told(&[back]), "undone: 1 place as before");
        assert_eq!(told(&[kept]), "let go as found: 1 place");
        assert_eq!(
            told(&[back, kept]),
            "undone: 1 place as before; let go as found: 1 place"
        );
    }
}
