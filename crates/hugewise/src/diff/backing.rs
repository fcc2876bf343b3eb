//! Which programs have other page kinds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Backing, Bytes, Reading};

use crate::results::ProcessList;
use crate::results::diff::BackingChange;

/// Shares on huge pages that lie closer together are no change: memory comes and goes while a machine runs.
const LEAST_SHARE: f64 = 0.05;
/// A program with less memory is not worth a line.
const LEAST_MEMORY: Bytes = Bytes::mib(16);

/// What differs, the sum of all first, then the largest change of memory on huge pages.
pub(super) fn changes(a: &ProcessList, b: &ProcessList) -> Vec<BackingChange> {
    let all = BackingChange {
        name: None,
        a: Some(a.totals.backing.clone()),
        b: Some(b.totals.backing.clone()),
    };
    let (a, b) = (by_name(a), by_name(b));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let change = |name: &String| BackingChange {
        name: Some(name.clone()),
        a: a.get(name).cloned(),
        b: b.get(name).cloned(),
    };
    let mut programs: Vec<BackingChange> = names.into_iter().map(change).collect();
    programs.sort_by_key(|change| Reverse(large(&change.a).abs_diff(large(&change.b))));
    std::iter::once(all).chain(programs).filter(is_change).collect()
}

fn large(backing: &Option<Backing>) -> u64 {
    backing.as_ref().map_or(0, |backing| backing.large().0)
}

/// Processes of one name have no other identity that outlives them.
fn by_name(list: &ProcessList) -> BTreeMap<String, Backing> {
    let mut names: BTreeMap<String, Backing> = BTreeMap::new();
    for row in &list.processes {
        if let Reading::Known(backing) = &row.pages.backing {
            names.entry(row.pages.name.clone()).or_default().extend(backing.iter());
        }
    }
    names
}

fn is_change(change: &BackingChange) -> bool {
    let most = [&change.a, &change.b].into_iter().flatten().map(Backing::total).max();
    let is_worth = most.is_some_and(|most| most >= LEAST_MEMORY);
    match change.coverage() {
        Some((a, b)) => is_worth && (a - b).abs() >= LEAST_SHARE,
        None => is_worth,
    }
}
