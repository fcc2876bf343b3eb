//! What a comparison needs of this program: its messages, and huge pages and THP sizes on loan.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;

use compare::{Event, Shortage};
use model::{Bytes, PageKind, Progress};

use settings::ThpSizes;

use super::super::pools::Loan;
use crate::render::prove::compare::events::sentence;
use crate::scratch::Scratch;
use crate::ui::Ui;

/// Messages go to the user, and loans are taken of the machine.
pub(in crate::commands) struct Around<'a> {
    ui: &'a Ui,
    loan: RefCell<Option<Loan>>,
    /// The right to lend switches of THP sizes, once it was needed.
    sizes: OnceCell<ThpSizes>,
    /// The rooms of loans that were spoken of.
    known: RefCell<BTreeSet<PageKind>>,
    /// What was last missing, and why.
    short: RefCell<Vec<Shortage>>,
    /// Where the LD_PRELOAD library is.
    library: OnceCell<Option<Scratch>>,
}

impl<'a> Around<'a> {
    pub(in crate::commands) fn new(ui: &'a Ui) -> Self {
        Self {
            ui,
            loan: RefCell::default(),
            sizes: OnceCell::new(),
            known: RefCell::default(),
            short: RefCell::default(),
            library: OnceCell::new(),
        }
    }

    /// Why there were fewer pages of a kind than an arm needs, if that is so.
    pub(in crate::commands) fn shortage(&self, kind: PageKind) -> Option<String> {
        let short = self.short.borrow();
        let short = short.iter().find(|short| short.kind == kind);
        short.map(|short| short.why.clone())
    }
}

impl compare::Around for Around<'_> {
    fn report(&self, event: &Event<'_>) {
        let text = sentence(event);
        match event {
            Event::StillRuns(_)
            | Event::FewRuns { .. }
            | Event::ShortTime { .. }
            | Event::Forecast { .. }
            | Event::NotFlipped { .. }
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
        let mut known = self.known.borrow_mut();
        let is_known = rooms.iter().all(|(kind, _)| known.contains(kind));
        known.extend(rooms.iter().map(|(kind, _)| *kind));
        let mut loan = Loan::take(self.ui, rooms.iter().copied(), !is_known);
        for (kind, size) in rooms.iter().filter_map(|(kind, _)| Some((*kind, kind.mthp()?))) {
            let lent = loan.add_switches(self.ui, &self.sizes, size, !is_known);
            loan.short.extend(lent.err().map(|why| Shortage { kind, why }));
        }
        let short = loan.short.clone();
        self.short.replace(short.clone());
        self.loan.replace(Some(loan));
        short
    }

    fn give_back(&self) {
        if let Some(loan) = self.loan.take() {
            loan.give_back(self.ui);
        }
    }

    fn library(&self, bytes: &'static [u8]) -> Option<PathBuf> {
        let kept = self.library.get_or_init(|| Scratch::with_library(bytes).ok());
        kept.as_ref().map(Scratch::library)
    }
}
