//! Slices of programs that are alive at once: started one by one, if memory is enough for all, and anew after some slices of each.

use compare::slices::{Slices, Started};
use compare::{Error, Spec};
use model::{Bytes, PageKind};

use super::super::pools::Loan;
use super::design::{Made, made};
use super::journal::Journal;
use super::room::Room;
use crate::ui::Ui;

/// Starts all programs once, which tells their memory and their ways to their pages, and lets them take turns. Whatever
/// happens, borrowed pages are given back.
pub(super) fn compare(
    ui: &Ui,
    room: &Room<'_>,
    spec: &Spec,
    mut slices: Slices<'_>,
    journal: &mut Journal,
) -> Result<Made, Error> {
    let mut spec = spec.clone();
    let first = match first(ui, &mut spec, &mut slices) {
        Ok(first) => first,
        Err(error) => return made(Err(error)),
    };
    if let Some(each) = first.memory {
        must_fit(slices.programs(), each)?;
    }
    let loan = room.loan(ui, first.memory.unwrap_or_default());
    let compared = all(ui, &mut spec, &mut slices, &loan).and_then(|()| {
        journal.note_ways(slices.setups());
        let done = journal.take_whole_starts(&spec)?;
        compare::run(&spec, done, &mut slices, journal, &mut ui.progress())
    });
    // Pages that are in use cannot be given back.
    drop(slices);
    loan.give_back(ui);
    made(compared)
}

/// The reference tells how much memory a program needs. If it takes that from a pool, it starts anew once it can.
fn first(ui: &Ui, spec: &mut Spec, slices: &mut Slices<'_>) -> Result<Started, Error> {
    let kind = spec.arms.first().and_then(|reference| reference.kind);
    if kind.is_none_or(|kind| kind.pool().is_none()) {
        return start(ui, spec, slices);
    }
    ui.note("a first start tells how many pages of the pool are needed");
    let started = slices.start_next(None, spec.least_coverage)?;
    slices.end();
    Ok(started)
}

fn all(ui: &Ui, spec: &mut Spec, slices: &mut Slices<'_>, loan: &Loan) -> Result<(), Error> {
    let short = |kind: Option<PageKind>| kind.and_then(|kind| loan.shortage(kind));
    for (place, named) in spec.arms.iter().enumerate() {
        if let Some(why) = short(named.kind) {
            slices.lacks(place, why);
        }
    }
    while slices.next().is_some() {
        start(ui, spec, slices)?;
    }
    for named in &mut spec.arms {
        if let Some(why) = short(named.kind) {
            named.technique += &format!("; {why}");
        }
    }
    Ok(())
}

/// The program behind the last arm is the reference's second, which has no name in the result.
fn start(ui: &Ui, spec: &mut Spec, slices: &mut Slices<'_>) -> Result<Started, Error> {
    let name = slices.next().unwrap_or_default().to_owned();
    ui.note(&format!("starting {name}"));
    let named = spec.arms.iter_mut().find(|named| named.name == name);
    let kind = named.as_ref().and_then(|named| named.kind);
    let started = slices.start_next(kind, spec.least_coverage)?;
    if let (Some(named), Some(technique)) = (named, &started.technique) {
        ui.note(&format!("arm {}: {technique}", named.name));
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
    let available = host::room::own(&source)
        .known()
        .map_or(machine, |room| room.within(machine));
    let needed = Bytes(each.0.saturating_mul(programs.saturating_sub(1) as u64));
    if needed <= available {
        return Ok(());
    }
    Err(Error::Room {
        programs,
        each,
        available,
    })
}
