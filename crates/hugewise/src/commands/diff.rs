//! `hugewise diff`: how two results or two captured machines differ.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use host::{Input, Source, SourceError, Tree};
use model::compare::Compare;
use model::latency::Latency;
use model::{Envelope, Warning};
use programs::Evidence;

use super::diagnosis::diagnose;
use super::ps;
use super::report::{parsed, schema_of};
use super::session::Session;
use crate::cli::args::{self, DiffFailIf};
use crate::cli::values::word;
use crate::diff::{Material, Parts, diff, machine};
use crate::render::find::diff::processes_in_words;
use crate::results::diff::{Change, Side, UnseenProcesses};
use crate::results::{Checkup, Diff, Doctor, ProcessList};
use crate::show::{Shape, schema_name};
use crate::ui::Outcome;

/// What can be compared, for messages.
const KINDS: &str = "latency, checkup, compare, doctor and ps";

pub(super) fn run(session: &mut Session<'_>, args: &args::Diff) -> anyhow::Result<Outcome> {
    if session.global.root.is_some() {
        bail!("--root: `diff` reads the two machines or results that it is given (leave --root away)");
    }
    let form = session.form::<Diff>()?;
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    must_be_alike(&a, &b)?;
    let data = diff(&a, &b, args.allow);
    let warnings = [&a, &b].into_iter().flat_map(warnings).collect();
    let result = session.envelope(machine(&a.side.machine, &b.side.machine), warnings, data);
    let is_bad = |fail_if: &DiffFailIf| is_bad(&result.data, *fail_if);
    let is_unsure = |fail_if: &&DiffFailIf| !is_bad(fail_if) && !is_there(&result.data, **fail_if);
    let lacking = args.fail_if.iter().find(is_unsure);
    let outcome = session.give(&result, form)?;
    if let Some(fail_if) = lacking {
        bail!("--fail-if {}: {}", word(fail_if), lacks(&result.data, *fail_if));
    }
    Ok(outcome.or_bad_news(args.fail_if.iter().any(is_bad)))
}

/// Is there what a gate is about? Without it nothing was shown to be as good as before.
fn is_there(diff: &Diff, fail_if: DiffFailIf) -> bool {
    match fail_if {
        DiffFailIf::Worse | DiffFailIf::Inconclusive => diff.points.is_some(),
        DiffFailIf::Findings => diff.findings.is_some(),
        DiffFailIf::Backing => diff.unseen.as_ref().is_some_and(UnseenProcesses::is_none),
        DiffFailIf::Settings => true,
    }
}

fn lacks(diff: &Diff, fail_if: DiffFailIf) -> String {
    let lacking = |what: &str| format!("one of the two has no {what}, so nothing was compared");
    match fail_if {
        DiffFailIf::Worse | DiffFailIf::Inconclusive => lacking("measured points"),
        DiffFailIf::Findings => lacking("findings"),
        DiffFailIf::Backing => match &diff.unseen {
            Some(unseen) if diff.backing.is_some() => {
                format!("not compared: {}", processes_in_words(unseen).join(", "))
            }
            _ => "of one of the two no processes are known, so nothing was compared".to_owned(),
        },
        DiffFailIf::Settings => "settings are always compared".to_owned(),
    }
}

fn must_be_alike(a: &Material, b: &Material) -> anyhow::Result<()> {
    let (left, right) = (&a.side, &b.side);
    if left.what != right.what {
        let [b, a] = [right, left].map(|side| with_article(&side.what));
        bail!(
            "{}: this is {b}, and {} is {a}: `diff` compares two of one kind (make both with the same command)",
            right.file,
            left.file
        );
    }
    let filter = |material: &Material| material.parts.processes.as_ref().and_then(|list| list.filter.clone());
    if filter(a) != filter(b) {
        let shown = |material| filter(material).unwrap_or_else(|| "all processes".to_owned());
        let (b, a) = (shown(b), shown(a));
        bail!(
            "{}: this lists {b}, and {} lists {a}: give `ps` the same options for both",
            right.file,
            left.file
        );
    }
    Ok(())
}

fn with_article(what: &str) -> String {
    match what {
        "machine" => "a captured machine".to_owned(),
        name => format!("a result of `{name}`"),
    }
}

