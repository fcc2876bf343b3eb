//! THP sizes at the writer: their switches are turned for a lease, and turned back.

use std::sync::Arc;

use model::{Bytes, Cause, Unread};

use super::{Inner, Writer};
use crate::error::{LeaseError, WriterError};
use crate::gave_back::{GaveBack, Outcome};
use crate::journal::{Journal, Record, Turn};
use crate::reserve;
use crate::thp_lease::{ThpSizes, Turned};
use crate::thp_switch::{ThpSwitch, Word};

/// Held by the process that lends THP sizes, for as long as it may.
const CLAIM: &str = "thp-sizes";

fn not_permitted(source: WriterError) -> LeaseError {
    match source.is_denied() {
        true => LeaseError::SizeNotPermitted { source },
        false => LeaseError::Writer(source),
    }
}

impl Writer {
    /// The right to lend THP sizes, until it is dropped.
    ///
    /// # Errors
    /// Another run has it, or the state directory cannot be used.
    pub fn claim_thp_sizes(&self) -> Result<ThpSizes, LeaseError> {
        let claim = self.inner.state.create().and_then(|()| self.inner.state.claim(CLAIM));
        let claim = claim.map_err(not_permitted)?;
        Ok(ThpSizes {
            writer: self.clone(),
            _claim: Arc::new(claim),
        })
    }

    /// Turns switches so that memory gets this size and no other, and enters those that were changed, each before it is.
    pub(crate) fn turn(&self, size: Bytes, held: &mut Vec<Turned>) -> Result<(), LeaseError> {
        let inner = &self.inner;
        ThpSwitch(size)
            .read(&*inner.sink)
            .map_err(|unread| LeaseError::NoSize { size, unread })?;
        let _lock = inner.state.lock()?;
        inner.settle_ended()?;
        let turned = inner.with_own(|own| inner.turn_all(own, size, held));
        turned.map_err(not_permitted)
    }

    /// Turns switches back.
    pub(crate) fn turn_back(&self, held: &mut Vec<Turned>) -> Result<Vec<GaveBack>, WriterError> {
        self.undo(held, |own, Turned { switch, .. }| {
            Ok((switch.to_string(), self.inner.put_back(own, *switch)?))
        })
    }
}

// All of this is called with the lock held.
impl Inner {
    fn turn_all(&self, own: &mut Journal, size: Bytes, held: &mut Vec<Turned>) -> Result<(), WriterError> {
        for switch in ThpSwitch::all(&*self.sink)? {
            let before = switch.read(&*self.sink)?;
            let is_always = switch.is_always(&*self.sink)?;
            // Others stay for memory that is advised. To switch the largest one off would stop khugepaged, with which vm.min_free_kbytes changes.
            let after = match switch.0 == size {
                true if !is_always => Word::Always,
                false if is_always => Word::Madvise,
                _ => continue,
            };
            let path = switch.path();
            own.append(&Record::Turn { path, before, after })?;
            held.push(Turned { switch, before, after });
            let reserve = reserve::now(&*self.sink);
            switch.write(&*self.sink, after)?;
            if let Some(moved) = reserve::moved(&*self.sink, reserve) {
                let path = switch.path();
                own.append(&Record::Reserve { path, moved })?;
            }
        }
        Ok(())
    }

    /// Writes back what was there before, unless others have set something else since: then theirs stays.
    pub(super) fn put_back(&self, journal: &mut Journal, switch: ThpSwitch) -> Result<Outcome, WriterError> {
        let path = switch.path();
        let unknown = || Unread::new(Cause::Garbled, path.clone(), "it is not in the journal");
        let turned = journal.ledger.switches.get(&switch).copied();
        let Turn { before, after, reserve } = turned.ok_or_else(unknown)?;
        let (now, kept) = (switch.read(&*self.sink)?, reserve::now(&*self.sink));
        let outcome = if now == before {
            Outcome::AlreadyBack { now: now.to_string() }
        } else if now == after {
            switch.write(&*self.sink, before)?;
            let (from, to) = (now.to_string(), switch.read(&*self.sink)?.to_string());
            Outcome::Restored { from, to }
        } else {
            Outcome::Replaced { now: now.to_string() }
        };
        if !matches!(outcome, Outcome::Replaced { .. }) {
            let wanted = reserve::wanted(reserve, kept, reserve::now(&*self.sink));
            reserve::restore(&*self.sink, wanted)?;
        }
        journal.append(&Record::Done { path, share: 0 })?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
