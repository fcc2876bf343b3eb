//! One change at the writer: announced in the journal, written, read back; and taken out again.

use model::Unread;

use super::Inner;
use crate::error::WriterError;
use crate::gave_back::Outcome;
use crate::journal::{Journal, Record};
use crate::pool_setting::PoolSetting;

/// How often a value may change between two reads before we go on regardless.
const DRIFTS: u32 = 10;

// All of this is called with the lock held.
impl Inner {
    /// Takes a share out of a setting again: subtracts what we added, whatever the value has become.
    ///
    /// Others set these values too: another hugewise, a script that adds and later subtracts its own, an administrator who
    /// writes a number. Writing back the old value would undo theirs, so only our own share goes. Two values show that
    /// our share is no longer in them, and are left alone: the very value of before the lease, and one below our share.
    /// Pages in use are never taken by this: the kernel turns those beyond the new pool size into surplus pages, which go
    /// when they are unmapped.
    pub(super) fn take_out(
        &self,
        journal: &mut Journal,
        setting: PoolSetting,
        pages: u64,
        base: u64,
    ) -> Result<Outcome, WriterError> {
        let now = setting.read(&*self.sink)?;
        let share = journal.ledger.share(setting).pages;
        let gone = Record::Done {
            path: setting.path(),
            share: share.saturating_sub(pages),
        };
        if now == base {
            journal.append(&gone)?;
            return Ok(Outcome::AlreadyBack { now: now.to_string() });
        }
        if now < pages {
            journal.append(&gone)?;
            return Ok(Outcome::Replaced { now: now.to_string() });
        }
        let (from, to) = self.change(journal, setting, base, |now| Ok(now.saturating_sub(pages)))?;
        let (from, to) = (from.to_string(), to.to_string());
        Ok(Outcome::Restored { from, to })
    }

    /// Journals, writes and reads back one change to what `aim` makes of the current value; says what it was and became.
    pub(super) fn change(
        &self,
        journal: &mut Journal,
        setting: PoolSetting,
        base: u64,
        aim: impl Fn(u64) -> Result<u64, Unread>,
    ) -> Result<(u64, u64), WriterError> {
        let sink = &*self.sink;
        let (mut before, mut drifts) = (setting.read(sink)?, 0);
        // Syncing takes a while, so the value is read again after it, and announced anew if it changed.
        let after = loop {
            let (path, after) = (setting.path(), aim(before)?);
            journal.append(&Record::Write {
                path,
                before,
                after,
                base,
            })?;
            let now = setting.read(sink)?;
            if now == before || drifts == DRIFTS {
                break after;
            }
            (before, drifts) = (now, drifts + 1);
        };
        let written = setting.write(sink, after);
        // If this fails, the journal holds the write as unfinished, for `recover` to decide.
        let read = setting.read(sink)?;
        let now = match &written {
            Err(_) => before,
            // A pool may grow in part; what lies outside of our step is someone else's.
            Ok(()) if after > before => read.clamp(before, after),
            Ok(()) => after,
        };
        let share = journal.ledger.share(setting).pages;
        let share = share.saturating_add(now).saturating_sub(before);
        let path = setting.path();
        journal.append(&Record::Done { path, share })?;
        written.map(|()| (before, now))
    }
}
