//! How each arm gets its pages, where the program's file does not show it: found by trial, and reported.

use model::PageKind;

use super::Live;
use crate::around::{Around, Event, Shortage, shortage};
use crate::{Error, Spec};

/// Tries the ways of every arm that has several; the experiment names the one that is taken, and what the pool lacked.
pub(crate) fn choose(around: &dyn Around, live: &mut Live<'_>, spec: &Spec, short: &[Shortage]) -> Result<Spec, Error> {
    let mut spec = spec.clone();
    for (place, named) in spec.arms.iter_mut().enumerate() {
        let Some(kind) = named.kind.filter(|kind| *kind != PageKind::Base) else {
            continue;
        };
        if let Some(choice) = live.choose(place, kind, spec.least_coverage)? {
            around.report(&Event::Technique {
                arm: &named.name,
                words: &choice.words,
            });
            named.technique = choice.words;
        }
        if let Some(why) = shortage(short, Some(kind)) {
            named.shortage = Some(why.to_owned());
            live.arms[place].setup.lacks = Some(why.to_owned());
        }
    }
    Ok(spec)
}
