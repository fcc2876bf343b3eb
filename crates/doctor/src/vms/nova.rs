//! Pages of the pools that OpenStack's nova counts as its guests' own, and that other programs hold.

use std::collections::{BTreeMap, BTreeSet};

use model::Bytes;
use model::findings::Severity;
use programs::config::given::{Nova, Reserved};
use programs::{Evidence, Kind, Program};

use crate::facts::{known, running};
use crate::links;
use crate::rule::answers::readable;
use crate::rule::{Answer, Case, Reason};

/// Pages of one size on one node, which a program holds beside the guests.
struct Held {
    page: Bytes,
    node: u32,
    pages: u64,
    /// Those that nova leaves to others, with the place.
    reserved: Option<(u64, String)>,
}

impl Held {
    fn is_short(&self) -> bool {
        self.reserved.as_ref().is_none_or(|(count, _)| *count < self.pages)
    }
}

/// Programs of DPDK that hold more than nova leaves to others. nova places guests on the rest, and the last of them does not start.
pub(super) fn unreserved(evidence: &Evidence) -> Answer {
    let files = &evidence.files.nova;
    let Some(nova) = files.first() else {
        return Ok(Vec::new());
    };
    let reserved: Vec<&Reserved> = files.iter().flat_map(|own| &own.reserved).collect();
    let guests = of_guests(evidence);
    let is_switch = |program: &&Program| program.is(Kind::Dpdk) == Ok(true);
    let switches = running(evidence).filter(is_switch);
    let (mut held, unread) = readable(switches.map(|program| Ok((program, held(program, &guests)?))));
    let nothing = unread.map_or_else(|| Ok(Vec::new()), Err);
    held.retain(|(_, own)| !own.is_empty());
    let Some((first, _)) = held.first() else {
        return nothing;
    };
    let mut sums: BTreeMap<(Bytes, u32), u64> = BTreeMap::new();
    for (place, pages) in held.iter().flat_map(|(_, own)| own) {
        let sum = sums.entry(*place).or_default();
        *sum = sum.saturating_add(*pages);
    }
    let all: Vec<Held> = sums
        .into_iter()
        .map(|((page, node), pages)| {
            let of = reserved.iter().rfind(|own| own.node == node && own.page == page);
            let reserved = of.map(|own| (own.count, own.place.clone()));
            Held {
                page,
                node,
                pages,
                reserved,
            }
        })
        .collect();
    match all.iter().any(Held::is_short) {
        true => Ok(vec![case(evidence, nova, first, &all)]),
        false => nothing,
    }
}

/// Files of hugetlb pages that guests map: a switch maps those of the guests that it serves.
fn of_guests(evidence: &Evidence) -> BTreeSet<(&str, u64)> {
    let is_guest = |program: &&Program| program.kind.known().copied().flatten().is_some_and(Kind::is_hypervisor);
    let areas = running(evidence)
        .filter(is_guest)
        .filter_map(|program| program.areas().ok());
    let files = areas.flatten().filter(|area| area.is_hugetlb() && area.inode != 0);
    files.map(|area| (&*area.device, area.inode)).collect()
}

/// Its own pages by size and node.
fn held(program: &Program, guests: &BTreeSet<(&str, u64)>) -> Result<BTreeMap<(Bytes, u32), u64>, Reason> {
    let mut all = BTreeMap::new();
    let areas = program.areas()?;
    let own: BTreeSet<u64> = areas
        .iter()
        .filter(|area| !guests.contains(&(&*area.device, area.inode)))
        .map(|area| area.range.start)
        .collect();
    let Some(details) = program.details.as_ref().filter(|_| !own.is_empty()) else {
        return Ok(all);
    };
    for mapping in known(&details.hugetlb_nodes)?
        .iter()
        .filter(|one| own.contains(&one.start))
    {
        for (node, pages) in &mapping.nodes {
            let sum: &mut u64 = all.entry((mapping.page, *node)).or_default();
            *sum = sum.saturating_add(*pages);
        }
    }
    Ok(all)
}

fn case(evidence: &Evidence, nova: &Nova, program: &Program, all: &[Held]) -> Case {
    let counted: Vec<String> = all.iter().filter_map(|own| counted(evidence, own)).collect();
    let counted = match counted.is_empty() {
        true => String::new(),
        false => format!(": {}", counted.join("; ")),
    };
    let case = Case::sure(format!(
        "{} holds pages that nova counts as free for guests{counted}. A guest that needs them does not start",
        program.title()
    ))
    .severity(Severity::Warning)
    .link(Some(links::NOVA));
    let case = all.iter().fold(case, |case, own| {
        let field = format!("pages of {} on node {}", own.page.exact(), own.node);
        let case = case.seen(program.file("numa_maps"), field, own.pages);
        match &own.reserved {
            Some((count, place)) => case.seen(place, "reserved_huge_pages", count),
            None => case.seen(
                &nova.path,
                format!("reserved_huge_pages of node {} and {}", own.node, own.page.exact()),
                "none",
            ),
        }
    });
    let short = all.iter().filter(|own| own.is_short());
    let case = short.fold(case, |case, own| {
        let (node, size, pages) = (own.node, in_nova(own.page), own.pages);
        let line = format!("reserved_huge_pages = node:{node},size:{size},count:{pages}");
        case.fix(match &own.reserved {
            Some((_, place)) => format!("{line}, in place of {place}"),
            None => format!("{line}, as a line of its own in [DEFAULT] of {}", nova.path),
        })
    });
    case.fix("then restart nova-compute; reserved_host_memory_mb is of base pages and does not leave pages of a pool to others")
}

/// `node 0: 8 of 1G counted as free, and 4 are`.
fn counted(evidence: &Evidence, own: &Held) -> Option<String> {
    let parts = evidence.snapshot.pool(own.page)?.nodes.known()?;
    let free = *parts.iter().find(|part| part.node == own.node)?.free.known()?;
    let reserved = own.reserved.as_ref().map_or(0, |(count, _)| *count);
    let more = own.pages.checked_sub(reserved).filter(|more| *more > 0)?;
    let believed = free.saturating_add(more);
    let (node, size) = (own.node, own.page.exact());
    Some(format!(
        "on node {node} it counts {believed} of {size} as free, and {free} are"
    ))
}

/// A page size as nova takes it: with a unit that ends in B, or in KiB.
fn in_nova(page: Bytes) -> String {
    match page.0.is_multiple_of(Bytes::gib(1).0) {
        true => format!("{}B", page.exact()),
        false => (page.0 >> 10).to_string(),
    }
}
