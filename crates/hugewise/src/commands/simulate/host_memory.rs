//! `hugewise simulate host`: memory of a host that a file describes, a publication, or "what if" on a captured host.

use anyhow::{Context, anyhow};
use host::{Input, Snapshot, Source};
use model::Warning;
use studies::host_memory::advice::{Asked, advise};
use studies::host_memory::preset::preset;
use studies::host_memory::{HostMemory, Scenario, file, simulate};

use super::captured;
use crate::cli::args;
use crate::commands::session::Session;
use crate::ui::Outcome;

pub(in crate::commands) fn run(session: &mut Session<'_>, args: &args::HostMemory) -> anyhow::Result<Outcome> {
    let form = session.form::<HostMemory>()?;
    let mut warnings = Vec::new();
    let here = || Snapshot::take(&session.source);
    let (snapshot, result) = match (&args.capture, args.preset) {
        (Some(path), _) => {
            let named = || format!("--capture {}", path.display());
            let source = Source::open(path).with_context(named)?;
            let snapshot = Snapshot::take(&source);
            let captured = captured::host(&source, &snapshot, &mut warnings).with_context(named)?;
            let asked = Asked {
                small: args.small_pages.clone(),
                giant: args.giant_pages.clone(),
                more: args.more,
                overcommit: args.overcommit,
                draws: args.draws,
                seed: session.seed,
            };
            let result = advise(&captured, &asked).map_err(|error| anyhow!("{}: {error}", named()))?;
            (snapshot, result)
        }
        (None, Some(which)) => {
            let result = preset(which, session.seed).map_err(|error| anyhow!("--preset {}: {error}", which.name()))?;
            (here(), result)
        }
        (None, None) => (here(), of_file(session, args, &mut warnings)?),
    };
    warnings.extend(overcommitted(&result));
    session.give_about(&snapshot, warnings, result, form)
}

fn of_file(session: &Session<'_>, args: &args::HostMemory, warnings: &mut Vec<Warning>) -> anyhow::Result<HostMemory> {
    let path = args.file.as_ref();
    let path = path.context("name a file, a publication with --preset, or a captured host with --capture")?;
    let name = path.display().to_string();
    let text = Input::Configuration.text(path).with_context(|| name.clone())?;
    let scenario = file::parse(&name, &text, &args.policy, session.seed)?;
    warnings.extend(unshared(&scenario));
    let result = simulate(&scenario).map_err(|error| anyhow!("{name}: {error}"))?;
    Ok(HostMemory { input: name, ..result })
}

/// Equal pages of several machines that ESXi 6 does not share.
fn unshared(scenario: &Scenario) -> Option<Warning> {
    let content = scenario.unshared()?;
    let text = format!(
        "ESXi 6 and later share no pages between virtual machines with different salts, and each has its own by default: those with the content \
         `{content}` share none (write salt = \"...\" to each of them, as sched.mem.pshare.salt does)"
    );
    Some(Warning::new("salts-differ", text))
}

/// Where machines waited, what they wanted is not what they got.
fn overcommitted(result: &HostMemory) -> Option<Warning> {
    let waited = result.outcomes.iter().filter(|outcome| outcome.totals.waited > 0);
    let names: Vec<&str> = waited.map(|outcome| outcome.policy.name()).collect();
    (!names.is_empty()).then(|| {
        let text = format!(
            "virtual machines had to wait for memory under {}: they did not touch all that they wanted",
            names.join(", ")
        );
        Warning::new("waited-for-memory", text)
    })
}
