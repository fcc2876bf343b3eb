//! Cells about memory and page kinds, for tables of processes, groups and VMs.

use std::collections::BTreeSet;

use host::processes::Coverage;
use model::{Backing, Bytes, PageKind};

use draw::{Field, columns, joined, number, or, or_empty};

/// The share backed by huge pages in percent; empty if no resident memory is known.
pub(crate) fn share(backing: Option<&Backing>) -> String {
    let share = backing.and_then(Backing::coverage);
    or_empty(share.map(|share| number(share * 100.0)))
}

/// `81.2 %`.
pub(crate) fn percent(backing: &Backing) -> String {
    format!("{} %", number(backing.coverage().unwrap_or(0.0) * 100.0))
}

/// `269M, 80.2 % on huge pages: private 3.1M (0 %) + files 266M (81.2 %)`.
pub(crate) fn by_sort(coverage: &Coverage) -> Option<String> {
    let sorts = [
        ("private", &coverage.private),
        ("shared", &coverage.shared),
        ("files", &coverage.file),
    ];
    let sorts = sorts.into_iter().filter(|(_, backing)| backing.total().0 > 0);
    let sorts = sorts.map(|(name, backing)| format!("{name} {} ({})", backing.total(), percent(backing)));
    let (all, sorts) = (coverage.all(), joined(sorts, " + "));
    (all.total().0 > 0).then(|| format!("{}, {} on huge pages: {sorts}", all.total(), percent(&all)))
}

/// Nothing is blank: a table of zeros hides the few numbers that matter.
pub(crate) fn amount(bytes: Bytes) -> String {
    if bytes.0 == 0 { String::new() } else { bytes.to_string() }
}

/// Nothing where there is no memory.
pub(super) fn kinds_in_words(backing: &Backing) -> String {
    or_empty((backing.total().0 > 0).then_some(backing))
}

/// A column for each page kind that occurs.
pub(crate) fn by_kind<'a, T>(items: &[T], backing: fn(&T) -> Option<&Backing>) -> Vec<Field<'a, &'a T>> {
    let backings = items.iter().filter_map(backing);
    let kinds: BTreeSet<PageKind> = backings.flat_map(Backing::iter).map(|(kind, _)| kind).collect();
    let field = |kind: PageKind| columns![|item| &T; (format!("#{kind}")) => or(backing(item).map(|backing| amount(backing.of(kind))), "?")];
    kinds.into_iter().flat_map(field).collect()
}
