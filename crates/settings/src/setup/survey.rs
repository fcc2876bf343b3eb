//! A plan held against the machine before anything is changed: every value is read again, and drift is named.

use std::collections::BTreeSet;

use model::Reading;
use model::plan::{Change, Plan, Sum, Value};

use super::access::Access;
use super::error::SetupError;
use crate::place::{Place, State, wanted};

/// One change of a plan that this host can make.
pub(super) struct Task {
    pub(super) place: Place,
    pub(super) from: State,
    /// What shall stand there.
    pub(super) to: State,
}

/// What is to be done for each change of the plan, `None` for instructions; or everything that is not as planned.
pub(super) fn survey<'a>(access: &Access<'_>, plan: &'a Plan) -> Result<Vec<(&'a Change, Option<Task>)>, SetupError> {
    let mut places = BTreeSet::new();
    let (mut tasks, mut drifts) = (Vec::new(), Vec::new());
    for change in &plan.changes {
        let Some(place) = Place::of(&change.target) else {
            tasks.push((change, None));
            continue;
        };
        if !places.insert(place.clone()) {
            return Err(SetupError::Twice(place));
        }
        match task(access, change, &plan.goals, place)? {
            Ok(task) => tasks.push((change, Some(task))),
            Err(drift) => drifts.push(drift),
        }
    }
    match drifts.is_empty() {
        true => Ok(tasks),
        false => Err(SetupError::Drift(drifts)),
    }
}

/// The drift of one place is no error of the whole: all of it is named.
type Surveyed = Result<Task, String>;

fn task(access: &Access<'_>, change: &Change, goals: &[String], place: Place) -> Result<Surveyed, SetupError> {
    let from = match access.look(&place) {
        Ok(from) => from,
        Err(error) => return Ok(Err(format!("{place}: {error}"))),
    };
    let mut to = wanted(&change.target, &change.after, &from);
    if let (Value::Edit(_), State::File(file)) = (&change.after, &from)
        && let Some(text) = change.edited(goals, &file.text)?
    {
        to = wanted(&change.target, &Value::Text(text), &from);
    }
    Ok(match &change.before {
        Reading::Known(planned) if from.holds(planned) => Ok(Task { place, from, to }),
        Reading::Known(Value::Text(planned)) if matches!(from, State::File(_)) => {
            Err(differs(&place, &Value::Sum(Sum::of(planned)).to_string(), &from, &to))
        }
        Reading::Known(planned) => Err(differs(&place, &planned.to_string(), &from, &to)),
        Reading::Unread(why) => Err(format!(
            "{place}: it was not read when the plan was made ({why}), so it could not be put back"
        )),
    })
}

/// The drift at a place where something else was expected.
pub(super) fn differs(place: &Place, planned: &str, found: &State, to: &State) -> String {
    let already = match found.is(to) {
        true => ", which is the planned value",
        false => "",
    };
    format!("{place}: planned over `{planned}`, found `{}`{already}", told(found))
}

/// A file by its checksum: its content may hold secrets, and messages end in logs.
pub(super) fn told(state: &State) -> String {
    match state {
        State::File(file) => Value::Sum(Sum::of(&file.text)).to_string(),
        other => other.to_string(),
    }
}
