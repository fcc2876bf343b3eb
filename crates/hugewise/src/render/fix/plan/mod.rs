//! A plan: to be read, and as a script or a playbook.

mod difference;
mod risks;
mod text;

#[cfg(test)]
mod tests;

use model::Envelope;
use model::plan::{Change, Plan};

pub(crate) use difference::{difference, question};

use self::risks::risks;
use super::super::export::{ansible, shell};
use crate::cli::args::Format;
use crate::show::Show;
use draw::{Field, Lines, Look, Sheet, columns, lines};

impl Show for Plan {
    fn title(&self) -> String {
        format!("Plan for {}", self.goals.join(" and "))
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = Sheet::of(&self.title(), fields(), self.changes.iter());
        self.notes.iter().for_each(|note| sheet.note(note));
        vec![sheet]
    }

    fn text(&self, look: Look) -> String {
        text::text(self, look)
    }

    fn own(&self, _about: &Envelope<()>, format: Format) -> Option<String> {
        match format {
            Format::Shell => Some(shell::script(self)),
            Format::Ansible => Some(ansible::playbook(self)),
            _ => None,
        }
    }

    fn csv(&self) -> Lines<'_> {
        lines(fields(), self.changes.iter())
    }
}

fn fields<'a>() -> [Field<'a, &'a Change>; 7] {
    columns![|change| &Change;
        id => change.id, "layer" layer => change.layer, "where" target => change.target,
        "before" before => change.before, "after" after => change.after, "why" why => change.why,
        "risk" risk => risks(&change.risk).join("; "),
    ]
}
