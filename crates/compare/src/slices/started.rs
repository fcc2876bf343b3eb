//! Slices of programs that are alive at once: started one by one, if memory is enough for all, and anew after some slices of each.

use model::Bytes;

use super::{Slices, Started};
use crate::around::{Around, Event, Shortage, shortage};
use crate::live::Arm;
use crate::room::Room;
use crate::runlog::RunLog;
use crate::{Error, Outcome, Spec, experiment};

/// Starts all programs once, which shows their memory and how they get their pages, and lets them take turns. Whatever
/// happens, borrowed pages are given back.
pub(crate) fn compare(
    around: &dyn Around,
    room: &Room<'_>,
    spec: &Spec,
    mut slices: Slices<'_>,
    log: &mut RunLog<'_>,
) -> Result<Outcome, Error> {
    let first = first(around, spec, &mut slices)?;
    if let Some(each) = first.memory {
        must_fit(slices.arms.len(), each)?;
    }
    let short = room.borrow(around, first.memory.unwrap_or_default());
    let compared = all(around, spec, &mut slices, &short).and_then(|()| {
        log.note_ways(slices.arms.iter().map(|arm| &arm.setup));
        let arms = slices.arms.iter().take(spec.arms.len()).map(Arm::named);
        let spec = Spec {
            arms: arms.collect(),
            ..spec.clone()
        };
        let done = log.take_whole_starts(&spec)?;
        experiment::run(&spec, done, &mut slices, log, around)
    });
    // Pages that are in use cannot be given back.
    drop(slices);
    around.give_back();
    compared
}

/// The reference shows how much memory a program needs. If it takes that from a pool, it starts anew once it can.
fn first(around: &dyn Around, spec: &Spec, slices: &mut Slices<'_>) -> Result<Started, Error> {
    let kind = spec.arms.first().and_then(|reference| reference.kind);
    if kind.is_none_or(|kind| kind.pool().is_none()) {
        return start(around, spec, slices);
    }
    around.report(&Event::Needed { is_start: true });
    let started = slices.start_next(None, spec.least_coverage)?;
    slices.end();
    Ok(started)
}

fn all(around: &dyn Around, spec: &Spec, slices: &mut Slices<'_>, short: &[Shortage]) -> Result<(), Error> {
    for arm in &mut slices.arms {
        let lacks = shortage(short, arm.kind).map(str::to_owned);
        for setup in [&mut arm.setup].into_iter().chain(&mut arm.others) {
            setup.lacks.clone_from(&lacks);
        }
    }
    while slices.next().is_some() {
        start(around, spec, slices)?;
    }
    Ok(())
}

/// The program behind the last arm is the reference's second, which has no name in the result.
fn start(around: &dyn Around, spec: &Spec, slices: &mut Slices<'_>) -> Result<Started, Error> {
    let name = slices.next().unwrap_or_default().to_owned();
    around.report(&Event::Starting(&name));
    let named = spec.arms.iter().find(|named| named.name == name);
    let started = slices.start_next(named.and_then(|named| named.kind), spec.least_coverage)?;
    if let Some(words) = &started.technique {
        around.report(&Event::Technique { arm: &name, words });
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
    let available = host::room::own(&source)
        .known()
        .map_or(machine, |room| room.within(machine));
    let needed = Bytes(each.0.saturating_mul(programs.saturating_sub(1) as u64));
    if needed <= available {
        return Ok(());
    }
    let why = format!(
        "{programs} programs that are alive at once, of {each} each, need {needed} more than the first, and {available} can be had \
         (--design runs starts one at a time; or fewer arms, or a smaller program)"
    );
    Err(Error::asked("--design slices", why))
}
