//! `hugewise explain`: are one program's huge pages in use, how many, and why not?

use ::doctor::usage::Step;
use host::programs::{self, Target};
use host::{Evidence, Snapshot};
use model::Reading;

use super::{Desk, running};
use crate::cli::typed::{self, Format};
use crate::results::Explain;
use crate::ui::Outcome;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Explain) -> anyhow::Result<Outcome> {
    let form = desk.form::<Explain>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let targets = programs::targets(&desk.source, &snapshot, &typed.target)?;
    let usage = |target: &Target| {
        let alone = Reading::Known(vec![target.main.clone()]);
        let evidence = Evidence::of(&desk.source, snapshot.clone(), alone);
        let mut usage = ::doctor::usage::usage(&evidence, target);
        let plans = usage.next.iter_mut().filter_map(|step| match step {
            Step::Plan { goal } => Some(goal),
            _ => None,
        });
        // A plan takes what is suggested.
        plans.for_each(|goal| *goal = running::instead(&desk.source, target).unwrap_or_else(|| goal.clone()));
        usage
    };
    let result = Explain {
        target: typed.target.clone(),
        programs: targets.iter().map(usage).collect(),
    };
    let result = desk.about(&snapshot, Vec::new(), result);
    desk.give(&result, form)
}
