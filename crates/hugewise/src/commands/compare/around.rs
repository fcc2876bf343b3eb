//! What a comparison needs of this program: its messages, and huge pages on loan.

use std::cell::RefCell;

use compare::{Event, Shortage};
use model::{Bytes, PageKind, Progress};

use super::super::pools::Loan;
use crate::render::compare::events::sentence;
use crate::ui::Ui;

/// Messages go to the user, and loans are taken of the machine.
pub(super) struct Around<'a> {
    ui: &'a Ui,
    loan: RefCell<Option<Loan>>,
}

impl<'a> Around<'a> {
    pub(super) fn new(ui: &'a Ui) -> Self {
        let loan = RefCell::default();
        Self { ui, loan }
    }
}

impl compare::Around for Around<'_> {
    fn report(&self, event: &Event<'_>) {
        let text = sentence(event);
        match event {
            Event::StillRuns(_)
            | Event::NeverEnded
            | Event::UnknownHeap(_)
            | Event::NotStopped(_)
            | Event::Left { .. } => self.ui.say(&text),
            _ => self.ui.note(&text),
        }
    }

    fn progress(&self) -> Box<dyn Progress> {
        Box::new(self.ui.progress())
    }

    fn borrow(&self, rooms: &[(PageKind, Bytes)]) -> Vec<Shortage> {
        let loan = Loan::take(self.ui, rooms.iter().copied());
        let short = loan.shortages().map(|(kind, why)| Shortage {
            kind,
            why: why.to_owned(),
        });
        let short = short.collect();
        self.loan.replace(Some(loan));
        short
    }

    fn give_back(&self) {
        if let Some(loan) = self.loan.take() {
            loan.give_back(self.ui);
        }
    }
}
