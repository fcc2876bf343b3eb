//! Writes of one script that undo each other, or leave a node out.

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;
use programs::config::PoolWrite;

use crate::facts::{default_size, known, node_file, persistent};
use crate::remedy::Need;
use crate::rule::Case;

/// Does a script that was given set this pool, or its part on a node?
pub(crate) fn is_written(evidence: &Evidence, pool: &Pool) -> bool {
    let size = |write: &PoolWrite| write.line.size.or(default_size(evidence).ok());
    let mut writes = evidence.files.pool_writes.iter();
    writes.any(|write| write.line.pages > 0 && size(write) == Some(pool.size))
}

/// Between writes that count, no program may have run: a benchmark sets pools of several sizes.
pub(super) fn undone(evidence: &Evidence, default: Bytes) -> Vec<Case> {
    let of_machine = default_size(evidence).ok().filter(|_| evidence.has_machine);
    let default = of_machine.unwrap_or(default);
    let writes = &evidence.files.pool_writes;
    let mut cases = Vec::new();
    for (at, last) in writes.iter().enumerate() {
        let is_same = |other: &&PoolWrite| is_of_one(last, other, default) && other.node == last.node;
        if writes[at + 1..].iter().any(|other| is_same(&other)) {
            continue;
        }
        let before: Vec<&PoolWrite> = writes[..at].iter().filter(is_same).collect();
        let Some(first) = before.last() else { continue };
        let left_out = last
            .node
            .and_then(|node| left_out(evidence, first, last, node, default));
        let is_other = |other: &&&PoolWrite| other.line.pages != last.line.pages && other.line.pages > 0;
        let other = before.iter().rfind(is_other).filter(|_| last.line.pages > 0);
        cases.extend(left_out.or_else(|| other.map(|other| overwritten(other, last, default))));
    }
    cases
}

/// Are they of one pool in one file, with no program between them?
fn is_of_one(one: &PoolWrite, other: &PoolWrite, default: Bytes) -> bool {
    let file = |write: &PoolWrite| write.line.place.rsplit_once(':').map(|(file, _)| file.to_owned());
    let size = |write: &PoolWrite| write.line.size.unwrap_or(default);
    file(one) == file(other) && one.after == other.after && size(one) == size(other)
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
    .fix_with(Need::Pool { page, pages: before }, format!("to keep {before}: remove {place}"))
    .fix_with(
        Need::Pool { page, pages: both },
        format!("if two programs need them: {both} at {place}, and remove {from}"),
    )
    .otherwise(format!("remove {from}: the machine has no room for its pages beside the other findings"))
}

/// A node of the machine that the script never writes, while it writes another one twice.
fn left_out(evidence: &Evidence, first: &PoolWrite, last: &PoolWrite, node: u32, default: Bytes) -> Option<Case> {
    let page = last.line.size.unwrap_or(default);
    let pool = evidence.snapshot.pool(page).filter(|_| evidence.has_machine)?;
    let own = evidence
        .files
        .pool_writes
        .iter()
        .filter(|other| is_of_one(last, other, default));
    let written: Vec<Option<u32>> = own.map(|other| other.node).collect();
    let (other, has) = unwritten(pool, &written)?;
    let (pages, size) = (last.line.pages, page.exact());
    let more = Need::Pool {
        page,
        pages: persistent(pool).ok()?.saturating_add(pages.saturating_sub(has)),
    };
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

/// The first node of a pool that is not among these, and its pages; none where the whole pool is.
fn unwritten(pool: &Pool, written: &[Option<u32>]) -> Option<(u32, u64)> {
    let nodes = known(&pool.nodes).ok()?.iter();
    let mut others = nodes.filter(|own| !written.contains(&Some(own.node)));
    let other = others.next().filter(|_| !written.contains(&None))?;
    Some((other.node, *other.nr.known()?))
}
