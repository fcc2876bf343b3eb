//! What one program has of huge pages: its memory by part, what it asked for, why the rest is on base pages, what to do next. Pure.

mod account;
mod demand;
pub(crate) mod heap;
mod heap_file;
mod next;
mod pages;
mod parts;
#[cfg(test)]
mod tests;

use host::processes::Coverage;
use model::{Cause, Reading};
use programs::{Area, Evidence, Kind, Program, Target};

pub use account::{
    Asked, Command, Database, HugetlbPages, InUse, Needs, OfProcess, Part, PartKind, PoolState, Server, Step, Usage,
    Why,
};
pub(crate) use parts::is_chunk;
pub use parts::reserved_heap;

/// The account of one target. `evidence` holds that program alone.
pub fn usage(evidence: &Evidence, target: &Target) -> Usage {
    let main = &target.main;
    let kind = main.kind.known().copied().flatten();
    let default_page = evidence.snapshot.memory.get("Hugepagesize").known().copied();
    let known_pools = evidence.snapshot.pools.known().map_or(&[][..], Vec::as_slice);
    let mut parts = parts::parts(target, kind, default_page);
    parts.iter_mut().for_each(|part| part.count_by_pool(known_pools));
    let pools: Vec<PoolState> = known_pools.iter().map(PoolState::of).collect();
    let hugetlb = main.pages.hugetlb.known().copied().filter(|bytes| bytes.0 > 0);
    let denied = parts
        .first()
        .and_then(|part| part.backing.unread())
        .filter(|why| why.unread == Cause::Denied);
    let in_use = match (denied, hugetlb) {
        // The status of any process is there for all to read.
        (Some(_), Some(_)) => InUse::Yes,
        _ => parts.first().map_or(InUse::Unknown, Part::in_use),
    };
    let asked = demand::asked(evidence, target, kind);
    let mut why = match in_use {
        InUse::Yes => Vec::new(),
        _ => demand::why(target, kind, parts.first(), &pools),
    };
    // MariaDB switches THP off for itself, which is no reason for memory that asks for a pool.
    let is_of_pool =
        kind == Some(Kind::Mysql) && matches!(why.first(), Some(Why::PoolShort { .. } | Why::Restart { .. }));
    if !is_of_pool {
        why.extend(parts::thp_reasons(target, &parts, evidence.snapshot.thp.known()));
    }
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
    let resident = coverage(target);
    Usage {
        resident,
        hugetlb,
        of_process: target.asked.as_ref().map(of_process),
        counted: target.family.len() as u64 + 1,
        program: kind.map(|kind| kind.title().to_owned()),
        pid: main.pid(),
        name: target
            .vm
            .as_ref()
            .and_then(|vm| vm.name.clone())
            .unwrap_or_else(|| main.pages.name.clone()),
        others: target.others.len() as u64,
        unit: demand::service(target),
        next: next::next(&next::State {
            target,
            kind,
            in_use,
            why: &why,
            parts: &parts,
            findings: &findings,
            is_denied: denied.is_some(),
        }),
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

/// What all its processes have resident, each page once.
fn coverage(target: &Target) -> Reading<Coverage> {
    target.main.areas().map_or_else(Reading::Unread, |areas| {
        let all: Vec<&Area> = areas.iter().chain(target.family.iter().flatten()).collect();
        heap::counted(&all).map(|_| Coverage::of(all))
    })
}

/// The private memory of the one process that was asked for.
fn of_process(asked: &Program) -> OfProcess {
    OfProcess {
        pid: asked.pid(),
        name: asked.pages.name.clone(),
        backing: asked
            .pages
            .without_segments()
            .map_or_else(|| asked.pages.backing.clone(), |(own, _)| Reading::Known(own)),
    }
}

fn main_place(pid: u32) -> String {
    format!("/proc/{pid}/")
}
