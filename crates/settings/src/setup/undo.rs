//! Walking back: the last change first, exactly, and never over what others have changed since.

use std::io;

use model::plan::Target;
use model::setup::{Back, BackCame, Undone};

use super::access::Access;
use super::change_log::{ChangeLog, Entry, Record};
use super::error::SetupError;
use super::{Setup, change};
use crate::place::{Place, State};

impl Setup {
    /// Undoes every plan that was applied, the last change first.
    ///
    /// A value that was changed since is left as it is and reported; with `forget` it is no longer tracked.
    /// A pool is never taken below its pages in use. What could not be undone stays in the journal, for the next time.
    ///
    /// # Errors
    /// When the journals cannot be used, or another run is at work; then nothing was changed.
    pub fn undo(&self, forget: bool) -> Result<Undone, SetupError> {
        let (mut steps, mut notes) = (Vec::new(), Vec::new());
        let Some(home) = self.home()? else {
            return Ok(Undone {
                steps,
                holders: Vec::new(),
                notes,
            });
        };
        let _lock = home.try_lock()?;
        let logs = Self::logs(home)?;
        let access = Access::new(&self.writer, None);
        self.writer.prepare()?;
        for mut log in logs.into_iter().rev() {
            let restarted = self.is_restarted(&log)?;
            steps.extend(revert(&access, &mut log, restarted, forget));
            notes.extend(needs_reboot(&log, restarted));
            log.remove_if_settled(home)?;
        }
        Ok(Undone {
            steps,
            holders: Vec::new(),
            notes,
        })
    }
}

/// Undoes all that a journal knows of.
pub(super) fn revert(access: &Access<'_>, log: &mut ChangeLog, restarted: bool, forget: bool) -> Vec<Back> {
    let entries = log.story.entries.clone();
    let back = |entry: Entry| {
        let walk = Walk {
            access,
            restarted,
            forget,
        };
        let outcome = walk.back(log, &entry);
        let (came, found, note) = outcome.unwrap_or_else(|error| failed(access, &entry, &error));
        Back {
            place: entry.place.to_string(),
            found,
            before: entry.before.to_string(),
            came,
            note,
        }
    };
    entries.into_iter().rev().map(back).collect()
}

/// What came of one place, what was found there, and what to know.
type Outcome = (BackCame, String, String);

/// How to walk back.
struct Walk<'a> {
    access: &'a Access<'a>,
    /// Has the machine been restarted since the change?
    restarted: bool,
    forget: bool,
}

impl Walk<'_> {
    fn back(&self, log: &mut ChangeLog, entry: &Entry) -> Result<Outcome, SetupError> {
        let now = self.access.look(&entry.place)?;
        if now.is(&entry.before) {
            return self.settle(log, entry, &now);
        }
        let gone = self.restarted && !entry.place.is_on_disk() && !(entry.owns(&now) && sets_again(log));
        if gone {
            forget(log, entry)?;
            let note = "the machine has been restarted since, and this is not what hugewise put there";
            return Ok((BackCame::Restarted, now.to_string(), note.to_owned()));
        }
        match entry.owns(&now) {
            true => self.restore(log, entry, &now),
            false => self.leave(log, entry, &now, by_others(entry)),
        }
    }

    /// The previous value is in place.
    fn settle(&self, log: &mut ChangeLog, entry: &Entry, now: &State) -> Result<Outcome, SetupError> {
        if entry.pending.is_some() && matches!(entry.place, Place::File(_)) {
            // A write that was cut short may have left its draft beside the file; this removes it.
            self.access.put(&entry.place, now)?;
        }
        forget(log, entry)?;
        let came = match self.restarted && !entry.place.is_on_disk() {
            true => BackCame::Restarted,
            false => BackCame::AlreadyBack,
        };
        Ok((came, now.to_string(), String::new()))
    }

    fn restore(&self, log: &mut ChangeLog, entry: &Entry, now: &State) -> Result<Outcome, SetupError> {
        let found = now.to_string();
        let to = self.access.reachable(&entry.place, &entry.before)?;
        let got = match now.is(&to) {
            true => to.clone(),
            false => match change(self.access, log, &entry.place, now, &to) {
                Err(SetupError::Put { source, .. }) if is_filled(&source) => {
                    return self.leave(log, entry, now, "others have put something into it".to_owned());
                }
                changed => changed?,
            },
        };
        if got.is(&entry.before) {
            return Ok((BackCame::Restored, found, String::new()));
        }
        let (came, note) = match to.is(&entry.before) {
            true => (BackCame::Failed, format!("reads `{got}` after the write")),
            false => {
                let note = format!("{to} pages are in use: run `hugewise undo` again when they are not");
                (BackCame::InUse, note)
            }
        };
        Ok((came, found, note))
    }

    /// Leaves what others have changed.
    fn leave(&self, log: &mut ChangeLog, entry: &Entry, now: &State, why: String) -> Result<Outcome, SetupError> {
        if !self.forget {
            return Ok((BackCame::Changed, now.to_string(), why));
        }
        forget(log, entry)?;
        Ok((BackCame::Forgotten, now.to_string(), why))
    }
}

fn by_others(entry: &Entry) -> String {
    let Entry { ours, before, .. } = entry;
    format!(
        "others have changed it since hugewise put `{ours}` there: put that or `{before}` there and undo again, or let go of it \
         with `hugewise undo --forget`"
    )
}

fn failed(access: &Access<'_>, entry: &Entry, error: &SetupError) -> Outcome {
    let found = access
        .look(&entry.place)
        .map_or_else(|_| "(unread)".to_owned(), |now| now.to_string());
    let came = match error {
        SetupError::Put { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => BackCame::InUse,
        SetupError::OnLoan { .. } => BackCame::InUse,
        _ => BackCame::Failed,
    };
    (came, found, error.to_string())
}

fn forget(log: &mut ChangeLog, entry: &Entry) -> Result<(), SetupError> {
    let place = entry.place.clone();
    Ok(log.append(Record::Forget { place })?)
}

/// Does the plan write files, which may have set the kernel again at boot?
fn sets_again(log: &ChangeLog) -> bool {
    let mut changes = log.story.head.plan.changes.iter();
    changes.any(|change| matches!(change.target, Target::File { .. }))
}

fn is_filled(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::DirectoryNotEmpty
}

/// After a restart with a change that counts from boot on, only another restart is without it.
fn needs_reboot(log: &ChangeLog, restarted: bool) -> Vec<String> {
    let changes = log.story.head.plan.changes.iter();
    let boot = changes.filter(|change| change.risk.reboot && restarted && change.target.is_applicable());
    boot.map(|change| format!("{}: the machine runs with it until it is restarted", change.target))
        .collect()
}
