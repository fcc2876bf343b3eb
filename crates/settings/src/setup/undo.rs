//! Walking back: the last change first, exactly, and never over what others have changed since.

use std::{fmt, io};

use model::plan::{Plan, Target};
use model::setup::{RevertOutcome, RevertStep, Undone};

use super::access::Access;
use super::change_log::{ChangeLog, Entry, Record};
use super::error::SetupError;
use super::lift::{self, Outcome};
use super::{Setup, change};
use crate::place::{Place, State};
use crate::reserve;

impl Setup {
    /// Undoes plans that were applied, the last change first: all, or those that `which` picks.
    ///
    /// A value that was changed since is left as it is and reported; with `forget` it is no longer tracked.
    /// A pool is never taken below its pages in use. What could not be undone stays in the journal, for the next time. What plans that stay
    /// have made of the same places stays too: pools are what those need.
    ///
    /// # Errors
    /// When the journals cannot be used, another run is at work, or `which` picks none; then nothing was changed.
    pub fn undo(&self, which: Option<&Which>, forget: bool) -> Result<Undone, SetupError> {
        let (mut steps, mut notes) = (Vec::new(), Vec::new());
        let none = |steps, notes| Undone {
            steps,
            holders: Vec::new(),
            notes,
        };
        let Some(home) = self.home()? else {
            return match which {
                None => Ok(none(steps, notes)),
                Some(which) => Err(SetupError::NotOnRecord(which.to_string())),
            };
        };
        let _lock = home.try_lock()?;
        let mut logs = Self::logs(home)?;
        let picked = picked(&logs, which)?;
        let access = Access::new(&self.writer, None);
        self.writer.prepare()?;
        for log in &mut logs {
            if self.is_restarted(&log.story)? {
                log.story.restarted();
            }
        }
        lift::finish_all(&access, &mut logs)?;
        for nth in (0..logs.len()).rev().filter(|&nth| picked[nth]) {
            let (below, above) = logs.split_at_mut(nth + 1);
            let log = &mut below[nth];
            steps.extend(revert(&access, log, above, forget));
            notes.extend(needs_reboot(log));
        }
        notes.extend(still_applied(&logs, &picked));
        for log in logs {
            // What is undone is undone, whether or not its journal could be removed.
            if let Err(error) = log.remove_if_settled(home) {
                notes.push(error.to_string());
            }
        }
        Ok(none(steps, notes))
    }
}

fn picked(logs: &[ChangeLog], which: Option<&Which>) -> Result<Vec<bool>, SetupError> {
    let picks = |log: &ChangeLog| which.is_none_or(|which| which.picks(log));
    let picked: Vec<bool> = logs.iter().map(picks).collect();
    match which.filter(|_| !picked.contains(&true)) {
        Some(which) => Err(SetupError::NotOnRecord(which.to_string())),
        None => Ok(picked),
    }
}

fn still_applied(logs: &[ChangeLog], picked: &[bool]) -> Option<String> {
    let left = logs.iter().zip(picked).filter(|(_, picked)| !**picked);
    let left: Vec<String> = left.map(|(log, _)| log.story.head.plan.goals.join(" and ")).collect();
    (!left.is_empty()).then(|| format!("still applied: {} (`hugewise verify` checks them)", left.join("; ")))
}

/// Which plans to undo.
#[derive(Clone, Debug)]
pub enum Which {
    /// Those that were applied from this plan.
    Plan(Box<Plan>),
    Goal(String),
}

impl Which {
    fn picks(&self, log: &ChangeLog) -> bool {
        let applied = &log.story.head.plan;
        match self {
            Self::Plan(plan) => **plan == *applied,
            Self::Goal(goal) => applied.goals.contains(goal),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(plan) => f.write_str(&plan.goals.join(" and ")),
            Self::Goal(goal) => f.write_str(goal),
        }
    }
}

/// Undoes all that a journal knows of.
pub(super) fn revert(
    access: &Access<'_>,
    log: &mut ChangeLog,
    above: &mut [ChangeLog],
    forget: bool,
) -> Vec<RevertStep> {
    let entries = log.story.entries.clone();
    let step = |entry: Entry| {
        let has_it = |upper: &ChangeLog| upper.story.entries.iter().any(|upper| upper.place == entry.place);
        let (came, found, note) = match above.iter().any(has_it) {
            true => lift::lift(access, log, above, &entry),
            false => back(access, log, &entry, forget).unwrap_or_else(|error| failed(access, &entry, &error)),
        };
        RevertStep {
            place: entry.place.to_string(),
            found,
            before: entry.before.to_string(),
            outcome: came,
            note,
        }
    };
    entries.into_iter().rev().map(step).collect()
}

