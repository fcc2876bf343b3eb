//! `hugewise doctor`: what is wrong with a machine, and how to fix it.

mod own;

use std::cmp::Reverse;
use std::path::Path;

use anyhow::{Context, bail};
use doctor::Rule;
use host::{Input, Snapshot, Source};
use model::findings::Severity;
use programs::Evidence;
use programs::config::Given;
use programs::config::given::{FileKind, is_log_name};

use super::diagnosis::diagnose;
use super::session::Session;
use crate::cli::args::{self, Format};
use crate::render::find::doctor::{explanation, rules};
use crate::results::{Doctor, Taken};
use crate::show::form;
use crate::ui::Outcome;
use draw::{Look, joined};

pub(super) use own::evidence;

/// Rules named where one is asked for that does not exist.
const NEAR: usize = 5;

pub(super) fn run(session: &mut Session<'_>, args: &args::Doctor) -> anyhow::Result<Outcome> {
    if let Some(id) = &args.explain {
        return explain(session, id);
    }
    if args.rules {
        return give_text(session, rules);
    }
    let form = session.form::<Doctor>()?;
    // Files alone are judged alone: what runs here has nothing to do with them unless --root says so.
    let alone = !args.file.is_empty() && session.global.root.is_none();
    let Read { given, files, unread } = given(args)?;
    if let Some(error) = unread.first().filter(|_| alone && files.is_empty()) {
        bail!("--file {error}");
    }
    let not_read = unread.iter().cloned().chain(given.not_read()).collect();
    let evidence = match alone {
        true => Evidence::of_files(given),
        false => evidence(session, Snapshot::take(&session.source)).with_files(given),
    };
    let judged = match alone {
        true => Doctor::of(&evidence),
        false => diagnose(&session.source, &evidence),
    };
    let diagnosis = Doctor {
        files,
        not_read,
        files_unread: unread.len(),
        is_verbose: args.verbose,
        ..judged
    };
    let result = session.about(&evidence.snapshot, Vec::new(), diagnosis);
    session.give(&result, form)?;
    // A file that was not read is an answer that is missing, whatever the others show.
    match unread.first() {
        Some(error) => bail!("--file {error}"),
        None => outcome(&result.data, args.fail_on, &session.source),
    }
}

/// The files together.
#[derive(Default)]
struct Read {
    given: Given,
    /// What each was taken for.
    files: Vec<Taken>,
    /// Why each of the others could not be taken, with its name.
    unread: Vec<String>,
}

/// One of unknown kind, or of the wrong form, leaves the others as they are.
fn given(args: &args::Doctor) -> anyhow::Result<Read> {
    let mut read = Read::default();
    for file in &args.file {
        let name = file.display().to_string();
        let bytes = input(file, args.kind).read(file);
        let bytes = bytes.with_context(|| format!("--file {name}"))?;
        let mut with = read.given.clone();
        match with.add(&name, &bytes, args.kind) {
            Ok(kind) => {
                let kind = kind.to_string();
                read.given = with;
                read.files.push(Taken { name, kind });
            }
            Err(error) => read.unread.push(error.to_string()),
        }
    }
    Ok(read)
}

/// Logs may be longer than configuration.
fn input(file: &Path, kind: Option<FileKind>) -> Input {
    let is_log = kind.map_or_else(|| is_log_name(&file.to_string_lossy()), |kind| kind == FileKind::Log);
    if is_log { Input::Log } else { Input::Configuration }
}

fn outcome(doctor: &Doctor, fail_on: Severity, source: &Source) -> anyhow::Result<Outcome> {
    if doctor.is_blind() {
        let hint = if source.is_live() { "; try with sudo" } else { "" };
        bail!(
            "{}: nothing that a rule needs could be read (the reasons are in the result{hint})",
            source.name()
        );
    }
    Ok(Outcome::Done.or_bad_news(doctor.diagnosis.reaches(fail_on)))
}

fn explain(session: &mut Session<'_>, id: &str) -> anyhow::Result<Outcome> {
    let Some(rule) = doctor::explain(id) else {
        bail!("--explain {id}: there is no such rule (the nearest are {})", near(id));
    };
    give_text(session, |look| explanation(rule, look))
}

/// Gives what has the form of text only.
fn give_text(session: &mut Session<'_>, text: impl FnOnce(Look) -> String) -> anyhow::Result<Outcome> {
    form(session.global, Format::Text, &[Format::Text])?;
    let text = text(session.ui.look());
    session.ui.result(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// The rules whose id or name is most like `typed`.
fn near(args: &str) -> String {
    let mut rules: Vec<&Rule> = doctor::rules().collect();
    rules.sort_by_key(|rule| Reverse(likeness(rule, args)));
    let names = rules.iter().take(NEAR);
    joined(names.map(|rule| format!("{} {}", rule.id, rule.name)), ", ")
}

/// In thousandths, so that it has an order.
fn likeness(rule: &Rule, args: &str) -> u32 {
    let args = args.to_lowercase();
    let like = |known: &str| strsim::normalized_damerau_levenshtein(&known.to_lowercase(), &args);
    (like(rule.id).max(like(rule.name)) * 1000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn a_slip_of_the_pen_still_finds_the_rule() {
        assert!(
            near("pool-idel").starts_with("A02 pool-idle, "),
            "{}",
            near("pool-idel")
        );
        assert!(near("a002").contains("A02 pool-idle"), "{}", near("a002"));
        assert_eq!(near("").split(", ").count(), 5);
    }
}
