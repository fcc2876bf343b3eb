//! Writes of one script that undo each other, or leave a node out.

use std::collections::BTreeMap;

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;
use programs::config::PoolWrite;

use crate::facts::{default_size, file_of, known, node_file, persistent};
use crate::remedy::Need;
use crate::rule::Case;

/// What writes undo each other in: a file, the programs before them, a size and a node.
type Count<'a> = (&'a str, usize, Bytes, Option<u32>);

/// The writes of each count, in order, with the number of the last one.
type Counts<'a> = BTreeMap<Count<'a>, (usize, Vec<&'a PoolWrite>)>;

/// Do scripts that were given leave in a pool as many pages as it has now, or more? Beside nodes that they write the others keep theirs.
pub(crate) fn is_written(evidence: &Evidence, pool: &Pool) -> bool {
    let Ok(default) = default_size(evidence) else {
        return false;
    };
    let left = PoolWrite::left(&evidence.files.pool_writes, default).into_iter();
    let mut own = left.filter(|line| line.size == Some(pool.size) && line.pages > 0);
    own.any(|line| line.is_by_node || persistent(pool).is_ok_and(|now| line.pages >= now))
}

/// Does a script that was given set the part of a pool on a node? What it leaves out, A12 says.
pub(crate) fn is_written_by_node(evidence: &Evidence, pool: &Pool) -> bool {
    let is_own = |write: &PoolWrite| write.node.is_some() && write.line.size == Some(pool.size);
    evidence.files.pool_writes.iter().any(is_own)
}

/// Between writes that count, no program may have run: a benchmark sets pools of several sizes.
pub(super) fn undone(evidence: &Evidence, default: Bytes) -> Vec<Case> {
    let default = default_size(evidence).unwrap_or(default);
    let mut counts = Counts::new();
    for (at, write) in evidence.files.pool_writes.iter().enumerate() {
        let (last, own) = counts.entry(count(write, default)).or_default();
        *last = at;
        own.push(write);
    }
    let mut cases: Vec<(usize, Case)> = counts
        .values()
        .filter_map(|(at, own)| Some((*at, of_count(evidence, own, &counts, default)?)))
        .collect();
    cases.sort_by_key(|(at, _)| *at);
    cases.into_iter().map(|(_, case)| case).collect()
}

fn count(write: &PoolWrite, default: Bytes) -> Count<'_> {
    let size = write.line.size.unwrap_or(default);
    (file_of(&write.line.place), write.after, size, write.node)
}

/// Writes of one count.
fn of_count(evidence: &Evidence, own: &[&PoolWrite], counts: &Counts<'_>, default: Bytes) -> Option<Case> {
    let (last, before) = own.split_last()?;
    let first = before.last()?;
    let left_out = last
        .node
        .and_then(|node| left_out(evidence, first, last, node, counts, default));
    let is_other = |other: &&&PoolWrite| other.line.pages != last.line.pages && other.line.pages > 0;
    let other = before.iter().rfind(is_other).filter(|_| last.line.pages > 0);
    left_out.or_else(|| other.map(|other| overwritten(other, last, default)))
}

fn overwritten(first: &PoolWrite, last: &PoolWrite, default: Bytes) -> Case {
    let page = last.line.size.unwrap_or(default);
    let ([before, pages], size) = ([first.line.pages, last.line.pages], page.exact());
    let (from, place) = (&first.line.place, &last.line.place);
    let which = last.node.map_or_else(String::new, |node| format!(" on node {node}"));
    let both = before.saturating_add(pages);
    Case::sure(format!(
        "{pages} pages of {size}{which} ({}) remain of the {before} that {from} sets: {place} sets the count once more, and a write adds nothing to it",
        Bytes(page.0.saturating_mul(pages)).exact()
    ))
    .seen(from, format!("pages of {size}{which}"), before)
    .seen(place, format!("pages of {size}{which}"), pages)
    .fix_with(Need::Pool(page, before), format!("to keep {before}: remove {place}"))
    .fix_with(
        Need::Pool(page, both),
        format!("if two programs need them: {both} at {place}, and remove {from}"),
    )
    .otherwise(format!("remove {from}: the machine has no room for its pages beside the other findings"))
}

/// A node of the machine that the script never writes, while it writes another one twice.
fn left_out(
    evidence: &Evidence,
    first: &PoolWrite,
    last: &PoolWrite,
    node: u32,
    counts: &Counts<'_>,
    default: Bytes,
) -> Option<Case> {
    let page = last.line.size.unwrap_or(default);
    let pool = evidence.snapshot.pool(page)?;
    let (file, after, size, _) = count(last, default);
    let is_written = |node| counts.contains_key(&(file, after, size, node));
    let (other, has) = unwritten(pool, is_written)?;
    let (pages, size) = (last.line.pages, page.exact());
    let more = Need::Pool(page, persistent(pool).ok()?.saturating_add(pages.saturating_sub(has)));
    let place = &last.line.place;
    Some(
        Case::sure(format!(
            "{} and {place} both set the pages of {size} on node {node}, and nothing in the script sets those on node {other}, which has {has}",
            first.line.place
        ))
        .seen(&first.line.place, format!("pages on node {node}"), first.line.pages)
        .seen(place, format!("pages on node {node}"), pages)
        .seen(node_file(pool, other), "", has)
        .fix_with(more, format!("name node {other} at {place}: echo {pages} > {}", node_file(pool, other)))
        .otherwise(format!("remove {place}, which changes nothing: the machine has no room for more pages")),
    )
}

/// The first node of a pool that is not written, and its pages; none where the whole pool is.
fn unwritten(pool: &Pool, is_written: impl Fn(Option<u32>) -> bool) -> Option<(u32, u64)> {
    let mut nodes = known(&pool.nodes).ok()?.iter();
    let other = nodes
        .find(|own| !is_written(Some(own.node)))
        .filter(|_| !is_written(None))?;
    Some((other.node, *other.nr.known()?))
}
