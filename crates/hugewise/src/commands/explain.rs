//! `hugewise explain`: are one program's huge pages in use, how many, and why not?

use ::doctor::usage::Step;
use host::Snapshot;
use model::Reading;
use programs::Evidence;
use programs::{self, Target};

use super::desk::Desk;
use super::diagnosis::only_accepted;
use super::running;
use crate::cli::typed::{self, Format};
use crate::results::Explain;
use crate::ui::Outcome;

pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Explain) -> anyhow::Result<Outcome> {
    let form = desk.form::<Explain>(Format::Text)?;
    let snapshot = Snapshot::take(&desk.source);
    let targets = programs::targets(&desk.source, &snapshot, &typed.target)?;
    let usage = |target: &Target| {
        let alone = Reading::Known(vec![target.main.clone()]);
        let evidence = Evidence::of(&desk.source, snapshot.clone(), alone);
        let mut usage = ::doctor::usage::usage(&evidence, target);
        only_accepted(&desk.source, &mut usage.findings);
        // Root cannot ask for more, and a capture holds no more.
        if rustix::process::geteuid().is_root() || !desk.source.is_live() {
            usage.next.retain(|step| *step != Step::ExplainAsRoot);
        }
        // What is suggested has to be what a plan takes.
        for step in &mut usage.next {
            if let (Step::Plan { goal }, Some(instead)) = (step, running::instead(&desk.source, target)) {
                *goal = instead;
            }
        }
        usage
    };
    let result = Explain {
        target: typed.target.clone(),
        programs: targets.iter().map(usage).collect(),
    };
    let result = desk.about(&snapshot, Vec::new(), result);
    desk.give(&result, form)
}
