//! Taking one plan out from below others: what it changed goes, and what later plans made of it stays, as if it had never been there.
//!
//! One line announces the whole in the journal of the plan that goes: the value that will stand there, and what the journals above will
//! say. Whoever comes after a kill finishes what that line announces.

use model::setup::RevertOutcome;

use super::access::Access;
use super::change_log::{ChangeLog, Entry, Rebased, Record};
use super::error::SetupError;
use super::without::without;
use crate::place::{Place, State};
use crate::reserve::Moved;

/// What came of one place, what was found there, and what to know.
pub(super) type Outcome = (RevertOutcome, String, String);

/// Takes the entry of `log` for a place out from below those of the plans above it.
pub(super) fn lift(access: &Access<'_>, log: &mut ChangeLog, above: &mut [ChangeLog], entry: &Entry) -> Outcome {
    let lifted = access.look(&entry.place).map_err(SetupError::from).and_then(|now| {
        let (came, note) = lifted(access, log, above, entry, &now)?;
        Ok((came, now.to_string(), note))
    });
    lifted.unwrap_or_else(|error| (RevertOutcome::Failed, "(unread)".to_owned(), error.to_string()))
}

fn lifted(
    access: &Access<'_>,
    log: &mut ChangeLog,
    above: &mut [ChangeLog],
    entry: &Entry,
    now: &State,
) -> Result<(RevertOutcome, String), SetupError> {
    let place = &entry.place;
    let Some((to, rebased)) = planned(place, entry, above, now) else {
        let note = "it is not as the plans on record left it: undo those above first, or all".to_owned();
        return Ok((RevertOutcome::Changed, note));
    };
    let reachable = access.reachable(place, &to)?;
    if reachable != to {
        let note = format!("{reachable} pages are in use: run it again when they are not");
        return Ok((RevertOutcome::InUse, note));
    }
    log.append(Record::Lift {
        place: place.clone(),
        from: now.clone(),
        to: to.clone(),
        rebased,
    })?;
    if !now.is(&to) {
        access.put(place, now, &to)?;
    }
    finish(access, log, above, place)?;
    let note = format!("`{to}` is what the other plans need");
    Ok((RevertOutcome::Restored, note))
}

/// What shall stand there, and what the journals above say then; `None` if the machine is not as they say now.
fn planned(place: &Place, entry: &Entry, above: &[ChangeLog], now: &State) -> Option<(State, Vec<Rebased>)> {
    let (before, after) = (&entry.before, &entry.ours);
    let mut rebased = Vec::new();
    let mut below = after.clone();
    // What this plan did to the reserve is the next one's to undo.
    let mut left = entry.reserve;
    for log in above {
        let Some(upper) = log.story.entries.iter().find(|upper| upper.place == *place) else {
            continue;
        };
        if upper.pending.is_some() || !upper.before.is(&below) {
            return None;
        }
        let reserve = match (left.take(), upper.reserve) {
            (Some(below), Some(upper)) => Some(Moved {
                before: below.before,
                ..upper
            }),
            (below, upper) => below.or(upper),
        };
        rebased.push(Rebased {
            reserve,
            journal: log.name(),
            before: without(place, &upper.before, before, after)?,
            ours: without(place, &upper.ours, before, after)?,
        });
        below = upper.ours.clone();
    }
    if entry.pending.is_some() || !now.is(&below) {
        return None;
    }
    Some((rebased.last()?.ours.clone(), rebased))
}

/// Finishes what was announced: the journals above say what stands there without this plan, and this one nothing any more. What was
/// announced and not done is dropped.
pub(super) fn finish(
    access: &Access<'_>,
    log: &mut ChangeLog,
    above: &mut [ChangeLog],
    place: &Place,
) -> Result<(), SetupError> {
    let entry = log.story.entries.iter().find(|entry| entry.place == *place);
    let Some(lift) = entry.and_then(|entry| entry.lift.clone()) else {
        return Ok(());
    };
    let now = access.look(place)?;
    if !now.is(&lift.to) {
        return Ok(log.append(Record::Dropped { place: place.clone() })?);
    }
    for rebased in lift.rebased {
        let Some(upper) = above.iter_mut().find(|upper| upper.name() == rebased.journal) else {
            continue;
        };
        // Said already, before a kill.
        let is_new = |entry: &Entry| entry.before.is(&rebased.before) && entry.ours.is(&rebased.ours);
        let is_old = |entry: &Entry| entry.place == *place && !is_new(entry);
        if !upper.story.entries.iter().any(is_old) {
            continue;
        }
        upper.append(Record::Rebase {
            place: place.clone(),
            before: rebased.before,
            ours: rebased.ours,
            reserve: rebased.reserve,
        })?;
    }
    Ok(log.append(Record::Forget { place: place.clone() })?)
}

/// Finishes what a kill left of all of them.
pub(super) fn finish_all(access: &Access<'_>, logs: &mut [ChangeLog]) -> Result<(), SetupError> {
    for nth in 0..logs.len() {
        let (below, above) = logs.split_at_mut(nth + 1);
        let log = &mut below[nth];
        let pending = log.story.entries.iter().filter(|entry| entry.lift.is_some());
        let places: Vec<Place> = pending.map(|entry| entry.place.clone()).collect();
        for place in places {
            finish(access, log, above, &place)?;
        }
    }
    Ok(())
}
