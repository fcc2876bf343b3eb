//! One answer of a rule from those of several checks.

use super::{Answer, Case, Reason};

/// Cases that a rule reports at most, the first ones: twenty processes with one fault have one cause.
const MOST_CASES: usize = 8;

/// What could be read, and the reasons why something could not.
fn sort_out<T>(all: impl IntoIterator<Item = Result<T, Reason>>) -> (Vec<T>, Vec<Reason>) {
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(one) => read.push(one),
            Err(reason) => unread.push(reason),
        }
    }
    (read, unread)
}

/// What could be read, and the first reason why something could not.
pub(crate) fn readable<T>(all: impl IntoIterator<Item = Result<T, Reason>>) -> (Vec<T>, Option<Reason>) {
    let (read, unread) = sort_out(all);
    (read, unread.into_iter().next())
}

/// Checks items one by one. An item that could not be read leaves the rule without an answer only if no other has a finding.
pub(crate) fn each<T>(items: impl IntoIterator<Item = T>, look: impl Fn(T) -> Result<Option<Case>, Reason>) -> Answer {
    let (read, reasons) = sort_out(items.into_iter().map(look));
    let cases: Vec<Case> = read.into_iter().flatten().take(MOST_CASES).collect();
    match &reasons[..] {
        [only] if cases.is_empty() => Err(only.clone()),
        [first, more @ ..] if cases.is_empty() => {
            Err(format!("{}, and {} more like it", first.text, more.len()).into())
        }
        _ => Ok(cases),
    }
}

/// Checks that a rule is made of. One that could not be applied leaves the rule without an answer only if the others find nothing.
pub(crate) fn parts(answers: impl IntoIterator<Item = Answer>) -> Answer {
    let (mut cases, mut unread) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(found) => cases.extend(found),
            Err(mut reason) => {
                let found = reason.elsewhere.as_mut().map(std::mem::take);
                cases.extend(found.into_iter().flatten());
                unread = unread.or(Some(reason));
            }
        }
    }
    match unread {
        Some(reason) if reason.elsewhere.is_some() => {
            let elsewhere = Some(cases);
            Err(Reason { elsewhere, ..reason })
        }
        Some(reason) if cases.is_empty() => Err(reason),
        _ => Ok(cases),
    }
}

/// Checks items any of which may be the one, such as programs with an environment: those that can be read are judged, and the
/// number of the others is reported too.
pub(crate) fn each_that_can<T>(
    items: impl IntoIterator<Item = T>,
    look: impl Fn(T) -> Result<Option<Case>, Reason>,
) -> Answer {
    let (read, reasons) = sort_out(items.into_iter().map(look));
    let (all, is_all_unread) = (read.len() + reasons.len(), read.is_empty());
    let cases = read.into_iter().flatten().take(MOST_CASES).collect();
    let Some(first) = reasons.first() else { return Ok(cases) };
    if is_all_unread {
        return Err(first.clone());
    }
    let text = format!("{} of {all} could not be read, such as {}", reasons.len(), first.text);
    let elsewhere = Some(cases);
    Err(Reason { text, elsewhere })
}
