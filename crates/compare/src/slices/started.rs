//! Slices of programs that are alive at once: started one by one, if memory is enough for all, and anew after some slices of each.

use model::{Bytes, PageKind};

use super::Slices;
use crate::around::{Around, Event};
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
    let memory = needed(around, spec, &mut slices)?;
    if let Some(each) = memory {
        must_fit(slices.arms.len(), each)?;
    }
    let short = room.borrow(around, memory.unwrap_or_default());
    slices.arms.iter_mut().for_each(|arm| arm.lack(&short));
    let compared = slices.start_all(spec.least_coverage, around).and_then(|()| {
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

/// The memory that a program needs, as the reference shows. If it takes that from a pool, it starts anew once it can.
fn needed(around: &dyn Around, spec: &Spec, slices: &mut Slices<'_>) -> Result<Option<Bytes>, Error> {
    let reference = &slices.arms[0];
    if reference.kind.and_then(PageKind::pool).is_none() {
        return slices.start_next(spec.least_coverage, around);
    }
    around.report(&Event::Needed { is_start: true });
    let (_, settled) = slices.start(reference)?;
    Ok(settled.memory())
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
    let needed = Bytes(each.0.saturating_mul(programs.saturating_sub(1) as u64));
    if needed <= available {
        return Ok(());
    }
    let why = format!(
        "{programs} programs that are alive at once, of {each} each, need {needed} more than the first, and {available} can be had \
         (--design runs starts one at a time; or fewer arms, or a smaller program)"
    );
    Err(Error::Room(why))
}