fn back(access: &Access<'_>, log: &mut ChangeLog, entry: &Entry, forget: bool) -> Result<Outcome, SetupError> {
    let now = access.look(&entry.place)?;
    if now.is(&entry.before) {
        return settle(access, log, entry, &now);
    }
    let is_reset = log.story.is_restarted && !entry.place.is_on_disk();
    if is_reset && !(entry.owns(&now) && sets_again(log)) {
        let note = "the machine has been restarted since, and this is not what hugewise put there";
        let_go(log, entry)?;
        return Ok((RevertOutcome::Restarted, now.to_string(), note.to_owned()));
    }
    match entry.owns(&now) {
        true => restore(access, log, entry, &now, forget),
        false => leave(log, entry, &now, by_others(entry, forget), forget),
    }
}

/// The previous value is in place.
fn settle(access: &Access<'_>, log: &mut ChangeLog, entry: &Entry, now: &State) -> Result<Outcome, SetupError> {
    if entry.pending.is_some() && matches!(entry.place, Place::File(_)) {
        // A write that was cut short may have left its draft beside the file; this removes it.
        access.put(&entry.place, now, now)?;
    }
    if entry.reserve.is_some() {
        let kept = reserve::now(access.sink());
        reserve::restore(access.sink(), reserve::wanted(entry.reserve, kept, kept))?;
    }
    let_go(log, entry)?;
    let came = match log.story.is_restarted && !entry.place.is_on_disk() {
        true => RevertOutcome::Restarted,
        false => RevertOutcome::AlreadyBack,
    };
    Ok((came, now.to_string(), String::new()))
}

fn restore(
    access: &Access<'_>,
    log: &mut ChangeLog,
    entry: &Entry,
    now: &State,
    forget: bool,
) -> Result<Outcome, SetupError> {
    let found = now.to_string();
    let to = access.reachable(&entry.place, &entry.before)?;
    let got = match now.is(&to) {
        true => to.clone(),
        false => match change(access, log, &entry.place, now, &to) {
            Err(SetupError::Put { source, .. }) if source.kind() == io::ErrorKind::DirectoryNotEmpty => {
                let why = "others have put something into it".to_owned();
                return leave(log, entry, now, why, forget);
            }
            changed => changed?,
        },
    };
    if got.is(&entry.before) {
        return Ok((RevertOutcome::Restored, found, String::new()));
    }
    let (came, note) = match to.is(&entry.before) {
        true => (RevertOutcome::Failed, format!("reads `{got}` after the write")),
        false => {
            let note = format!("{to} pages are in use: run `hugewise undo` again when they are not");
            (RevertOutcome::InUse, note)
        }
    };
    Ok((came, found, note))
}

fn leave(log: &mut ChangeLog, entry: &Entry, now: &State, why: String, forget: bool) -> Result<Outcome, SetupError> {
    if !forget {
        return Ok((RevertOutcome::Changed, now.to_string(), why));
    }
    let_go(log, entry)?;
    Ok((RevertOutcome::Forgotten, now.to_string(), why))
}

fn by_others(entry: &Entry, forget: bool) -> String {
    let Entry { ours, before, .. } = entry;
    let since = format!("others have changed it since hugewise put `{ours}` there");
    match forget {
        true => since,
        false => format!(
            "{since}: put that or `{before}` there and undo again, or let go of it with `hugewise undo --forget`"
        ),
    }
}

fn failed(access: &Access<'_>, entry: &Entry, error: &SetupError) -> Outcome {
    let found = access
        .look(&entry.place)
        .map_or_else(|_| "(unread)".to_owned(), |now| now.to_string());
    let came = match error {
        SetupError::Put { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => RevertOutcome::InUse,
        SetupError::OnLoan { .. } => RevertOutcome::InUse,
        _ => RevertOutcome::Failed,
    };
    (came, found, error.to_string())
}

fn let_go(log: &mut ChangeLog, entry: &Entry) -> Result<(), SetupError> {
    let place = entry.place.clone();
    Ok(log.append(Record::Forget { place })?)
}

/// Does the plan write files, which may have set the kernel again at boot?
fn sets_again(log: &ChangeLog) -> bool {
    let mut changes = log.story.head.plan.changes.iter();
    changes.any(|change| matches!(change.target, Target::File { .. }))
}

/// After a restart with a change that counts from boot on, only another restart is without it.
fn needs_reboot(log: &ChangeLog) -> Vec<String> {
    let story = &log.story;
    let changes = story.head.plan.changes.iter();
    let boot = changes.filter(|change| change.risk.reboot && story.is_restarted && change.target.is_applicable());
    boot.map(|change| format!("{}: the machine runs with it until it is restarted", change.target))
        .collect()
}
