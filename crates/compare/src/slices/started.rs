//! Slices of programs that are alive at once: started one by one, if memory is enough for all, and anew after some slices of each.

use model::{Bytes, PageKind};

use super::{Slices, Started};
use crate::around::{Around, Event, Shortage, shortage};
use crate::room::Room;
use crate::runlog::RunLog;
use crate::{Error, Outcome, Spec, experiment, needed};

/// Starts all programs once, which shows their memory and how they get their pages, and lets them take turns. Whatever
/// happens, borrowed pages are given back.
pub(crate) fn compare(
    around: &dyn Around,
    room: &Room<'_>,
    spec: &Spec,
    mut slices: Slices<'_>,
    log: &mut RunLog<'_>,
) -> Result<Outcome, Error> {
    let mut spec = spec.clone();
    let first = first(around, &mut spec, &mut slices)?;
    if let Some(each) = first.memory {
        must_fit(slices.arms.len(), each)?;
    }
    let short = room.borrow(around, first.memory.unwrap_or_default());
    let compared = all(around, &mut spec, &mut slices, &short).and_then(|()| {
        log.note_ways(slices.arms.iter().map(|arm| &arm.setup));
        let done = log.take_whole_starts(&spec)?;
        experiment::run(&spec, done, &mut slices, log, around)
    });
    // Pages that are in use cannot be given back.
    drop(slices);
    around.give_back();
    compared
}

/// The reference shows how much memory a program needs. If it takes that from a pool, it starts anew once it can.
fn first(around: &dyn Around, spec: &mut Spec, slices: &mut Slices<'_>) -> Result<Started, Error> {
    let kind = spec.arms.first().and_then(|reference| reference.kind);
    if kind.is_none_or(|kind| kind.pool().is_none()) {
        return start(around, spec, slices);
    }
    around.report(&Event::Needed { is_start: true });
    let started = slices.start_next(None, spec.least_coverage)?;
    slices.end();
    Ok(started)
}

fn all(around: &dyn Around, spec: &mut Spec, slices: &mut Slices<'_>, short: &[Shortage]) -> Result<(), Error> {
    let short = |kind: Option<PageKind>| shortage(short, kind);
    for (place, named) in spec.arms.iter().enumerate() {
        if let Some(why) = short(named.kind) {
            slices.arms[place].setup.lacks = Some(why.to_owned());
        }
    }
    while slices.next().is_some() {
        start(around, spec, slices)?;
    }
    for named in &mut spec.arms {
        named.shortage = short(named.kind).map(str::to_owned);
    }
    Ok(())
}

/// The program behind the last arm is the reference's second, which has no name in the result.
fn start(around: &dyn Around, spec: &mut Spec, slices: &mut Slices<'_>) -> Result<Started, Error> {
    let name = slices.next().unwrap_or_default().to_owned();
    around.report(&Event::Starting(&name));
    let named = spec.arms.iter_mut().find(|named| named.name == name);
    let kind = named.as_ref().and_then(|named| named.kind);
    let started = slices.start_next(kind, spec.least_coverage)?;
    if let (Some(named), Some(technique)) = (named, &started.technique) {
        around.report(&Event::Technique {
            arm: &named.name,
            words: technique,
        });
        named.technique.clone_from(technique);
    }
    Ok(started)
}

/// Programs that do not fit would be swapped, or killed.
fn must_fit(programs: usize, each: Bytes) -> Result<(), Error> {
    let source = host::Source::live();
    let machine = host::Snapshot::take(&source).memory.get("MemAvailable");
    let Some(&machine) = machine.known() else {
        return Ok(());
    };
    // They run in the control group of this program, and under its limits.
    let limit = host::room::own(&source).into_result().ok().flatten();
    let available = limit.map_or(machine, |limit| limit.left.min(machine));
    if needed(programs, each) <= available {
        return Ok(());
    }
    Err(Error::Room {
        programs,
        each,
        available,
    })
}
