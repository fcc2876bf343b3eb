//! Reads and changes one place; pools are changed beside the leases of measurements.

use model::{Bytes, Cause, Reading, Unread};

use super::error::SetupError;
use super::grow;
use crate::error::WriterError;
use crate::place::{Place, State};
use crate::pool_setting::{PoolSetting, Which};
use crate::sink::{self, Sink};
use crate::writer::{OnLoan, Writer};

/// What reads and changes places.
pub(super) struct Access<'a> {
    writer: &'a Writer,
    /// Memory that growing pools leaves to other programs; without, the usual.
    pub(super) leave: Option<Bytes>,
}

impl<'a> Access<'a> {
    pub(super) fn new(writer: &'a Writer, leave: Option<Bytes>) -> Self {
        Self { writer, leave }
    }

    pub(super) fn sink(&self) -> &dyn Sink {
        self.writer.sink()
    }

    /// What stands at a place; of a pool that is its persistent pages, less those on loan.
    pub(super) fn look(&self, place: &Place) -> Result<State, WriterError> {
        match self.setting(place) {
            None => Ok(sink::look(self.sink(), place)?),
            Some(setting) => self
                .writer
                .beside_loans(setting, |on_loan| self.less_loans(setting, &on_loan)),
        }
    }

    fn less_loans(&self, setting: PoolSetting, on_loan: &OnLoan) -> Result<State, WriterError> {
        let pages = setting.read(self.sink())?.saturating_sub(on_loan.pages);
        Ok(State::Text(pages.to_string()))
    }

    /// The same for a reader, without the lock: the present value, or why it is not known.
    pub(super) fn reading(&self, place: &Place) -> Reading<State> {
        let failed = |error: WriterError| Unread::new(Cause::Failed, place.path(), error.to_string());
        let Some(setting) = self.setting(place) else {
            return sink::look(self.sink(), place).into();
        };
        let on_loan = self.writer.on_loan(setting);
        let pages = on_loan.and_then(|on_loan| self.less_loans(setting, &on_loan));
        pages.map_err(failed).into()
    }

    /// Makes a place that is as `from` says be `to`. A pool may come out smaller: the caller reads it back.
    pub(super) fn put(&self, place: &Place, from: &State, to: &State) -> Result<(), SetupError> {
        let fail = |source| SetupError::Put {
            place: place.clone(),
            to: to.to_string(),
            source,
        };
        let Some((setting, pages)) = self.setting(place).zip(to.number()) else {
            return self.sink().put(place, from, to).map_err(fail);
        };
        self.writer.beside_loans(setting, |on_loan| {
            // A measurement that gives back takes the value of before its lease as a sign that it was restored already.
            if on_loan.bases.contains(&pages.saturating_add(on_loan.pages)) {
                let (place, pages) = (place.clone(), on_loan.pages);
                return Err(SetupError::OnLoan { place, pages });
            }
            let put = match setting.which {
                Which::Overcommit => setting.write(self.sink(), pages.saturating_add(on_loan.pages)),
                Which::Pages | Which::NodePages(_) => grow::to(self.sink(), setting, pages, on_loan.pages, self.leave),
            };
            put.map_err(|error| match error {
                WriterError::Write { source, .. } => fail(source),
                other => other.into(),
            })
        })
    }

    /// What a pool can be taken back to: as far as wanted, but never below the pages in use.
    pub(super) fn reachable(&self, place: &Place, wanted: &State) -> Result<State, WriterError> {
        let Some((setting, wanted_pages)) = self.setting(place).zip(wanted.number()) else {
            return Ok(wanted.clone());
        };
        if setting.which == Which::Overcommit {
            return Ok(wanted.clone());
        }
        let in_use = setting.in_use(self.sink())?;
        self.writer.beside_loans(setting, |on_loan| {
            let now = setting.read(self.sink())?.saturating_sub(on_loan.pages);
            let floor = in_use.saturating_sub(on_loan.pages).min(now);
            Ok(State::Text(wanted_pages.max(floor).to_string()))
        })
    }

    /// The pool's setting that a place is, under whichever name.
    fn setting(&self, place: &Place) -> Option<PoolSetting> {
        let Place::Setting(path) = place else { return None };
        let which = match path.as_str() {
            "/proc/sys/vm/nr_hugepages" | "/proc/sys/vm/nr_hugepages_mempolicy" => Which::Pages,
            "/proc/sys/vm/nr_overcommit_hugepages" => Which::Overcommit,
            path => return PoolSetting::parse(path),
        };
        let page = crate::pool::usual_page(self.sink()).ok()?;
        Some(PoolSetting { page, which })
    }

    /// Is it a pool, which may come out smaller than asked for?
    pub(super) fn is_pool(&self, place: &Place) -> bool {
        self.setting(place)
            .is_some_and(|setting| setting.which != Which::Overcommit)
    }

    /// The size of the pages that a setting is about.
    pub(super) fn page(&self, place: &Place) -> Option<Bytes> {
        self.setting(place).map(|setting| setting.page)
    }
}
