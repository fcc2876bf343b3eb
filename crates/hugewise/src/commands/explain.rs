//! `hugewise explain`: are one program's huge pages in use, how many, and why not?

mod image;

use ::doctor::explain::Step;
use host::Snapshot;
use model::{Reading, Warning};
use programs::Evidence;
use programs::{self, Target};

use super::diagnosis::only_accepted;
use super::plan::Planner;
use super::running;
use super::session::Session;
use crate::cli::args;
use crate::results::Explain;
use crate::ui::Outcome;

pub(super) fn run(session: &mut Session<'_>, args: &args::Explain) -> anyhow::Result<Outcome> {
    match (&args.image, &args.target) {
        (Some(path), _) => image::run(session, path, args.page_size),
        (None, target) => of_target(session, target.as_deref().unwrap_or_default()),
    }
}

fn of_target(session: &mut Session<'_>, word: &str) -> anyhow::Result<Outcome> {
    let form = session.form::<Explain>()?;
    let snapshot = Snapshot::take(&session.source);
    let targets = programs::targets(&session.source, &snapshot, word).map_err(running::with_unseen)?;
    let machine = Evidence::of(&session.source, snapshot.clone(), Reading::Known(Vec::new()));
    let planner = Planner::new(&session.source);
    let usage = |target: &Target| {
        let others = target.others.iter().filter(|other| other.details.is_some());
        let evidence = Evidence {
            programs: Reading::Known(std::iter::once(&target.main).chain(others).cloned().collect()),
            hidden: None,
            ..machine.clone()
        };
        let mut usage = ::doctor::explain::usage(&evidence, target);
        only_accepted(&planner, &mut usage.findings);
        // Root cannot ask for more, and a capture holds no more.
        if rustix::process::geteuid().is_root() || !session.source.is_live() {
            usage.next.retain(|step| *step != Step::ExplainAsRoot);
        }
        // What is suggested has to be what a plan takes.
        let mut is_refused = false;
        for step in &mut usage.next {
            if let Step::Plan { goal } = step {
                *goal = running::instead(&session.source, target).unwrap_or_else(|| goal.clone());
                is_refused |= !planner.accepts(goal);
            }
        }
        // Without its pages the other steps lead nowhere, but for those without a restart.
        if is_refused {
            usage
                .next
                .retain(|step| matches!(step, Step::CompareLive { .. } | Step::Collapse));
        }
        usage
    };
    let result = Explain {
        target: word.to_owned(),
        programs: targets.iter().map(usage).collect(),
    };
    session.give_about(&snapshot, newer(&snapshot).into_iter().collect(), result, form)
}

/// Reasons are those of kernels that are known here.
fn newer(snapshot: &Snapshot) -> Option<Warning> {
    let ([major, minor], [known, known_minor]) = snapshot.kernel.beyond_known()?;
    let text = format!(
        "Linux {major}.{minor} is newer than the releases that this version of hugewise knows (up to {known}.{known_minor}): reasons \
         about THP and mapped files may have changed; look for a newer hugewise"
    );
    Some(Warning::new("kernel-newer", text))
}
