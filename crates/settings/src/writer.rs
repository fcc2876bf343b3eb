//! The writer: every change of the machine is journalled, made, read back, and undone here.

mod change;
mod ended;
mod leases;
mod loans;
mod thp_sizes;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use model::Unread;

use crate::error::WriterError;
use crate::gave_back::{GaveBack, Outcome};
use crate::journal::{Journal, Run, Share};
use crate::owner::Owner;
use crate::pool_setting::PoolSetting;
use crate::sink::{self, Sink};
use crate::state_dir::StateDir;

pub use loans::Loan;

/// The way to the machine's settings. Clones share one journal.
#[derive(Clone)]
pub struct Writer {
    inner: Arc<Inner>,
}

struct Inner {
    state: StateDir,
    sink: Box<dyn Sink>,
    /// This run's journal, while it holds anything. Taken only after the lock.
    own: Mutex<Option<Journal>>,
}

impl Writer {
    /// A writer with its journals in `state_dir`. Nothing is read or made until it is used.
    pub fn new(state_dir: impl Into<PathBuf>, sink: Box<dyn Sink>) -> Self {
        let inner = Inner {
            state: StateDir(state_dir.into()),
            sink,
            own: Mutex::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Gives back what runs left that ended without doing so (SIGKILL, power). Every command calls this first.
    ///
    /// Nothing to do is the usual answer, also when there is no state directory, or when it is root's and this user is
    /// not. Each journal is dealt with by itself: one that cannot be undone now stays, and is reported as
    /// [`Outcome::Failed`](crate::Outcome::Failed).
    ///
    /// # Errors
    /// When the state directory cannot be trusted, listed or locked.
    pub fn recover(&self) -> Result<Vec<GaveBack>, WriterError> {
        if !self.inner.state.is_there()? || self.inner.state.journals()?.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = self.inner.state.lock()?;
        self.inner.settle_ended()
    }

    /// Undoes what is held, last first. What is done leaves the list, so that a failure can be tried again.
    fn undo<H>(
        &self,
        held: &mut Vec<H>,
        back: impl Fn(&mut Journal, &H) -> Result<(String, Outcome), WriterError>,
    ) -> Result<Vec<GaveBack>, WriterError> {
        let inner = &self.inner;
        let mut told = Vec::new();
        if held.is_empty() {
            return Ok(told);
        }
        // The directory may have been removed since; what was changed must be undone all the same.
        inner.state.create()?;
        let _lock = inner.state.lock()?;
        inner.settle_ended()?;
        inner.with_own(|own| {
            while let Some(last) = held.last() {
                let ((what, outcome), ended) = (back(own, last)?, None);
                held.pop();
                told.push(GaveBack { what, ended, outcome });
            }
            Ok(told)
        })
    }
}

/// What live runs have borrowed of one setting.
#[derive(Default)]
pub(crate) struct OnLoan {
    /// How much of its value is theirs.
    pub(crate) pages: u64,
    /// The values that would show that the setting was restored.
    pub(crate) bases: Vec<u64>,
}

impl Writer {
    /// The machine behind the writer.
    pub(crate) fn sink(&self) -> &dyn Sink {
        &*self.inner.sink
    }

    /// The kernel's name for the time since it was started.
    pub(crate) fn boot(&self) -> Result<String, Unread> {
        self.inner.boot()
    }

    /// Makes the state directory, so that no lease can be taken unseen by [`Writer::beside_loans`].
    pub(crate) fn prepare(&self) -> Result<(), WriterError> {
        self.inner.state.create()
    }

    /// Works with a setting while no lease of it is taken or returned.
    pub(crate) fn beside_loans<T, E: From<WriterError>>(
        &self,
        setting: PoolSetting,
        work: impl FnOnce(OnLoan) -> Result<T, E>,
    ) -> Result<T, E> {
        let state = &self.inner.state;
        if !state.is_there()? {
            return work(OnLoan::default());
        }
        let _lock = state.lock()?;
        work(self.on_loan(setting)?)
    }

    /// What is borrowed of a setting, as the journals say now: for those who only read, without the lock.
    pub(crate) fn on_loan(&self, setting: PoolSetting) -> Result<OnLoan, WriterError> {
        self.inner.on_loan(setting)
    }
}

impl Inner {
    /// What all runs hold of pools; nothing where there is no state directory, or it is root's and this user is not.
    fn shares(&self) -> Result<Vec<(PoolSetting, Share)>, WriterError> {
        if !self.state.is_there()? {
            return Ok(Vec::new());
        }
        let journals = self.state.journals()?;
        let shares = journals.iter().flat_map(|path| Journal::ledger(path).pools);
        Ok(shares.filter(|(_, share)| share.pages > 0).collect())
    }

    fn on_loan(&self, setting: PoolSetting) -> Result<OnLoan, WriterError> {
        let mut on_loan = OnLoan::default();
        for (_, share) in self.shares()?.into_iter().filter(|(of, _)| *of == setting) {
            on_loan.pages = on_loan.pages.saturating_add(share.pages);
            on_loan.bases.push(share.base);
        }
        Ok(on_loan)
    }
}

// Everything below is called with the lock held.
impl Inner {
    /// Works with this run's journal, which is there only while it holds something.
    fn with_own<T, E: From<WriterError>>(&self, work: impl FnOnce(&mut Journal) -> Result<T, E>) -> Result<T, E> {
        let mut slot = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = match &mut *slot {
            Some(journal) => journal,
            none => none.insert(self.new_journal()?),
        };
        let result = work(journal);
        if journal.ledger.is_settled() {
            journal.remove(&self.state)?;
            *slot = None;
        }
        result
    }

    fn new_journal(&self) -> Result<Journal, WriterError> {
        let run = Run::new(self.boot()?, Owner::this(&*self.sink)?);
        Journal::create(&self.state, run)
    }

    fn boot(&self) -> Result<String, Unread> {
        let id = sink::text(&*self.sink, "/proc/sys/kernel/random/boot_id")?;
        Ok(id.trim().to_owned())
    }
}

#[cfg(test)]
mod tests;
