//! How each arm gets its pages, where the program's file alone does not tell: found by trial, and said.

use compare::live::Live;
use compare::{Error, Spec};
use model::PageKind;

use super::super::pools::Loan;
use crate::ui::Ui;

/// Tries the ways of every arm that has several; the experiment names the one that is taken, and what the pool lacked.
pub(super) fn choose(ui: &Ui, live: &mut Live<'_>, spec: &Spec, loan: &Loan) -> Result<Spec, Error> {
    let mut spec = spec.clone();
    for (place, named) in spec.arms.iter_mut().enumerate() {
        let Some(kind) = named.kind.filter(|kind| *kind != PageKind::Base) else {
            continue;
        };
        if let Some(choice) = live.choose(place, kind, spec.least_coverage)? {
            ui.note(&format!("arm {}: {}", named.name, choice.words));
            named.technique = choice.words;
        }
        if let Some(why) = loan.shortage(kind) {
            named.technique += &format!("; {why}");
            live.arms[place].setup.lacks = Some(why.to_owned());
        }
    }
    Ok(spec)
}
