//! Applying a plan: its changes one after the other, and all of them undone if one fails.

use model::plan::{Change, Plan};
use model::setup::{Applied, End, Step, StepOutcome};

use super::access::Access;
use super::change_log::{ChangeLog, Head, Record};
use super::error::SetupError;
use super::survey::{Task, survey};
use super::{How, Setup, bounds, change, grow, lift, undo};
use crate::place::{Place, State};
use crate::state_dir::StateDir;

impl Setup {
    /// Makes the changes of a plan, in their order.
    ///
    /// Every value is read again before anything is changed, and once more right before its own change: what is not as
    /// the plan found it is refused. Each change is in the journal before it is made. A pool that memory has no room for
    /// gets what can be had; that is an answer ([`End::Short`]), not an error.
    ///
    /// # Errors
    /// The plan, the machine or the journals are not as they must be, or another run is at work: then nothing was changed.
    /// Or a change failed: then those before it were undone, and the outcome of each is reported.
    pub fn apply(&self, plan: &Plan, how: &How<'_>) -> Result<Applied, SetupError> {
        plan.check()?;
        let (home, notes) = self.make_home()?;
        let _lock = home.try_lock()?;
        let mut logs = Self::logs(home)?;
        refuse_cut_short(&logs)?;
        self.writer.prepare()?;
        let access = Access::new(&self.writer, how.leave);
        lift::finish_all(&access, &mut logs)?;
        let tasks = survey(&access, plan)?;
        bounds::check(
            &access,
            &tasks.iter().filter_map(|(_, task)| task.as_ref()).collect::<Vec<_>>(),
        )?;
        let mut log = ChangeLog::create(home, Head::new(self.writer.boot()?, plan.clone()))?;
        let made = make(&access, &mut log, &tasks, how).and_then(|steps| {
            let end = end(&steps, how.exact);
            if end != End::RolledBack {
                log.append(Record::Complete)?;
            }
            Ok(Applied {
                goals: plan.goals.clone(),
                end,
                steps,
                programs: Vec::new(),
                notes,
            })
        });
        conclude(&access, home, log, made)
    }
}

/// An earlier plan that was cut short must be undone first: the state of what it was about to change is unknown.
fn refuse_cut_short(logs: &[ChangeLog]) -> Result<(), SetupError> {
    let cut_short = logs.iter().find(|log| !log.story.complete);
    cut_short.map_or(Ok(()), |log| Err(SetupError::CutShort(log.story.head.time.clone())))
}

/// Makes the changes; what was read back of each.
fn make(
    access: &Access<'_>,
    log: &mut ChangeLog,
    tasks: &[(&Change, Option<Task>)],
    how: &How<'_>,
) -> Result<Vec<Step>, SetupError> {
    let mut steps = Vec::new();
    for (change, task) in tasks {
        if (how.stop)() {
            return Err(SetupError::Interrupted);
        }
        steps.push(match task {
            None => to_do(change),
            Some(task) => made(access, log, change, task)?,
        });
    }
    Ok(steps)
}

/// Makes one change, and the directories that it needs.
fn made(access: &Access<'_>, log: &mut ChangeLog, planned: &Change, task: &Task) -> Result<Step, SetupError> {
    let Task { place, from, to } = task;
    if from.is(to) {
        return Ok(step(planned, task, from, StepOutcome::Already));
    }
    if matches!((from, to), (State::Mounted(_), State::Mounted(_))) {
        return Err(SetupError::MountedOtherwise(place.clone()));
    }
    if matches!(place, Place::File(_) | Place::Mount(_)) && *to != State::Absent {
        make_directories(access, log, place)?;
    }
    let now = change(access, log, place, from, to)?;
    let short = access.is_pool(place) && now.number() < to.number();
    if !now.is(to) && !short {
        return Err(SetupError::NotTaken {
            place: place.clone(),
            asked: to.to_string(),
            found: now.to_string(),
        });
    }
    let mut step = step(
        planned,
        task,
        &now,
        if short { StepOutcome::Short } else { StepOutcome::Done },
    );
    if short && let Some(page) = access.page(place) {
        let missing = to.number().unwrap_or(0).saturating_sub(now.number().unwrap_or(0));
        step.note = grow::shortfall(access.sink(), page, missing, access.leave);
    }
    Ok(step)
}

fn make_directories(access: &Access<'_>, log: &mut ChangeLog, place: &Place) -> Result<(), SetupError> {
    for directory in place.directories() {
        if access.look(&directory)? == State::Absent {
            change(access, log, &directory, &State::Absent, &State::Directory)?;
        }
    }
    Ok(())
}

fn end(steps: &[Step], exact: bool) -> End {
    let short = steps.iter().any(|step| step.outcome == StepOutcome::Short);
    match (short, exact) {
        (false, _) => End::Applied,
        (true, false) => End::Short,
        (true, true) => End::RolledBack,
    }
}

/// Undoes what must not stay, and removes a journal with nothing in it.
fn conclude(
    access: &Access<'_>,
    home: &StateDir,
    mut log: ChangeLog,
    made: Result<Applied, SetupError>,
) -> Result<Applied, SetupError> {
    let result = match made {
        Ok(applied) if applied.end != End::RolledBack => Ok(applied),
        made => {
            let told = undo::revert(access, &mut log, &mut [], false);
            match made {
                Ok(applied) if told.iter().all(|back| back.outcome.is_settled()) => Ok(rolled_back(applied)),
                made => Err(SetupError::RolledBack {
                    cause: Box::new(made.err().unwrap_or(SetupError::Short)),
                    told,
                }),
            }
        }
    };
    // What was done is done, whether or not a journal with nothing in it could be removed.
    let removed = log.remove_if_settled(home);
    result.map(|mut applied| {
        applied.notes.extend(removed.err().map(|error| error.to_string()));
        applied
    })
}

/// The same answer when nothing of it stands any more; what was obtained is still worth knowing.
fn rolled_back(mut applied: Applied) -> Applied {
    for step in &mut applied.steps {
        if step.outcome == StepOutcome::Done {
            step.outcome = StepOutcome::Undone;
        }
    }
    applied
}

fn step(planned: &Change, task: &Task, now: &State, came: StepOutcome) -> Step {
    Step {
        id: planned.id.clone(),
        layer: planned.layer,
        place: task.place.to_string(),
        before: task.from.to_string(),
        asked: task.to.to_string(),
        obtained: now.to_string(),
        outcome: came,
        note: still_to_do(planned),
    }
}

/// What a change still needs before it takes effect.
pub(super) fn still_to_do(planned: &Change) -> String {
    let restart = &planned.risk.restart;
    // What is a command is typed as it stands.
    let restart = restart.iter().map(|what| match what.starts_with("systemctl ") {
        true => what.clone(),
        false => format!("restart {what}"),
    });
    reboot(planned)
        .into_iter()
        .chain(restart)
        .collect::<Vec<_>>()
        .join("; ")
}

/// What only a restart of the machine brings.
pub(super) fn reboot(planned: &Change) -> Option<String> {
    planned.risk.reboot.then(|| "takes effect at the next boot".to_owned())
}

fn to_do(planned: &Change) -> Step {
    Step {
        id: planned.id.clone(),
        layer: planned.layer,
        place: planned.target.to_string(),
        before: String::new(),
        asked: String::new(),
        obtained: String::new(),
        outcome: StepOutcome::ToDo,
        note: planned.after.to_string(),
    }
}
