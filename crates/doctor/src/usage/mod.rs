//! What one program has of huge pages: its memory by part, what it asked for, why the rest is on base pages, what to do next. Pure.

mod account;
mod demand;
mod heap_file;
mod pages;
mod parts;
#[cfg(test)]
mod tests;

use programs::Evidence;
use programs::Target;

pub use account::{
    Asked, Command, Database, HugetlbPages, InUse, Needs, Part, PartKind, PoolState, Server, Step, Usage, Why,
};
pub use parts::reserved_heap as heap;

/// The account of one target. `evidence` holds that program alone.
pub fn usage(evidence: &Evidence, target: &Target) -> Usage {
    let main = &target.main;
    let kind = main.kind.known().copied().flatten();
    let default_page = evidence.snapshot.memory.get("Hugepagesize").known().copied();
    let known_pools = evidence.snapshot.pools.known().map_or(&[][..], Vec::as_slice);
    let mut parts = parts::parts(target, kind, default_page);
    parts.iter_mut().for_each(|part| part.count_by_pool(known_pools));
    let pools: Vec<PoolState> = known_pools.iter().map(PoolState::of).collect();
    let in_use = parts.first().map_or(InUse::Unknown, Part::in_use);
    let asked = demand::asked(evidence, target, kind);
    let mut why = match in_use {
        InUse::Yes => Vec::new(),
        _ => demand::why(target, kind, parts.first(), &pools),
    };
    why.extend(parts::thp_reasons(target, &parts, evidence.snapshot.thp.known()));
    let own: Vec<String> = std::iter::once(main)
        .chain(&target.others)
        .map(|program| main_place(program.pid()))
        .collect();
    let mut findings = super::judge(evidence).findings;
    findings.retain(|finding| {
        let places = finding.evidence.iter().map(|proof| &proof.source);
        places
            .into_iter()
            .any(|place| own.iter().any(|own| place.starts_with(own)))
    });
    Usage {
        program: kind.map(|kind| kind.title().to_owned()),
        pid: main.pid(),
        name: target
            .vm
            .as_ref()
            .and_then(|vm| vm.name.clone())
            .unwrap_or_else(|| main.pages.name.clone()),
        others: target.others.len() as u64,
        unit: demand::service(target),
        next: demand::next(target, kind, in_use, &why),
        in_use,
        parts,
        asked,
        pools,
        why,
        log: target.log.lines.clone(),
        log_cut: target.log.cut.clone(),
        findings,
    }
}

fn main_place(pid: u32) -> String {
    format!("/proc/{pid}/")
}
