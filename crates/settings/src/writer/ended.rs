//! Runs that ended without giving back: what they left is found in their journals and undone.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use super::Inner;
use crate::error::WriterError;
use crate::gave_back::{GaveBack, Outcome};
use crate::journal::{Journal, Ledger, Record, Run};
use crate::owner::{Life, Owner};
use crate::pool_setting::PoolSetting;

/// How long a killed run may take to let go of its memory before it counts as alive.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A run that is gone, and its journal.
struct Ended {
    pid: u32,
    journal: Journal,
}

// All of this is called with the lock held.
impl Inner {
    /// Undoes what ended runs left, and removes their journals.
    pub(super) fn settle_ended(&self) -> Result<Vec<GaveBack>, WriterError> {
        let mut told = Vec::new();
        let mut ended = Vec::new();
        for path in self.state.journals()? {
            match Journal::open(&path) {
                Ok((journal, run)) => ended.extend(self.sort_out(journal, run, &mut told)?),
                Err(error) => {
                    let why = format!(
                        "{error} (check the pools in /sys/kernel/mm/hugepages and the sizes in /sys/kernel/mm/transparent_hugepage, then \
                         delete the file)"
                    );
                    let what = path.display().to_string();
                    let outcome = Outcome::Failed { why };
                    told.push(GaveBack {
                        what,
                        ended: None,
                        outcome,
                    });
                }
            }
        }
        // First every unfinished write, by the values as they were left; only then may values change.
        for run in &mut ended {
            let pools = run.journal.ledger.pools.keys().copied().collect();
            self.for_each(pools, run, &mut told, Self::decide);
        }
        for run in &mut ended {
            let Ledger { pools, switches } = &run.journal.ledger;
            let (pools, switches) = (pools.keys().copied().collect(), switches.keys().copied().collect());
            self.for_each(pools, run, &mut told, Self::take_all_out);
            self.for_each(switches, run, &mut told, |inner, journal, switch| {
                inner.put_back(journal, switch).map(Some)
            });
            if run.journal.ledger.is_settled() {
                run.journal.remove(&self.state)?;
            }
        }
        Ok(told)
    }

    /// Removes a journal that can have nothing to undo; passes on one whose run is gone; leaves one whose run lives.
    fn sort_out(
        &self,
        journal: Journal,
        run: Option<Run>,
        told: &mut Vec<GaveBack>,
    ) -> Result<Option<Ended>, WriterError> {
        // Without a first line nothing was ever written.
        let Some(run) = run else {
            return journal.remove(&self.state).map(|()| None);
        };
        let pid = run.owner.pid;
        if run.boot != self.boot()? {
            let rebooted = |what: String| GaveBack {
                what,
                ended: Some(pid),
                outcome: Outcome::Rebooted,
            };
            told.extend(journal.ledger.names().into_iter().map(rebooted));
            return journal.remove(&self.state).map(|()| None);
        }
        Ok(self.has_ended(run.owner).then_some(Ended { pid, journal }))
    }

    /// Does one step of undoing for every setting of a run, and reports the outcome of each.
    fn for_each<S: Copy + fmt::Display>(
        &self,
        settings: Vec<S>,
        run: &mut Ended,
        told: &mut Vec<GaveBack>,
        step: fn(&Self, &mut Journal, S) -> Result<Option<Outcome>, WriterError>,
    ) {
        for setting in settings {
            let outcome = step(self, &mut run.journal, setting).unwrap_or_else(|error| {
                let why = error.to_string();
                Some(Outcome::Failed { why })
            });
            let (what, ended) = (setting.to_string(), Some(run.pid));
            told.extend(outcome.map(|outcome| GaveBack { what, ended, outcome }));
        }
    }

    /// Decides whether a write that was cut short has happened.
    fn decide(&self, journal: &mut Journal, setting: PoolSetting) -> Result<Option<Outcome>, WriterError> {
        let entry = journal.ledger.share(setting);
        let Some((before, after)) = entry.pending else {
            return Ok(None);
        };
        let now = setting.read(&*self.sink)?;
        let resolved = entry.resolved(now, setting.which);
        let (path, share) = (setting.path(), resolved.unwrap_or(0));
        journal.append(&Record::Done { path, share })?;
        let unclear = Outcome::Unclear { before, after, now };
        Ok(resolved.is_none().then_some(unclear))
    }

    /// Takes out all that a run holds of a setting, unless it could not be decided what that is.
    fn take_all_out(&self, journal: &mut Journal, setting: PoolSetting) -> Result<Option<Outcome>, WriterError> {
        let entry = journal.ledger.share(setting);
        if entry.pending.is_some() {
            return Ok(None);
        }
        self.take_out(journal, setting, entry.pages, entry.base).map(Some)
    }

    /// Has a process ended? One that was killed a moment ago is waited for, until its memory is free.
    fn has_ended(&self, owner: Owner) -> bool {
        let start = Instant::now();
        loop {
            match owner.life(&*self.sink) {
                Life::Gone => return true,
                Life::Dying if start.elapsed() < END_TIMEOUT => thread::sleep(Duration::from_millis(2)),
                Life::Dying | Life::Alive => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests;
