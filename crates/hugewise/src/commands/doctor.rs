//! `hugewise doctor`: what is wrong with a machine, and how to fix it.

use std::cmp::Reverse;
use std::path::PathBuf;

use anyhow::{Context, bail};
use host::config::Vmware;
use host::{Evidence, Source};
use model::findings::Severity;
use tune::judge::{self, Rule};

use super::Desk;
use crate::cli::typed::{self, Format};
use crate::render::doctor::explanation;
use crate::results::Doctor;
use crate::ui::Outcome;

/// Settings of an ESX host that rules know.
const ESX: [&str; 2] = ["Mem.AllocGuestLargePage", "LPage.LPageAlwaysTryForNPT"];
/// Rules named where one is asked for that does not exist.
const NEAR: usize = 5;

/// Runs the command.
pub(super) fn run(desk: &mut Desk<'_>, typed: &typed::Doctor) -> anyhow::Result<Outcome> {
    if let Some(id) = &typed.explain {
        return explain(desk, id);
    }
    let form = desk.form::<Doctor>(Format::Text)?;
    let evidence = with_files(Evidence::gather(&desk.source), &typed.file)?;
    let result = desk.about(&evidence.snapshot, Vec::new(), Doctor::of(&evidence));
    desk.give(&result, form)?;
    outcome(&result.data, typed.fail_on, &desk.source)
}

/// With files that describe a machine elsewhere.
fn with_files(mut evidence: Evidence, files: &[PathBuf]) -> anyhow::Result<Evidence> {
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read(file).with_context(|| format!("--file {name}: the file cannot be read"))?;
        let text = String::from_utf8_lossy(&text);
        if !is_vmware(&Vmware::parse(&name, &text)) {
            bail!(
                "--file {name}: neither a .vmx file (it has no memSize) nor ESX settings that a rule knows ({})",
                ESX.join(", ")
            );
        }
        evidence = evidence.with_vmware(&name, &text);
    }
    Ok(evidence)
}

/// A file of another kind would be found well, because it says nothing.
fn is_vmware(file: &Vmware) -> bool {
    file.is_virtual_machine() || ESX.iter().any(|name| file.get(name).is_some())
}

fn outcome(doctor: &Doctor, fail_on: Severity, source: &Source) -> anyhow::Result<Outcome> {
    if doctor.is_blind() {
        let hint = if source.is_live() { "; try as root" } else { "" };
        bail!(
            "{}: nothing that a rule needs could be read (the reasons are in the result{hint})",
            source.name()
        );
    }
    Ok(if doctor.diagnosis.reaches(fail_on) {
        Outcome::BadNews
    } else {
        Outcome::Done
    })
}

fn explain(desk: &mut Desk<'_>, id: &str) -> anyhow::Result<Outcome> {
    desk.global.form(Format::Text, &[Format::Text])?;
    let Some(rule) = judge::explain(id) else {
        bail!("--explain {id}: there is no such rule (the nearest are {})", near(id));
    };
    let text = explanation(rule, desk.ui.look());
    desk.ui.result(text.as_bytes())?;
    Ok(Outcome::Done)
}

/// The rules whose id or name is most like `typed`.
fn near(typed: &str) -> String {
    let mut rules: Vec<&Rule> = judge::rules().collect();
    rules.sort_by_key(|rule| Reverse(likeness(rule, typed)));
    let names = rules.iter().take(NEAR);
    let names = names.map(|rule| format!("{} {}", rule.id, rule.name));
    names.collect::<Vec<_>>().join(", ")
}

/// In thousandths, so that it has an order.
fn likeness(rule: &Rule, typed: &str) -> u32 {
    let typed = typed.to_lowercase();
    let like = |known: &str| strsim::normalized_damerau_levenshtein(&known.to_lowercase(), &typed);
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
