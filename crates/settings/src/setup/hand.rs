//! The hand that reads and changes one place; pools it changes beside what measurements have on loan.

use model::Bytes;

use super::error::SetupError;
use super::grow;
use crate::door::{Door, OnLoan};
use crate::error::DoorError;
use crate::knob::{Knob, Which};
use crate::place::{Place, State};
use crate::sink::{self, Sink};

/// What reads and changes places.
pub(super) struct Hand<'a> {
    door: &'a Door,
    /// Memory that growing pools leaves to other programs; without, the usual.
    leave: Option<Bytes>,
}

impl<'a> Hand<'a> {
    pub(super) fn new(door: &'a Door, leave: Option<Bytes>) -> Self {
        Self { door, leave }
    }

    fn sink(&self) -> &dyn Sink {
        self.door.sink()
    }

    /// What stands at a place; of a pool that is its persistent pages, less those on loan.
    pub(super) fn look(&self, place: &Place) -> Result<State, DoorError> {
        match self.knob(place) {
            None => Ok(sink::look(self.sink(), place)?),
            Some(knob) => self.door.beside_loans(knob, |on_loan| {
                let pages = knob.read(self.sink())?.saturating_sub(on_loan.pages);
                Ok(State::Text(pages.to_string()))
            }),
        }
    }

    /// Makes a place be `to`. A pool may come out smaller: the caller reads it back.
    pub(super) fn put(&self, place: &Place, to: &State) -> Result<(), SetupError> {
        let fail = |source| SetupError::Put {
            place: place.clone(),
            to: to.to_string(),
            source,
        };
        let Some((knob, pages)) = self.knob(place).zip(to.number()) else {
            return self.sink().put(place, to).map_err(fail);
        };
        self.door.beside_loans(knob, |on_loan| {
            self.check_loans(place, &on_loan, pages)?;
            match knob.which {
                Which::Overcommit => {
                    let value = pages.saturating_add(on_loan.pages).to_string();
                    self.sink().write(&knob.file(), &value).map_err(fail)
                }
                Which::Pages | Which::NodePages(_) => grow::to(self.sink(), knob, pages, on_loan.pages, self.leave)
                    .map_err(|error| match error {
                        DoorError::Write { source, .. } => fail(source),
                        other => other.into(),
                    }),
            }
        })
    }

    /// What a pool can be taken back to: as far as wanted, but never below the pages in use.
    pub(super) fn reachable(&self, place: &Place, wanted: &State) -> Result<State, DoorError> {
        let Some((knob, wanted_pages)) = self.knob(place).zip(wanted.number()) else {
            return Ok(wanted.clone());
        };
        if knob.which == Which::Overcommit {
            return Ok(wanted.clone());
        }
        let in_use = knob.in_use(self.sink())?;
        self.door.beside_loans(knob, |on_loan| {
            let now = knob.read(self.sink())?.saturating_sub(on_loan.pages);
            let floor = in_use.saturating_sub(on_loan.pages).min(now);
            Ok(State::Text(wanted_pages.max(floor).to_string()))
        })
    }

    /// The pool's setting that a place is, under whichever name.
    fn knob(&self, place: &Place) -> Option<Knob> {
        let Place::Setting(path) = place else { return None };
        let which = match path.as_str() {
            "/proc/sys/vm/nr_hugepages" | "/proc/sys/vm/nr_hugepages_mempolicy" => Which::Pages,
            "/proc/sys/vm/nr_overcommit_hugepages" => Which::Overcommit,
            path => return Knob::parse(path),
        };
        let page = crate::pool::usual_page(self.sink()).ok()?;
        Some(Knob { page, which })
    }

    /// A measurement that gives back takes the value of before its lease as a sign that it was restored already.
    fn check_loans(&self, place: &Place, on_loan: &OnLoan, pages: u64) -> Result<(), SetupError> {
        if !on_loan.would_mislead(pages.saturating_add(on_loan.pages)) {
            return Ok(());
        }
        Err(SetupError::OnLoan {
            place: place.clone(),
            pages: on_loan.pages,
        })
    }

    /// Is it a pool, which may come out smaller than asked for?
    pub(super) fn is_pool(&self, place: &Place) -> bool {
        self.knob(place).is_some_and(|knob| knob.which != Which::Overcommit)
    }

    /// The size of the pages that a setting is about.
    pub(super) fn page(&self, place: &Place) -> Option<Bytes> {
        self.knob(place).map(|knob| knob.page)
    }
}
