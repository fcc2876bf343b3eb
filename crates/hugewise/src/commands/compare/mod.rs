//! `hugewise compare`: one program under several page policies, or one process in place.

pub(super) mod around;
#[cfg(test)]
mod design_tests;
mod request;
pub(super) mod store;

use anyhow::bail;
use compare::{Comparison, Error, RunLog, inplace};
use host::Snapshot;
use model::compare::{Compare, Ended, Verdict};

use self::around::Around;
use self::store::Store;
use super::Desk;
use super::stop::Stop;
use crate::cli::typed::{self, FailIf, Format};
use crate::render::compare::events;
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Compare) -> anyhow::Result<Outcome> {
    desk.must_be_live("comparing")?;
    let form = desk.form::<Compare>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    // What the workload writes is gone with this.
    let (request, _workload) = request::of(typed, desk.seed, &desk.ui)?;
    let mut store = Store::of(typed)?;
    let mut log = RunLog::new(&mut store);
    let around = Around::new(&desk.ui);
    let compared = match typed.live {
        Some(pid) => {
            let stop = Stop::on_signals()?;
            let machine = (&desk.source, &snapshot);
            inplace::compare_found(&request, pid, machine, &around, &|| stop.is_asked(), &mut log)
        }
        None => {
            let comparison = Comparison::prepare(&request, &snapshot, &around, &mut log)?;
            let stop = Stop::on_signals()?;
            comparison.carry_out(&around, &|| stop.is_asked(), &mut log)
        }
    };
    let (seed, written) = (log.seed(), log.written());
    let (compared, warnings) = match compared {
        Ok(compared) => compared,
        // Finished runs stay where there is no result.
        Err(error) => {
            store.leave(written, &desk.ui);
            return match error {
                Error::Interrupted => Ok(Outcome::Interrupted),
                Error::Reference { arm, kind, backing } => bail!(events::reference(&arm, kind, &backing)),
                error => Err(error.into()),
            };
        }
    };
    desk.seed = seed;
    let outcome = outcome(typed, &compared);
    let result = desk.about(&snapshot, warnings, compared);
    desk.give(&result, form)?;
    match outcome {
        Outcome::Interrupted => store.leave(written, &desk.ui),
        _ => store.close(),
    }
    Ok(outcome)
}

fn outcome(typed: &typed::Compare, compared: &Compare) -> Outcome {
    let is_bad = |verdict: Verdict| {
        typed.fail_if.iter().any(|fail_if| match fail_if {
            FailIf::Worse => verdict == Verdict::Worse,
            FailIf::NotInEffect => verdict == Verdict::NotInEffect,
            FailIf::Unknown => verdict == Verdict::Unknown,
        })
    };
    if compared.design.ended == Ended::Interrupted {
        Outcome::Interrupted
    } else if compared.verdicts.iter().any(|judged| is_bad(judged.verdict)) {
        Outcome::BadNews
    } else {
        Outcome::Done
    }
}
