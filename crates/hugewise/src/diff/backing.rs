//! Which programs have other page kinds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{Backing, Bytes, PageKind};

use crate::results::ProcessList;
use crate::results::diff::BackingChange;
use crate::results::ps::{ProcessRow, Totals};

/// Shares on huge pages that lie closer together are no change: memory comes and goes while a machine runs.
const LEAST_SHARE: f64 = 0.05;
/// A program with less memory is not worth a line.
const LEAST_MEMORY: Bytes = Bytes::mib(16);

/// What differs, the sum of all first, then the largest change of memory on huge pages.
pub(super) fn changes(a: &ProcessList, b: &ProcessList) -> Vec<BackingChange> {
    let all = |list: &ProcessList| Some(backed(list.processes.iter()));
    let is_whole = [a, b]
        .into_iter()
        .all(|list| list.processes.len() as u64 == list.totals.processes);
    let (all_a, all_b) = match is_whole {
        true => (all(a), all(b)),
        false => (Some(a.totals.backing.clone()), Some(b.totals.backing.clone())),
    };
    let all = BackingChange {
        name: None,
        a: all_a,
        b: all_b,
    };
    // A program that is not known on one side, and a sum that lacks some, are no change.
    let all = Some(all).filter(|_| [a, b].into_iter().all(|list| list.unseen().is_none()));
    let ((a, is_a), (b, is_b)) = ((by_name(a), may_have(a)), (by_name(b), may_have(b)));
    let is_known = |name: &&String| (a.contains_key(*name) || !is_a(name)) && (b.contains_key(*name) || !is_b(name));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).filter(is_known).collect();
    let change = |name: &String| BackingChange {
        name: Some(name.clone()),
        a: a.get(name).cloned(),
        b: b.get(name).cloned(),
    };
    let mut programs: Vec<BackingChange> = names.into_iter().map(change).collect();
    programs.sort_by_key(|change| Reverse(large(&change.a).abs_diff(large(&change.b))));
    all.into_iter().chain(programs).filter(is_change).collect()
}

fn large(backing: &Option<Backing>) -> u64 {
    backing.as_ref().map_or(0, |backing| backing.large().0)
}

/// May a program be among the processes that could not be read? One whose name could not be read may be any.
fn may_have(list: &ProcessList) -> impl Fn(&str) -> bool {
    let unread = list.processes.iter().filter(|row| row.pages.backing.unread().is_some());
    let names: Vec<&str> = unread.map(|row| row.pages.name.as_str()).collect();
    let others = !list.unseen.is_none() || names.contains(&"") || list.totals.unread > names.len() as u64;
    move |name| others || names.contains(&name)
}

/// Processes of one name have no other identity that outlives them.
fn by_name(list: &ProcessList) -> BTreeMap<String, Backing> {
    let mut names: BTreeMap<String, Vec<&ProcessRow>> = BTreeMap::new();
    for row in list.processes.iter().filter(|row| row.pages.backing.known().is_some()) {
        names.entry(row.pages.name.clone()).or_default().push(row);
    }
    let unread = list.processes.iter().filter(|row| row.pages.backing.unread().is_some());
    unread.for_each(|row| drop(names.remove(&row.pages.name)));
    let backed = |(name, rows): (String, Vec<&ProcessRow>)| (name, backed(rows.into_iter()));
    names.into_iter().map(backed).collect()
}

/// What backs these processes, each segment that they share once. One that draws from a pool counts whole: its pages are reserved
/// for it, and a server that was started anew has lost none of them.
fn backed<'a>(rows: impl Iterator<Item = &'a ProcessRow> + Clone) -> Backing {
    let mut backing = Totals::of(rows.clone()).backing;
    let mut pools: BTreeMap<&str, (Bytes, Bytes, Bytes)> = BTreeMap::new();
    for segment in rows.flat_map(|row| &row.pages.segments) {
        let Some(page) = segment.page else { continue };
        let (_, size, touched) = pools.entry(&segment.id).or_insert((page, Bytes(0), Bytes(0)));
        (*size, *touched) = ((*size).max(segment.size), (*touched).max(segment.resident));
    }
    for (page, size, touched) in pools.into_values() {
        backing.add(PageKind::Hugetlb(page), Bytes(size.0.saturating_sub(touched.0)));
    }
    backing
}

fn is_change(change: &BackingChange) -> bool {
    let most = [&change.a, &change.b].into_iter().flatten().map(Backing::total).max();
    let is_worth = most.is_some_and(|most| most >= LEAST_MEMORY);
    match change.coverage() {
        Some((a, b)) => is_worth && (a - b).abs() >= LEAST_SHARE,
        None => is_worth,
    }
}