/// The warnings of one side, with its file's name.
fn warnings(side: &Material) -> Vec<Warning> {
    let file = &side.side.file;
    let named = |warning: &Warning| Warning::new(&warning.code, format!("{file}: {}", warning.text));
    side.warnings.iter().map(named).collect()
}

fn is_bad(diff: &Diff, fail_if: DiffFailIf) -> bool {
    let has = |verdict| diff.points.as_ref().is_some_and(|points| points.count(verdict) > 0);
    match fail_if {
        DiffFailIf::Worse => has(Change::Worse),
        DiffFailIf::Inconclusive => has(Change::Inconclusive),
        DiffFailIf::Findings => diff.findings.iter().flatten().any(|change| change.is_new()),
        DiffFailIf::Backing => {
            let changes = diff.backing.iter().flatten();
            let mut shares = changes.filter_map(|change| change.coverage());
            shares.any(|(a, b)| b < a)
        }
        DiffFailIf::Settings => !diff.settings.is_empty(),
    }
}

/// A result or a captured machine, by what is in it.
fn read(path: &Path) -> anyhow::Result<Material> {
    let name = path.display().to_string();
    if path.is_dir() {
        let source = Source::open(path).map_err(|why| match why {
            SourceError::NotAMachine { .. } => {
                anyhow!("{name}: it is a directory, expected a result (JSON), a FILE.tree, or a directory with proc/ or sys/ in it")
            }
            other => other.into(),
        })?;
        return Ok(captured(&name, &source));
    }
    let bytes = Input::Result.read(path).with_context(|| format!("diff {name}"))?;
    if bytes.trim_ascii_start().starts_with(b"{") {
        return result(path, &bytes);
    }
    let tree = Tree::parse(&name, &bytes).with_context(|| {
        format!("{name}: neither a result of hugewise (JSON) nor a captured machine (from `hugewise snapshot`)")
    })?;
    Ok(captured(&name, &Source::from_tree(&name, tree)))
}

fn captured(name: &str, source: &Source) -> Material {
    // What this program did to this machine has nothing to do with a captured one.
    let evidence = Evidence::gather(source);
    Material {
        side: Side {
            file: name.to_owned(),
            what: "machine".to_owned(),
            machine: evidence.snapshot.machine(),
            command: Vec::new(),
            started: None,
        },
        warnings: Vec::new(),
        parts: Parts {
            doctor: Some(diagnose(source, &evidence)),
            processes: ps::list(source, &evidence.snapshot, None).ok(),
            snapshot: Some(evidence.snapshot),
            ..Parts::default()
        },
    }
}

fn result(path: &Path, bytes: &[u8]) -> anyhow::Result<Material> {
    let schema = schema_of(path, bytes)?;
    if schema == schema_name::<Latency>() {
        material(path, bytes, |parts, latency| parts.latency = Some(latency))
    } else if schema == schema_name::<Checkup>() {
        material(path, bytes, |parts, checkup: Checkup| *parts = checkup.into())
    } else if schema == schema_name::<Compare>() {
        material(path, bytes, |parts, compare| parts.compare = Some(compare))
    } else if schema == schema_name::<Doctor>() {
        material(path, bytes, |parts, doctor| parts.doctor = Some(doctor))
    } else if schema == schema_name::<ProcessList>() {
        material(path, bytes, |parts, list| parts.processes = Some(list))
    } else {
        bail!(
            "{}: `{schema}` cannot be compared: this version compares results of {KINDS} of its own format, and captured \
             machines (make both results with this version)",
            path.display()
        )
    }
}

fn material<T: Shape>(path: &Path, bytes: &[u8], fill: impl FnOnce(&mut Parts, T)) -> anyhow::Result<Material> {
    let result: Envelope<T> = parsed(path, bytes)?;
    let mut parts = Parts::default();
    fill(&mut parts, result.data);
    Ok(Material {
        side: Side {
            file: path.display().to_string(),
            what: T::NAME.to_owned(),
            machine: result.machine,
            command: result.command,
            started: Some(result.started),
        },
        warnings: result.warnings,
        parts,
    })
}
